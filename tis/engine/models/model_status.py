"""The state of a model as /health, /ready and the banner report it."""

from dataclasses import dataclass
from typing import Literal

State = Literal["unloaded", "loading", "ready", "failed", "dead"]


@dataclass(frozen=True, slots=True)
class ModelFootprint:
    """The device that a model is loaded on, and the memory that it takes there."""

    device: str
    dtype: str
    weight_bytes: int
    cache_tokens: int
    cache_bytes: int


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

    @property
    def accepts_work(self) -> bool:
        """A model that is not loaded accepts too: the first request loads it."""
        return self.state in ("unloaded", "ready")
