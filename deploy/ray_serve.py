"""The server as replicas of a Ray Serve deployment: `serve run deploy/ray_serve.yaml`. docs/scale.md says how.

Each replica is a whole server, with its models. Sessions are in Redis, so a stream goes on at another replica when its
own is killed. Its settings are the environment of its node (`ray start`): secrets are in nothing that Ray stores.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field
from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

if TYPE_CHECKING:
    from fastapi import FastAPI
    from ray.serve import Application
    from ray.serve.config import AutoscalingContext

_LOOK_SECONDS = 0.2
# Of settings that nobody has set. Others reach Serve's proxies, so the rules for a public server hold.
_DEFAULTS = {"host": ("HOST", "0.0.0.0"), "eager_load_model": ("EAGER_LOAD_MODEL", "1")}
_WAITING_TOKENS = "waiting_tokens"
# The server has limits of its own, and answers 429; readers of a stream are requests as well.
_MAX_ONGOING_REQUESTS = 10_000


class ReplicaOptions(BaseModel):
    """What `args` of a Serve config file, and NAME=VALUE of `serve run`, may say."""

    model_config = ConfigDict(extra="forbid")
    num_cpus: float = Field(1, gt=0)  # also the threads of a model on a CPU, where OMP_NUM_THREADS is not set
    num_gpus: float = Field(0, ge=0)
    accelerator_type: str | None = None
    min_replicas: int = Field(1, ge=1)
    max_replicas: int = Field(1, ge=1)
    requests_per_replica: float = Field(32, gt=0)
    waiting_tokens: int = Field(8192, ge=1)  # of prompts in the queues: so many call for one more replica
    upscale_seconds: float = Field(30, ge=0)
    downscale_seconds: float = Field(600, ge=0)
    stop_seconds: float = Field(60, gt=0)  # for running answers; longer ones go on at another replica
    health_seconds: float = Field(10, gt=0)


class LoadPolicy:
    """As many replicas as requests need; one more for each heap of prompt tokens that waits for a model."""

    def __init__(self, waiting_tokens: int) -> None:
        self._waiting_tokens = waiting_tokens

    def __call__(self, context: "AutoscalingContext") -> tuple[float, dict[str, Any]]:
        wanted = float(context.total_num_requests / context.config.target_ongoing_requests)
        waiting = sum((context.aggregated_metrics or {}).get(_WAITING_TOKENS, {}).values())
        if waiting >= self._waiting_tokens:
            wanted = max(wanted, context.current_num_replicas + waiting // self._waiting_tokens)
        return wanted, {}


@serve.deployment
@serve.ingress()
class InferenceReplica:
    async def __serve_build_asgi_app__(self) -> "FastAPI":
        self._app = await asyncio.to_thread(_make_app)
        return self._app

    async def check_health(self) -> None:
        """Serve replaces a replica that raises here, or whose event loop does not get to it.

        A model that fails is loaded again by the server itself.
        """
        if loss := self._app.state.engine.loss:
            raise RuntimeError(loss)

    async def record_autoscaling_stats(self) -> dict[str, float]:
        return {_WAITING_TOKENS: sum(status.num_waiting_tokens for status in self._app.state.engine.statuses)}


def app(options: ReplicaOptions) -> "Application":
    """What a Serve config file imports."""
    resources: dict[str, Any] = {"num_cpus": options.num_cpus, "num_gpus": options.num_gpus}
    if options.accelerator_type:
        resources["accelerator_type"] = options.accelerator_type
    scaling = AutoscalingConfig(
        min_replicas=options.min_replicas,
        max_replicas=options.max_replicas,
        target_ongoing_requests=options.requests_per_replica,
        upscale_delay_s=options.upscale_seconds,
        downscale_delay_s=options.downscale_seconds,
        policy=AutoscalingPolicy(policy_function=LoadPolicy, policy_kwargs={"waiting_tokens": options.waiting_tokens}),
    )
    deployment = InferenceReplica.options(  # type: ignore[attr-defined]
        ray_actor_options=resources,
        autoscaling_config=scaling,
        max_ongoing_requests=_MAX_ONGOING_REQUESTS,
        graceful_shutdown_timeout_s=options.stop_seconds,
        health_check_period_s=options.health_seconds,
        health_check_timeout_s=3 * options.health_seconds,
    )
    return deployment.bind()


def _make_app() -> "FastAPI":
    from tis.app import create_app
    from tis.cli.serve import prepare_process
    from tis.settings import Settings

    prepare_process()
    explicit = Settings.from_env()
    settings = Settings.from_env(
        flags={name: value for name, value in _DEFAULTS.items() if not explicit.set_explicitly(name)}
    )
    if settings.store_kind != "redis":
        raise RuntimeError("SESSION_STORE must be redis: a client comes back to any replica")
    made = create_app(settings)
    made.router.lifespan_context = _until_loaded(made.router.lifespan_context)
    return made


def _until_loaded(
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]],
) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """A replica gets requests once its models are loaded."""

    @asynccontextmanager
    async def loaded(starting: "FastAPI") -> AsyncIterator[Any]:
        async with lifespan(starting) as state:
            while starting.state.engine.is_starting:
                _require_no_failure(starting)
                await asyncio.sleep(_LOOK_SECONDS)
            _require_no_failure(starting)
            yield state

    return loaded


def _require_no_failure(starting: "FastAPI") -> None:
    """Of a model that is loaded here: one that others serve may be there later."""
    for status in starting.state.engine.statuses:
        if status.state == "failed" and not status.upstreams:
            raise RuntimeError(f"{status.id} could not be loaded: {status.error}")
