"""The state of a model as /health, /ready and the banner report it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["unloaded", "loading", "ready", "unloading", "failed", "dead"]


@dataclass(frozen=True, slots=True)
class ModelFootprint:
    """The device that a model is loaded on, and the memory that it takes there."""

    device: str
    dtype: str
    weight_bytes: int
    cache_tokens: int
    cache_bytes: int

    @property
    def num_bytes(self) -> int:
        return self.weight_bytes + self.cache_bytes


@dataclass(frozen=True, slots=True)
class ModelStatus:
    id: str
    state: State
    stage: str | None = None  # of the current load
    progress: float | None = None
    error: str | None = None
    num_waiting: int = 0
    footprint: ModelFootprint | None = None
    num_running: int = 0
    cache_use: float | None = None  # 0 to 1
    held_bytes: int = 0  # of memory, for weights and cache
    idle_seconds: float | None = None  # None: it is in use, or not loaded
    num_waiting_tokens: int = 0  # of the prompts of requests that wait
    upstreams: Sequence[bool] = ()  # whether each of the engines that serve it can be asked, in the order of its entry

    @property
    def accepts_work(self) -> bool:
        """A model that is not loaded accepts too: the next request loads it."""
        return self.state in ("unloaded", "ready", "unloading")
