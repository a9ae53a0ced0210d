"""Connections: how many an address may have, how long one may wait, which close when descriptors run short."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_network
from itertools import takewhile
from typing import Protocol

from tis.errors import ServiceError
from tis.http.client_address import home_of, parse_address
from tis.http.errors import TooManyConnections
from tis.http.transport.descriptors import first_reserved
from tis.http.transport.limits import TransportLimits
from tis.observability.metrics import TRANSPORT_REFUSALS

log = logging.getLogger("tis.http")

_MAX_SWEEP_SECONDS = 1.0
GRACE_SECONDS = 0.05


class WaitingConnection(Protocol):
    def on_overdue(self) -> None:
        """It has waited for a request, or for the rest of one, for `header_seconds`."""

    def abort(self) -> None:
        """Closes it at once, without a response."""


class Connections:
    """The connections of one server. All methods run on its event loop.

    A connection waits from its beginning, or the end of a response, until the next request has all its headers; from
    the first byte of a request it waits anew. One that is being answered does not wait, however long that takes.
    """

    def __init__(
        self,
        limits: TransportLimits,
        max_descriptors: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._unbounded = [ip_network(one, strict=False) for one in limits.unbounded_networks]
        self._home_of = lru_cache(maxsize=4096)(self._find_home)
        self._homes: dict[WaitingConnection, str] = {}
        self._per_home: Counter[str] = Counter()
        self._waiting: dict[WaitingConnection, float] = {}  # since when; the longest first
        self._timer: asyncio.TimerHandle | None = None
        self._num_shed = 0
        self._open: set[WaitingConnection] = set()
        self._first_descriptor: int | None = None  # so many were in use before the first connection
        self._first_reserved = first_reserved(max_descriptors)

    def admit(self, connection: WaitingConnection, address: str | None, descriptor: int) -> ServiceError | None:
        """Counts a new connection, or returns why it must be closed."""
        home = self._home_of(address) if address else None
        if home and self._per_home[home] >= self.limits.max_connections_per_address:
            return TooManyConnections(
                f"This address has {self._per_home[home]} connections already, as many as the server allows. If it "
                "is a proxy, name it in TRUSTED_PROXIES; MAX_CONNECTIONS_PER_ADDRESS sets the number.",
                retry_after=5,
            )
        if not self._has_room(descriptor):
            return TooManyConnections(
                "The server has as many open connections as its limit of open files allows (ulimit -n).",
                code="too_many_open_files",
                retry_after=5,
            )
        self._open.add(connection)
        if home:
            self._homes[connection] = home
            self._per_home[home] += 1
        self.wait_for(connection)
        return None

    def release(self, connection: WaitingConnection) -> None:
        """The connection is closed."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)
        if home := self._homes.pop(connection, None):
            self._per_home[home] -= 1
            if not self._per_home[home]:
                del self._per_home[home]

    def wait_for(self, connection: WaitingConnection) -> None:
        self._waiting.pop(connection, None)
        self._waiting[connection] = self._clock()
        if self._timer is None:
            self._set_timer()

    def stop_waiting_for(self, connection: WaitingConnection) -> None:
        self._waiting.pop(connection, None)

    def overdue(self) -> list[tuple[WaitingConnection, float]]:
        """With the time since when they wait."""
        since = self._clock() - self.limits.header_seconds
        return list(takewhile(lambda entry: entry[1] <= since, self._waiting.items()))

    def end(self, overdue: Iterable[tuple[WaitingConnection, float]]) -> None:
        """Without those whose wait has ended meanwhile."""
        for connection, began in overdue:
            if self._waiting.get(connection) == began:
                connection.on_overdue()

    def _set_timer(self) -> None:
        seconds = min(_MAX_SWEEP_SECONDS, self.limits.header_seconds / 4)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        if overdue := self.overdue():
            # After a pause of the whole process, what clients have sent meanwhile is still to be read.
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self.end, overdue)
        if self._num_shed:
            log.warning("%d idle connections closed: open files run short (ulimit -n)", self._num_shed)
            self._num_shed = 0
        self._timer = None
        if self._waiting:
            self._set_timer()

    def _has_room(self, descriptor: int) -> bool:
        if self._first_reserved is None:
            return True
        if self._first_descriptor is None:
            self._first_descriptor = descriptor
        # A new descriptor has the lowest free number, so all below it are in use; but a low number may be free for a
        # moment, as another connection has just closed.
        if descriptor < self._first_reserved and self._first_descriptor + len(self._open) < self._first_reserved:
            return True
        longest = next(iter(self._waiting), None)
        if longest is None:
            return False
        self.stop_waiting_for(longest)
        longest.abort()
        self._num_shed += 1
        TRANSPORT_REFUSALS.labels("idle_connection").inc()
        return True

    def _find_home(self, address: str) -> str | None:
        """The address, or of IPv6 its network; None if the connections from there are not counted."""
        if not self.limits.max_connections_per_address:
            return None
        ip = parse_address(address)
        if ip is None or any(ip in network for network in self._unbounded):
            return None  # not an address: a Unix socket
        return home_of(ip)
