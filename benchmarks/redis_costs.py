"""What sessions in Redis cost: memory per event and session, CPU of Redis, commands, network and file per event.

    python benchmarks/redis_costs.py [--sessions 100] [--seconds 10]

The store is the server's own, Redis a real one (`appendonly yes`) on this machine. CPU is what Redis itself counts,
not the time on the clock, so other work on the machine hardly changes it. `docs/scale.md` reckons with these numbers.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the server and its tests

from tests.redis_server import RedisServer, running_redis
from tis.streaming.stores.redis import RedisStore
from tis.streaming.stores.redis_keys import REPLICAS, digest_of, keys_of
from tis.streaming.stores.redis_scripts import RENEW
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, TurnRecord

_DATA = b"x" * 235  # JSON of a chat chunk
_STATE = b"s" * 60
_REQUEST = b"r" * 2000
_LEASES = 1000
_COMMANDS = 2000
_TTL_SECONDS = 3600.0
_MAX_WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Counters:
    cpu_seconds: float
    file_bytes: int
    in_bytes: int
    out_bytes: int
    commands: int
    scripts: int
    events: int

    def __sub__(self, other: "Counters") -> "Counters":
        return Counters(*(getattr(self, name) - getattr(other, name) for name in self.__slots__))


def counters(server: RedisServer) -> Counters:
    with server.client() as client:
        info = client.info("everything")
    calls = sum(one["calls"] for name, one in info.items() if name.startswith("cmdstat_") and name != "cmdstat_info")
    return Counters(
        info["used_cpu_user"] + info["used_cpu_sys"],
        info["aof_current_size"],
        info["total_net_input_bytes"],
        info["total_net_output_bytes"],
        calls,
        info.get("cmdstat_evalsha", {}).get("calls", 0),
        info.get("cmdstat_xadd", {}).get("calls", 0),
    )


@asynccontextmanager
async def opened(server: RedisServer) -> AsyncIterator[RedisStore]:
    store = RedisStore(server.url, ttl_seconds=_TTL_SECONDS)
    await store.open(lambda: (), lambda: None, lambda key: None)
    try:
        yield store
    finally:
        await store.close()


@dataclass(slots=True)
class WrittenSession:
    store: RedisStore
    key: SessionKey
    turn: TurnRecord
    next_index: int = 0

    def write(self, num_events: int, committed: Any) -> None:
        first, self.next_index = self.next_index, self.next_index + num_events
        events = [Event(index, _DATA, _STATE) for index in range(first, self.next_index)]
        self.store.append(self.key, events, committed)

    def end(self) -> None:
        self.turn.last_index, self.turn.status = self.next_index - 1, "finished"
        self.store.end_turn(self.key, self.turn)


def begun(store: RedisStore, name: str, number: int) -> WrittenSession:
    key = SessionKey("owner", f"{name}-{number}")
    turn = TurnRecord(0, "f" * 32, _REQUEST, 0)
    store.begin_turn(SessionRecord(key, True, store.now()), turn, 2**20)
    return WrittenSession(store, key, turn)


@dataclass(frozen=True, slots=True)
class FinishedSessions:
    bytes_each: float  # of memory
    file_bytes_each: float


async def finished(server: RedisServer, num_sessions: int, num_events: int) -> FinishedSessions:
    async with opened(server) as store:
        before = counters(server)
        sessions = [begun(store, f"m{num_events}", number) for number in range(num_sessions)]
        for session in sessions:
            session.write(num_events, lambda index: None)
            session.end()
            await store.flush()
        used = counters(server) - before
    names = [name for session in sessions for name in keys_of(digest_of(session.key)).all()]
    with server.client() as client:
        num_bytes = sum(client.memory_usage(name, samples=0) or 0 for name in names)
    return FinishedSessions(num_bytes / num_sessions, used.file_bytes / num_sessions)


async def writes(
    server: RedisServer, num_sessions: int, events_each: int, rounds: int, *, are_followed: bool = False
) -> float:
    """CPU seconds of one script with so many events, where a pipeline has one for each session."""
    async with opened(server) as store, opened(server) as other:
        name = f"w{events_each}-{num_sessions}-{are_followed}"
        sessions = [begun(store, name, number) for number in range(num_sessions)]
        await store.flush()
        num_read = 0
        news = asyncio.Event()

        async def follow(session: WrittenSession) -> None:
            nonlocal num_read
            async for events in other.follow(session.key, -1):
                num_read += len(events)
                news.set()

        readers = [asyncio.create_task(follow(session)) for session in sessions] if are_followed else []

        async def write_all() -> None:
            for session in sessions:
                session.write(events_each, lambda index: None)
            await store.flush()
            while are_followed and num_read < sum(session.next_index for session in sessions):
                news.clear()
                async with asyncio.timeout(_MAX_WAIT_SECONDS):
                    await news.wait()

        await write_all()
        before = counters(server)
        for _ in range(rounds):
            await write_all()
        used = counters(server) - before
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        return used.cpu_seconds / (rounds * num_sessions)


@dataclass(frozen=True, slots=True)
class PacedRun:
    redis: Counters
    num_events: int
    delays_ms: Sequence[float]
    store_cpu_seconds: float  # of this process, without what the measurement itself takes


async def paced(server: RedisServer, num_sessions: int, rate: float, seconds: float, followers: int) -> PacedRun:
    async with opened(server) as store, opened(server) as other:
        name = f"p{num_sessions}-{followers}"
        sessions = [begun(store, name, number) for number in range(num_sessions)]
        await store.flush()

        async def follow(session: WrittenSession) -> None:
            async for _ in other.follow(session.key, -1):
                pass

        readers = [asyncio.create_task(follow(session)) for session in sessions[:followers]]
        await asyncio.sleep(0.5)
        delays: list[float] = []

        def commit_of(written_at: float) -> Any:
            return lambda index: delays.append((time.monotonic() - written_at) * 1000)

        async def answer(number: int, write: Callable[[int, Any], None]) -> None:
            begin = time.monotonic() + number / num_sessions / rate
            for token in range(round(rate * seconds)):
                await asyncio.sleep(max(0.0, begin + token / rate - time.monotonic()))
                write(1, commit_of(time.monotonic()))

        def write_nowhere(num_events: int, committed: Callable[[int], None]) -> None:
            committed(len([Event(0, _DATA, _STATE) for _ in range(num_events)]))

        empty_cpu = time.process_time()
        await asyncio.gather(*(answer(number, write_nowhere) for number in range(num_sessions)))
        empty_cpu = time.process_time() - empty_cpu
        delays.clear()
        before, cpu = counters(server), time.process_time()
        await asyncio.gather(*(answer(number, session.write) for number, session in enumerate(sessions)))
        await store.flush()
        used, cpu = counters(server) - before, time.process_time() - cpu
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        return PacedRun(used, sum(session.next_index for session in sessions), delays, cpu - empty_cpu)


def cpu_of(server: RedisServer, command: Callable[[int], object]) -> float:
    """Seconds of one that is sent alone."""
    command(0)
    before = counters(server)
    for number in range(_COMMANDS):
        command(number)
    return (counters(server) - before).cpu_seconds / _COMMANDS


def print_commands(server: RedisServer) -> None:
    with server.client() as client:
        client.zadd(REPLICAS, {f"{number:016x}": 10**15 for number in range(_LEASES)})
        renew = client.register_script(RENEW)
        lease = cpu_of(server, lambda number: renew([REPLICAS], [f"{number % _LEASES:016x}", 10**9]))
        client.delete(REPLICAS)
        read = cpu_of(server, lambda number: client.hmget("tis:{nobody}:meta", "claim", "v"))
    print(f"| CPU of renewing a lease among {_LEASES} | {lease * 1e6:.0f} µs |")
    print(f"| CPU of reading two fields of a session | {read * 1e6:.0f} µs |")


def print_memory(server: RedisServer, num_sessions: int) -> None:
    few, many = 100, 1000
    short = asyncio.run(finished(server, num_sessions, few))
    long = asyncio.run(finished(server, num_sessions, many))
    per_event = (long.bytes_each - short.bytes_each) / (many - few)
    per_session = short.bytes_each - few * per_event
    print(f"| memory of an event ({len(_DATA)} + {len(_STATE)} bytes) | {per_event:.0f} bytes |")
    print(f"| memory of a finished session without its events | {per_session:,.0f} bytes |")
    print(f"| append-only file for an event, written many at once | {long.file_bytes_each / many:.0f} bytes |")


def print_paced(server: RedisServer, num_sessions: int, rate: float, seconds: float) -> None:
    for followers in (0, num_sessions):
        run = asyncio.run(paced(server, num_sessions, rate, seconds, followers))
        events = run.num_events
        what = f"{num_sessions} sessions, {rate:g} tokens/s each" + (", each followed elsewhere" if followers else "")
        used = run.redis
        print(f"| {what}: commands per token (those inside scripts counted) | {used.commands / events:.2f} |")
        print(f"| ... tokens in one script | {events / used.scripts:.2f} |")
        print(f"| ... CPU of Redis per token | {used.cpu_seconds / events * 1e6:.0f} µs |")
        print(
            f"| ... network in / out per token | {used.in_bytes / events:.0f} / {used.out_bytes / events:.0f} bytes |"
        )
        print(f"| ... append-only file per token | {used.file_bytes / events:.0f} bytes |")
        print(f"| ... CPU of the store in the server per token | {run.store_cpu_seconds / events * 1e6:.0f} µs |")
        late = sorted(run.delays_ms)
        print(f"| ... stored after, median / p99 | {statistics.median(late):.1f} / {late[-len(late) // 100]:.1f} ms |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--rate", type=float, default=20.0, help="tokens a second of each session")
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    # The file grows without being rewritten, so that its growth can be measured.
    options = ("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
    with running_redis(*options) as server:
        print("| cost | |\n|---|---|")
        print_memory(server, arguments.sessions)
        for number in (1, 64, 256):
            one, many = (asyncio.run(writes(server, number, events, 8192 // number)) for events in (1, 9))
            print(f"| CPU of a script with one event, {number} in a pipeline | {one * 1e6:.1f} µs |")
            print(f"| ... of each further event in it | {(many - one) / 8 * 1e6:.1f} µs |", flush=True)
        followed = asyncio.run(writes(server, 64, 1, 64, are_followed=True))
        print(
            f"| CPU of a script of one event, 64 in a pipeline, and of a reader elsewhere | {followed * 1e6:.1f} µs |"
        )
        print_paced(server, arguments.sessions, arguments.rate, arguments.seconds)
        print_commands(server)


if __name__ == "__main__":
    main()
