"""Names whose servers never answer do not hold up the others."""

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from tis.network.dialling import Dialler, NotDialled
from tis.network.resolver import NameNotResolved, NameResolver

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.215.14"


class NameServers:
    """Those of names that begin with `dead` do not answer before the end of the test."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.asked: list[str] = []

    def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host.startswith("dead"):
            self.end.wait()
        if host.startswith("nobody"):
            raise OSError("no such name")
        return [PUBLIC]


@pytest.fixture
def servers() -> Iterator[NameServers]:
    servers = NameServers()
    yield servers
    servers.end.set()


def ask(resolver: NameResolver, *hosts: str) -> list[asyncio.Task[Sequence[str]]]:
    return [asyncio.create_task(resolver.addresses(host, 443)) for host in hosts]


async def test_forty_dead_names_do_not_hold_up_a_good_one(servers: NameServers) -> None:
    resolver = NameResolver(servers.resolve, slow_seconds=0.001, seconds=60)
    dead = ask(resolver, *(f"dead.domain-{number}.example" for number in range(40)))
    assert await resolver.addresses("good.example", 443) == [PUBLIC]
    assert not any(task.done() for task in dead)
    servers.end.set()
    await asyncio.gather(*dead)


async def test_a_dead_name_is_given_up_and_refused_while_its_lookup_lasts(servers: NameServers) -> None:
    resolver = NameResolver(servers.resolve, slow_seconds=0.001, seconds=0.01)
    for _ in range(2):
        with pytest.raises(NameNotResolved, match="do not answer"):
            await resolver.addresses("dead.example", 443)
    assert servers.asked == ["dead.example"]


async def test_the_names_of_one_domain_occupy_few_threads(servers: NameServers) -> None:
    resolver = NameResolver(servers.resolve, slow_seconds=0.001, seconds=0.05)
    dead = await asyncio.gather(
        *ask(resolver, *(f"dead-{number}.example.com" for number in range(30))), return_exceptions=True
    )
    assert all(isinstance(error, NameNotResolved) for error in dead)
    assert len(servers.asked) <= 20  # sixteen that started together, and what came before they were slow
    with pytest.raises(NameNotResolved, match="too many"):
        await resolver.addresses("another.example.com", 443)
    assert await resolver.addresses("good.example.org", 443) == [PUBLIC]


async def test_those_who_ask_for_the_same_name_share_a_lookup(servers: NameServers) -> None:
    resolver = NameResolver(servers.resolve, slow_seconds=60, seconds=60)
    same = ask(resolver, *["dead.example"] * 5)
    await asyncio.sleep(0)
    servers.end.set()
    assert await asyncio.gather(*same) == [[PUBLIC]] * 5
    assert servers.asked == ["dead.example"]


async def test_a_lookup_that_fails_is_made_anew(servers: NameServers) -> None:
    resolver = NameResolver(servers.resolve)
    for _ in range(2):
        with pytest.raises(OSError, match="no such name"):
            await resolver.addresses("nobody.example", 443)
    assert len(servers.asked) == 2


async def test_the_dialler_names_the_reason(servers: NameServers) -> None:
    dialler = Dialler(resolve=servers.resolve)
    dialler._resolver = NameResolver(servers.resolve, slow_seconds=0.001, seconds=0.01)
    with pytest.raises(NotDialled, match="name servers do not answer"):
        await dialler.checked("dead.example", 443)
