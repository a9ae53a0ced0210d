"""The bridge between the event loop and the threads of the engine."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Bridge:
    """Made on the event loop, which calls every method but `call_on_loop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # For tokenising: short, and the tokenizers are locked anyway.
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="prepare")
        # Large images take a while, and text should not wait for them.
        self._vision_pool = ThreadPoolExecutor(2, thread_name_prefix="vision")
        # Thousands of texts of one request; chats should not wait for them.
        self._text_pool = ThreadPoolExecutor(2, thread_name_prefix="texts")
        # One grammar at a time, and in a thread of its own: a hostile grammar takes seconds.
        self._grammar_thread = ThreadPoolExecutor(1, thread_name_prefix="grammar")
        self._load_lock = threading.Lock()

    def call_on_loop(self, callback: Callable[[], None]) -> None:
        """Callable from any thread. Does nothing once the loop is closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    async def in_pool(self, work: Callable[[], T]) -> T:
        """Runs short work that would block the loop."""
        return await self._loop.run_in_executor(self._pool, work)

    async def in_vision_pool(self, work: Callable[[], T]) -> T:
        """Runs the preprocessing of images and videos."""
        return await self._loop.run_in_executor(self._vision_pool, work)

    async def in_text_pool(self, work: Callable[[], T]) -> T:
        """Runs the tokenising of texts for embeddings and reranking."""
        return await self._loop.run_in_executor(self._text_pool, work)

    async def in_grammar_thread(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._grammar_thread, work)

    def in_load_thread(self, name: str, work: Callable[[], T], *, alone: bool = True) -> "asyncio.Future[T]":
        """Runs work that may take minutes, in a daemon thread, which does not keep the process from ending.

        `alone`: not beside another such work, as two loads at once would need the memory of both for longer.
        """
        future: asyncio.Future[T] = self._loop.create_future()

        def run() -> None:
            try:
                with self._load_lock if alone else contextlib.nullcontext():
                    result = work()
            except BaseException as error:  # raised again where the future is awaited
                self.call_on_loop(lambda error=error: _settle(future, error=error))  # type: ignore[misc]
            else:
                self.call_on_loop(lambda: _settle(future, result=result))

        threading.Thread(target=run, name=name, daemon=True).start()
        return future

    def close(self) -> None:
        for pool in (self._pool, self._vision_pool, self._text_pool, self._grammar_thread):
            pool.shutdown(wait=False, cancel_futures=True)


def _settle(future: "asyncio.Future[T]", *, result: T | None = None, error: BaseException | None = None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)  # type: ignore[arg-type]
    else:
        # A future cannot raise SystemExit or StopIteration in a coroutine.
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
