"""deploy/ray_serve.yaml is a file that Serve takes, and a replica says what is wrong with its settings."""

import subprocess

import pytest
import yaml

from tests.ray.ray_cluster import BIN, CONFIG
from tests.serving import REPOSITORY, bare_environment

pytestmark = pytest.mark.slow


def in_ray(code: str, **variables: str) -> str:
    """What a Python with Ray says to it."""
    done = subprocess.run(
        [BIN / "python", "-c", code],
        cwd=REPOSITORY,
        env={**bare_environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.stdout


def test_the_file_for_serve_follows_its_schema() -> None:
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    said = in_ray(
        f"from ray.serve.schema import ServeDeploySchema as S; print(S.model_validate({config!r}).http_options)"
    )
    assert "port=3000" in said, said


def test_its_arguments_are_those_of_the_app() -> None:
    [application] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["applications"]
    assert application["import_path"] == "deploy.ray_serve:app"
    make = "from deploy.ray_serve import ReplicaOptions as O, app; made = app(O.model_validate({args!r}))"
    said = in_ray(make.format(args=application["args"]) + "; print(made._bound_deployment.ray_actor_options)")
    assert "'num_gpus': 1" in said, said
    assert "extra_forbidden" in in_ray(make.format(args={"num_gpu": 1}))


def test_a_replica_without_redis_does_not_start() -> None:
    made = "from deploy.ray_serve import _make_app; _make_app()"
    assert "SESSION_STORE must be redis" in in_ray(made, MODEL_REPO_ID="echo")
    assert "REDIS_URL must be set" in in_ray(made, MODEL_REPO_ID="echo", SESSION_STORE="redis")
