"""Calls the webhooks of shops: many at once, one after the other for each of them.

A thread with an event loop of its own. Reasons: docs/decisions/0144-notices-that-go-out.md.
"""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tis.database.errors import DatabaseUnavailable
from tis.marketplace.notices.webhook_http import WebhookPoster
from tis.marketplace.notices.webhook_queue import WebhookQueue
from tis.observability.logs import log_exception

_MAX_QUICK_AT_ONCE = 32
_MAX_SLOW_AT_ONCE = 8  # beside these: those that failed or were slow the last time, so that others never wait for them
_MAX_AT_ONCE = 256  # with those that turn out to be slow
_SLOW_SECONDS = 2.0
_MAX_SLOW_KNOWN = 1000
_MAX_THREADS = 4  # that speak with the database: requests need its connections more
_MAX_IN_TURN = 20  # calls, until another webhook may have the place
_CLOSE_SECONDS = 3.0


class WebhookSender:
    def __init__(self, queue: WebhookQueue, poster: WebhookPoster, interval_seconds: float = 2.0) -> None:
        self._queue = queue
        self._poster = poster
        self._interval_seconds = interval_seconds
        self._slow: set[int] = set()
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread:
            return  # its event belongs to one loop
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="webhooks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """From any thread."""
        if self._loop:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._news.set)

    def stop(self) -> None:
        """Waits for the calls that run, for a few seconds."""
        self._end.set()
        self.wake()
        if self._thread:
            self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="webhooks"))
        while not self._end.is_set():
            try:
                await self._begin_some()
            except DatabaseUnavailable:
                pass  # `tis.database` has logged it
            except Exception as fault:
                log_exception("webhooks cannot be taken; the next look tries again", fault, "-")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_seconds):
                    await self._news.wait()
            self._news.clear()
        if self._serving:
            _, late = await asyncio.wait(self._serving.values(), timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _begin_some(self) -> None:
        num_slow = len(self._slow & self._serving.keys())
        num_quick = len(self._serving) - num_slow
        free = min(_MAX_QUICK_AT_ONCE - num_quick, _MAX_AT_ONCE - len(self._serving))
        if free <= 0:
            return
        known = frozenset(self._slow)
        for webhook_id in await asyncio.to_thread(self._queue.take, free, _MAX_SLOW_AT_ONCE - num_slow, known):
            self._serving[webhook_id] = asyncio.create_task(self._serve(webhook_id))

    async def _serve(self, webhook_id: int) -> None:
        """One turn."""
        has_failed = True
        try:
            for _ in range(_MAX_IN_TURN):
                if self._end.is_set() or not await self._call(webhook_id):
                    break
            has_failed = False
        except DatabaseUnavailable:
            pass
        except Exception as fault:
            log_exception(f"webhook {webhook_id} could not be called; it is tried again", fault, "-")
        finally:
            with suppress(DatabaseUnavailable):
                await asyncio.to_thread(self._queue.give_back, webhook_id)
            self._serving.pop(webhook_id, None)
            if not has_failed:
                self._news.set()  # a place is free

    async def _call(self, webhook_id: int) -> bool:
        """Returns whether the next call may follow."""
        call = await asyncio.to_thread(self._queue.next_call, webhook_id)
        if call is None:
            return False
        # While it is late, too: its place is another's then.
        late = asyncio.get_running_loop().call_later(_SLOW_SECONDS, self._remember_slow, webhook_id)
        began = time.monotonic()
        outcome = await self._poster.post(call.url, call.headers, call.body)
        late.cancel()
        if outcome.is_success and time.monotonic() - began <= _SLOW_SECONDS:
            self._slow.discard(webhook_id)
        else:
            self._remember_slow(webhook_id)
        await asyncio.to_thread(self._queue.mark, webhook_id, call.delivery_id, outcome)
        return outcome.is_success

    def _remember_slow(self, webhook_id: int) -> None:
        if len(self._slow) >= _MAX_SLOW_KNOWN:
            self._slow.pop()
        self._slow.add(webhook_id)
        self._news.set()
