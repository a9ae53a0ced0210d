"""Wakes the readers of notices: at once those of this process, and by a look at the database those that another wrote.

Readers wait on the event loop, without a thread or a connection. While there is any, one query each half second asks
for the latest numbers of their accounts.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from sqlalchemy.orm import Session

from tis import shutdown
from tis.database.errors import DatabaseUnavailable
from tis.errors import QueueFull
from tis.marketplace.kit.notice_outbox import latest_numbers
from tis.marketplace.kit.threads import in_thread
from tis.observability.logs import log_exception

_log = logging.getLogger("tis.marketplace")
_MAX_READERS, _MAX_OF_ACCOUNT = 2000, 10
_MAX_ASKED = 500  # accounts in a query


class NoticeReader:
    """One open stream. `is_ended`: the server stops."""

    def __init__(self, account: str) -> None:
        self.account = account
        self.is_ended = False
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """True if there may be news, False after that time without any."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        found = self._news.is_set()
        self._news.clear()
        return found


class NoticeHub:
    def __init__(self, reading: Callable[[], AbstractContextManager[Session]], poll_seconds: float = 0.5) -> None:
        self._reading = reading
        self._poll_seconds = poll_seconds
        self._readers: dict[str, set[NoticeReader]] = {}
        self._latest: dict[str, int] = {}  # of the accounts of readers, as the last look found them
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watching: asyncio.Task[None] | None = None

    def require_room(self, account: str) -> None:
        own = self._readers.get(account, ())
        if len(own) >= _MAX_OF_ACCOUNT or sum(map(len, self._readers.values())) >= _MAX_READERS:
            whose = "of this account" if len(own) >= _MAX_OF_ACCOUNT else "here"
            raise QueueFull(f"Too many streams of notices {whose} are open. Close one, or retry later.", retry_after=10)

    @contextmanager
    def listening(self, account: str) -> Iterator[NoticeReader]:
        """On the event loop."""
        self.require_room(account)
        own = self._readers.setdefault(account, set())
        reader = NoticeReader(account)
        own.add(reader)
        self._loop = asyncio.get_running_loop()
        if self._watching is None:
            self._watching = self._loop.create_task(self._watch())
        try:
            yield reader
        finally:
            own.discard(reader)
            if not own and self._readers.get(account) is own:
                del self._readers[account]
                self._latest.pop(account, None)
            if not self._readers and self._watching:
                self._watching.cancel()
                self._watching = None

    def wake(self, accounts: Collection[str]) -> None:
        """After a commit, from any thread."""
        if accounts and self._loop and not self._loop.is_closed():
            with suppress(RuntimeError):  # it is being closed
                self._loop.call_soon_threadsafe(self._wake, accounts)

    def _wake(self, accounts: Collection[str]) -> None:
        for account in accounts:
            for reader in self._readers.get(account, ()):
                reader.wake()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            if shutdown.has_begun.is_set():
                for reader in [one for readers in self._readers.values() for one in readers]:
                    reader.is_ended = True
                    reader.wake()
                continue
            try:
                self._compare(await in_thread(self._ask, list(self._readers)))
            except DatabaseUnavailable:
                continue  # `tis.database` has logged it
            except Exception as fault:
                log_exception("the numbers of notices could not be read; readers wait for the next look", fault, "-")

    def _ask(self, accounts: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._reading() as session:
            for first in range(0, len(accounts), _MAX_ASKED):
                found |= latest_numbers(session, accounts[first : first + _MAX_ASKED])
        return found

    def _compare(self, found: dict[str, int]) -> None:
        changed = [account for account, latest in found.items() if self._latest.get(account) != latest]
        self._latest = {account: latest for account, latest in found.items() if account in self._readers}
        self._wake(changed)
