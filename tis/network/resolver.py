"""Looks up names in threads, so that names whose servers never answer do not occupy the threads of the others.

`getaddrinfo` cannot be stopped: a lookup of a dead name holds its thread for half a minute. It holds one of the few
slots only for a moment. After that it counts as slow, and there is a bound for slow ones of one domain and of all.
"""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

Resolve = Callable[[str, int], Sequence[str]]

_MAX_STARTING = 16
_MAX_SLOW = 64
_MAX_SLOW_OF_A_DOMAIN = 4


class NameNotResolved(OSError):
    """The name servers of a host do not answer, or too many lookups wait for such servers."""


def resolve_name(host: str, port: int) -> list[str]:
    """Every address of a host. Blocks for as long as name servers take."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class NameResolver:
    def __init__(self, resolve: Resolve = resolve_name, *, seconds: float = 5.0, slow_seconds: float = 0.5) -> None:
        self._resolve = resolve
        self._seconds = seconds
        self._slow_seconds = slow_seconds
        self._starting = asyncio.Semaphore(_MAX_STARTING)
        self._lookups: dict[tuple[str, int], asyncio.Future[Sequence[str]]] = {}
        self._slow: Counter[str] = Counter()  # by domain

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Returns the addresses of a host. Those who ask for it at the same time share one lookup."""
        try:
            async with asyncio.timeout(self._seconds):
                lookup = self._lookups.get((host, port)) or await self._begin(host, port)
                return await asyncio.shield(lookup)
        except TimeoutError:
            raise NameNotResolved("its name servers do not answer") from None

    async def _begin(self, host: str, port: int) -> asyncio.Future[Sequence[str]]:
        """Returns once the lookup is done, or slow."""
        domain = ".".join(host.split(".")[-2:])
        async with self._starting:
            if lookup := self._lookups.get((host, port)):
                return lookup
            if self._slow[domain] >= _MAX_SLOW_OF_A_DOMAIN or self._slow.total() >= _MAX_SLOW:
                raise NameNotResolved("too many lookups wait for name servers that do not answer")
            lookup = self._start(host, port)
            try:
                await asyncio.wait([lookup], timeout=self._slow_seconds)
            finally:
                if not lookup.done():  # also if nobody waits for it any more
                    self._slow[domain] += 1
                    lookup.add_done_callback(lambda _: self._is_done(domain))
        return lookup

    def _is_done(self, domain: str) -> None:
        self._slow[domain] -= 1
        if not self._slow[domain]:
            del self._slow[domain]

    def _start(self, host: str, port: int) -> asyncio.Future[Sequence[str]]:
        loop = asyncio.get_running_loop()
        lookup = self._lookups[host, port] = loop.create_future()

        def end(addresses: Sequence[str], error: Exception | None) -> None:
            del self._lookups[host, port]
            if error:
                lookup.set_exception(error)
                lookup.exception()  # maybe nobody waits for it any more
            else:
                lookup.set_result(addresses)

        def run() -> None:
            addresses: Sequence[str] = []
            error: Exception | None = None
            try:
                addresses = self._resolve(host, port)
            except Exception as fault:  # whoever asked gets it
                error = fault
            with suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(end, addresses, error)

        # Daemon: the process can end while a name server does not answer.
        threading.Thread(target=run, name="resolve", daemon=True).start()
        return lookup
