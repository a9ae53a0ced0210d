"""Whether the store is durable right now, and the callbacks that report each change. Runs on the event loop."""

import asyncio
import logging
from collections.abc import Callable

from tis.observability.logs import log_exception
from tis.observability.metrics import STORE_ERRORS
from tis.streaming.stores.sqlite_rows import Operation
from tis.streaming.stores.store import Durability
from tis.streaming.stores.store_room import StoreRoom
from tis.streaming.stores.write_queue import Acks

_log = logging.getLogger("tis.store")


class StoreHealth:
    durability: Durability = "durable"

    def __init__(
        self, name: str, put_snapshot: Callable[[], None], on_rejected: Callable[[Operation], None], room: StoreRoom
    ) -> None:
        self._name = name
        self.room = room
        self.put_snapshot = put_snapshot
        self._on_rejected = on_rejected
        self.on_degraded: Callable[[], None] = lambda: None
        self._flushes: set[asyncio.Future[None]] = set()
        self._writer_ended = asyncio.Event()

    def committed(self, acks: Acks, caught_up: bool) -> None:
        if caught_up and self.durability == "degraded":
            self.durability = "durable"
            _log.warning("%s stores sessions again, and has caught up", self._name)
        for (_, committed), index in acks.items():
            try:
                committed(index)
            except Exception as fault:  # the other callbacks must run
                log_exception("the callback of a commit failed", fault, "-")

    def failed(self, error: str, why: str) -> None:
        """Reports a failed write (such as a full disk) to the log, the metrics, `/ready` and the sessions."""
        STORE_ERRORS.labels("sqlite", error).inc()
        if self.durability == "durable":
            self.durability = "degraded"
            _log.error(
                "%s cannot store sessions: %s (%s). Answers continue in memory; the writer retries.",
                self._name,
                why,
                error,
            )
            self.on_degraded()
        self._end_flushes()

    def rejected(self, operation: Operation, error: str, why: str) -> None:
        """The file is in order and never takes this operation. Its acks wait until its session is restored."""
        self.failed(error, why)
        self._on_rejected(operation)

    def writer_ended(self) -> None:
        self._writer_ended.set()
        self._end_flushes()

    async def wait_for_writer(self) -> None:
        await self._writer_ended.wait()

    async def flush(self, put: Callable[[Callable[[int], None]], None]) -> None:
        if self.durability == "degraded" or self._writer_ended.is_set():
            return
        flushed = asyncio.get_running_loop().create_future()
        self._flushes.add(flushed)
        put(lambda _: _resolve(flushed))
        try:
            await flushed
        finally:
            self._flushes.discard(flushed)

    def _end_flushes(self) -> None:
        for flush in self._flushes:
            _resolve(flush)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
