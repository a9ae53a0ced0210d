"""Reads files again after a change, in a thread, so that the event loop never waits for a disk."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from tis.observability.logs import log_exception

_LOOK_SECONDS = 0.5

_State = tuple[tuple[int, ...] | None, ...]


class FileWatch:
    """A file that is being written changes from look to look: it is read when two looks find the same.

    `reload` may return False: then the next look tries again, although nothing has changed.
    Looks go through links, so a secret that Kubernetes swaps is seen, too.
    """

    def __init__(
        self, paths: Sequence[Path], reload: Callable[[], object], *, look_seconds: float = _LOOK_SECONDS
    ) -> None:
        self._paths = tuple(paths)
        self._reload = reload
        self._look_seconds = look_seconds
        self._task: asyncio.Task[None] | None = None
        self._loaded: _State | None = None  # so the first look finds a change since the start

    def open(self) -> None:
        self._task = asyncio.create_task(self._watch())

    def close(self) -> None:
        if self._task:
            self._task.cancel()

    async def _watch(self) -> None:
        before: _State | None = None
        while True:
            await asyncio.sleep(self._look_seconds)
            now = await asyncio.to_thread(self._state)
            if now == before and now != self._loaded:
                self._loaded = now
                try:
                    if await asyncio.to_thread(self._reload) is False:
                        self._loaded = None
                except Exception as error:  # the watch goes on: the next change may be better
                    log_exception(f"{self._paths[0].name} could not be read again", error, "-")
            before = now

    def _state(self) -> _State:
        return tuple(map(_stat, self._paths))


def _stat(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # With the time of a new owner or mode: a file that could not be read may then be.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
