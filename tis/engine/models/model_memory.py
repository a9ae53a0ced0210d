"""Which models are in memory together: what a load needs, what others hold, and who has to go first."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tis.engine.errors import ModelMemoryFull, ModelTooLarge

log = logging.getLogger("tis.engine")

_RETRY_SECONDS = 10


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    num_bytes: int  # declared, or of its weights on disk
    limit_bytes: int  # of all models together; 0: none is known
    max_bytes: int = 0  # of one model, parts of which may lie outside of that memory; 0: the same


class MemoryHolder(Protocol):
    """A model slot, as far as its memory goes."""

    @property
    def name(self) -> str: ...

    @property
    def held_bytes(self) -> int:
        """Of weights and cache, from the begin of a load to the end of the unload."""
        ...

    @property
    def idle_seconds(self) -> float | None:
        """None while somebody uses it, and while it is not loaded."""
        ...

    async def unload(self) -> bool:
        """False if somebody uses it after all."""
        ...


class ModelMemory:
    """On the event loop."""

    def __init__(self, holders: Sequence[MemoryHolder] = ()) -> None:
        self.holders = holders
        self._turn = asyncio.Lock()

    async def make_room(self, wanted: MemoryHolder, need: MemoryNeed, *, may_unload: bool) -> None:
        """Unloads what has been idle longest until the model fits.

        The caller holds the memory at once when this returns. Raises ModelTooLarge and ModelMemoryFull.
        """
        if not need.limit_bytes:
            return
        max_bytes = max(need.limit_bytes, need.max_bytes)
        if need.num_bytes > max_bytes:
            raise ModelTooLarge(
                f"{wanted.name} needs {_mib(need.num_bytes)} MiB of memory, and models may have {_mib(max_bytes)} MiB."
            )
        room = need.limit_bytes - min(need.num_bytes, need.limit_bytes)
        async with self._turn:
            while (missing := self._held_by_others(wanted) - room) > 0:
                idle = self._idle_ones(wanted) if may_unload else []
                if sum(one.held_bytes for one in idle) < missing:
                    raise ModelMemoryFull(self._why_full(wanted, need), retry_after=_RETRY_SECONDS)
                log.info("%s makes room for %s", idle[0].name, wanted.name)
                await idle[0].unload()

    def _others(self, wanted: MemoryHolder) -> list[MemoryHolder]:
        return [one for one in self.holders if one is not wanted and one.held_bytes]

    def _held_by_others(self, wanted: MemoryHolder) -> int:
        return sum(one.held_bytes for one in self._others(wanted))

    def _idle_ones(self, wanted: MemoryHolder) -> list[MemoryHolder]:
        """The longest idle first."""
        idle = [(seconds, one) for one in self._others(wanted) if (seconds := one.idle_seconds) is not None]
        return [one for _, one in sorted(idle, key=lambda pair: -pair[0])]

    def _why_full(self, wanted: MemoryHolder, need: MemoryNeed) -> str:
        held = ", ".join(f"{one.name} ({_mib(one.held_bytes)} MiB)" for one in self._others(wanted))
        return (
            f"{wanted.name} needs {_mib(need.num_bytes)} MiB of memory, of {_mib(need.limit_bytes)} MiB for models. "
            f"In use: {held}. Retry later."
        )


def _mib(num_bytes: int) -> str:
    return f"{-(-num_bytes // 2**20):,}"
