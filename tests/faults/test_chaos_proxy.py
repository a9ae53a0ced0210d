"""The proxy does what it says: else faults of a cluster would be tested that never happen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random

import pytest

from tests.faults.cluster.chaos_proxy import ChaosProxy, proxied
from tests.faults.mortal_server import until

pytestmark = pytest.mark.anyio
_MAX_SECONDS = 20


class EchoTarget:
    """Sends back what it gets, and counts it."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self.num_open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.num_open += 1
        try:
            while data := await reader.read(100):
                self.num_bytes += len(data)
                writer.write(data)
        except OSError:
            pass
        finally:
            self.num_open -= 1
            writer.close()


@pytest.fixture
async def target() -> AsyncIterator[tuple[EchoTarget, int]]:
    target = EchoTarget()
    async with await asyncio.start_server(target.serve, "127.0.0.1", 0) as server:
        yield target, server.sockets[0].getsockname()[1]


@pytest.fixture
async def proxy(target: tuple[EchoTarget, int]) -> AsyncIterator[ChaosProxy]:
    async with proxied(target[1], Random(1)) as proxy:
        yield proxy


class Caller:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def of(cls, proxy: ChaosProxy) -> "Caller":
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port))

    async def says(self, word: bytes = b"hello") -> None:
        self._writer.write(word)
        await self._writer.drain()

    async def hears(self, num_bytes: int = 5) -> bytes:
        async with asyncio.timeout(_MAX_SECONDS):
            return await self._reader.readexactly(num_bytes)

    async def is_reset(self) -> bool:
        try:
            await self.hears(1)
        except (ConnectionResetError, asyncio.IncompleteReadError):
            return True
        finally:
            self.leave()
        return False

    def leave(self) -> None:
        self._writer.close()


async def test_what_is_sent_comes_through_and_back(proxy: ChaosProxy) -> None:
    caller = await Caller.of(proxy)
    await caller.says()
    assert await caller.hears() == b"hello"
    caller.leave()
    await until(lambda: proxy.num_open == 0)


async def test_a_slow_proxy_delivers_late_and_in_order(proxy: ChaosProxy) -> None:
    proxy.slow(0.01, 0.02)
    caller = await Caller.of(proxy)
    began = asyncio.get_running_loop().time()
    for number in range(10):
        await caller.says(b"%d" % number)
    assert await caller.hears(10) == b"0123456789"
    assert asyncio.get_running_loop().time() - began >= 0.02  # there and back
    caller.leave()


async def test_a_cut_resets_open_connections_and_no_later_ones(proxy: ChaosProxy) -> None:
    before = await Caller.of(proxy)
    await before.says()
    await before.hears()
    proxy.cut()
    assert await before.is_reset()
    after = await Caller.of(proxy)
    await after.says()
    assert await after.hears() == b"hello"
    after.leave()


async def test_new_connections_are_refused_until_it_heals(proxy: ChaosProxy) -> None:
    before = await Caller.of(proxy)
    await before.says()
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await Caller.of(proxy)
    assert await before.hears() == b"hello"
    await proxy.heal()
    after = await Caller.of(proxy)
    await after.says()
    assert await after.hears() == b"hello"
    before.leave()
    after.leave()


async def test_what_is_stalled_comes_when_it_heals(target: tuple[EchoTarget, int], proxy: ChaosProxy) -> None:
    proxy.stall()
    caller = await Caller.of(proxy)
    await caller.says()
    await until(lambda: proxy.num_open == 1)
    assert target[0].num_bytes == 0
    await proxy.heal()
    assert await caller.hears() == b"hello"
    caller.leave()


Spoil = Callable[[ChaosProxy], None]


@pytest.mark.parametrize(
    ("spoil", "num_bytes"),
    [
        (lambda proxy: proxy.black_hole(), 0),
        (lambda proxy: proxy.half_open("there"), 0),
        (lambda proxy: proxy.half_open("back"), 5),
    ],
    ids=["black hole", "there", "back"],
)
async def test_what_vanishes_never_comes_and_its_connection_ends_with_the_fault(
    target: tuple[EchoTarget, int], proxy: ChaosProxy, spoil: Spoil, num_bytes: int
) -> None:
    spoil(proxy)
    caller = await Caller.of(proxy)
    await caller.says()
    await until(lambda: proxy.num_swallowed == 5)
    assert target[0].num_bytes == num_bytes
    await proxy.heal()
    assert await caller.is_reset()
    await until(lambda: target[0].num_open == 0)
    after = await Caller.of(proxy)
    await after.says()
    assert await after.hears() == b"hello"
    after.leave()
