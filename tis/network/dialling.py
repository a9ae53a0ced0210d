"""From a host to addresses that were checked, to be dialled as they are.

Between a check by name and a connection by name, a name server can change its mind: whoever connects takes the address.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterator, Sequence

from tis.network.addresses import is_public
from tis.network.resolver import NameNotResolved, NameResolver, Resolve, resolve_name

Dial = Callable[[str, int], tuple[str, int]]

_MAX_ADDRESSES = 4  # tried one after the other


class NotDialled(Exception):
    """No address of the host may be dialled, or none answered."""


def dial_as_checked(address: str, port: int) -> tuple[str, int]:
    return address, port


class Dialler:
    """`resolve` and `dial` are for tests: names that nobody has, and a checked address that is answered at home."""

    def __init__(
        self,
        *,
        resolve: Resolve = resolve_name,
        dial: Dial = dial_as_checked,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._resolver = NameResolver(resolve)
        self._dial = dial
        self._certificates = certificates

    async def checked(self, host: str, port: int, may_be: Callable[[str], bool] = is_public) -> list[tuple[str, int]]:
        """Where to connect to. One address that may not be dialled is enough to dial none."""
        try:
            addresses = await self._resolver.addresses(host, port)
        except NameNotResolved as error:
            raise NotDialled(str(error)) from None
        if not addresses or not all(may_be(address) for address in addresses):
            raise NotDialled("an address is not public")
        return [self._dial(address, port) for address in addresses[:_MAX_ADDRESSES]]

    async def trusted(self) -> ssl.SSLContext:
        return await asyncio.to_thread(self._trusted)

    def _trusted(self) -> ssl.SSLContext:
        if self._certificates is None:
            self._certificates = ssl.create_default_context()  # reads files
        return self._certificates


def patiently(targets: Sequence[tuple[str, int]], seconds: float) -> Iterator[tuple[str, int, float]]:
    """An address that does not answer must leave time for the next one."""
    for number, (host, port) in enumerate(targets):
        yield host, port, seconds / (len(targets) - number + 1)
