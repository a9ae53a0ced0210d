"""What a cluster costs, and whether it keeps its promises.

    python benchmarks/cluster.py latency      # of a token: an upstream asked directly, through us, and with Redis
    python benchmarks/cluster.py sessions     # a second, with one server and with two
    python benchmarks/cluster.py prove        # 200 sessions through kills and a bad network: `make soak-cluster`

Everything runs on this machine: servers, Redis, the upstream and the client share its cores.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import cast

import psutil
from chat import run_on_fast_loop
from ticking_upstream import ticking_upstream

sys.path.insert(0, str(Path(__file__).parents[1]))  # the server and its tests

from tests.faults.cluster.machines import ChaosClusterPlan
from tests.faults.cluster.proof import ProofPlan, prove
from tests.faults.mortal_server import MortalServer
from tests.redis_server import RedisServer, running_redis

_MARK = b'"content":"'
_DURABLE = ("--appendonly", "yes", "--appendfsync", "everysec")
_SILENCE_SECONDS = 30.0
_WARM_UP_TOKENS = 10  # of each stream, which are not counted
_ECHOED = "The quick brown fox."
_PATH = "/v1/chat/completions"


# The client.


class StreamReader(asyncio.Protocol):
    """Reads one answer to its end. Of a ticking upstream, notes how late each token is."""

    def __init__(self, request: bytes, notes_delays: bool) -> None:
        self.delays: list[float] = []
        self.ended = asyncio.get_running_loop().create_future()
        self._request, self._notes_delays = request, notes_delays
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is no such class
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines if self._notes_delays else ():
            _, mark, behind = line.partition(_MARK)
            sent_at = behind.partition(b" ")[0] if mark else b""
            if sent_at.isdigit():
                self.delays.append((now - int(sent_at)) / 1e6)
        if b"data: [DONE]" in data or b"data: [DONE]" in self._rest or any(b"data: [DONE]" in one for one in lines):
            self._end(True)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(False)

    def _end(self, is_whole: bool) -> None:
        if not self.ended.done():
            self.ended.set_result(is_whole)
            self._transport.abort()


async def read_stream(port: int, body: dict[str, object], *, notes_delays: bool = False) -> Sequence[float]:
    written = json.dumps({"stream": True, **body}).encode()
    head = f"POST {_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(written)}\r\n\r\n".encode() + written
    loop = asyncio.get_running_loop()
    _, reader = await loop.create_connection(lambda: StreamReader(request, notes_delays), "127.0.0.1", port)
    async with asyncio.timeout(_SILENCE_SECONDS):
        if not await reader.ended:
            raise RuntimeError(f"port {port} ended an answer in the middle")
    return reader.delays


def asked(text: str, **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], **more}


# Latency.


def _gateway(folder: Path, name: str, upstream_port: int, redis: RedisServer | None) -> MortalServer:
    own = folder / name
    own.mkdir()
    catalogue = own / "models.yaml"
    catalogue.write_text(json.dumps({"models": {"ticks": {"upstream": [f"http://127.0.0.1:{upstream_port}"]}}}))
    shared = {"SESSION_STORE": "redis", "REDIS_URL": redis.url} if redis else {"SESSION_STORE": "memory"}
    database = f"sqlite:///{own}/marketplace.db"
    return MortalServer(own, MODEL_CONFIG=str(catalogue), MODEL_REPO_ID="ticks", DATABASE_URL=database, **shared)


@asynccontextmanager
async def _running(*servers: MortalServer) -> AsyncIterator[None]:
    try:
        for server in servers:
            await server.start()
        yield
    finally:
        for server in servers:
            server.stop()


async def measure_latency(num_streams: int, num_tokens: int, rate: float, rounds: int) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(ticking_upstream(rate))
        redis = stack.enter_context(running_redis(*_DURABLE))
        memory, shared = _gateway(folder, "memory", upstream, None), _gateway(folder, "redis", upstream, redis)
        await stack.enter_async_context(_running(memory, shared))
        ways = {"directly": upstream, "through us, memory": memory.port, "through us, Redis": shared.port}
        delays: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(rounds):
            order = Random(number).sample([*ways], len(ways))
            for way in order:
                streams = [
                    _ticks(ways[way], f"{number} {one}", num_tokens, one / num_streams / rate)
                    for one in range(num_streams)
                ]
                for found in await asyncio.gather(*streams):
                    delays[way] += found[_WARM_UP_TOKENS:]
    print(f"\n{num_streams} streams of {rate:g} tokens a second, {rounds} rounds, ms from sent to received:\n")
    print("| way | tokens | median | p99 | more than directly, median | p99 |\n|---|---|---|---|---|---|")
    base = _quantiles(delays["directly"])
    for way, found in delays.items():
        middle, high = _quantiles(found)
        more = f"{middle - base[0]:.2f} | {high - base[1]:.2f}"
        print(f"| {way} | {len(found)} | {middle:.2f} | {high:.2f} | {more} |")
    with_redis, without = (_quantiles(delays[f"through us, {store}"]) for store in ("Redis", "memory"))
    print(f"| of this Redis | | | | {with_redis[0] - without[0]:.2f} | {with_redis[1] - without[1]:.2f} |", flush=True)


async def _ticks(port: int, text: str, num_tokens: int, wait_seconds: float) -> Sequence[float]:
    await asyncio.sleep(wait_seconds)
    body = asked(text, model="ticks", max_tokens=num_tokens)
    return await read_stream(port, body, notes_delays=True)


def _quantiles(delays: Sequence[float]) -> tuple[float, float]:
    return statistics.median(delays), statistics.quantiles(delays, n=100)[98]


# Sessions a second.


async def measure_sessions(num_clients: int, seconds: float, rounds: int) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = stack.enter_context(running_redis(*_DURABLE))
        servers = []
        for number in range(2):
            own = folder / str(number)
            own.mkdir()
            shared = {"SESSION_STORE": "redis", "REDIS_URL": redis.url, "MAX_SESSIONS": "100000"}
            servers.append(MortalServer(own, DATABASE_URL=f"sqlite:///{own}/marketplace.db", **shared))
        await stack.enter_async_context(_running(*servers))
        print(f"\n{num_clients} clients, each one session of {len(_ECHOED)} tokens after the other:\n")
        print(
            "| servers | sessions a second | CPU of the servers, ms a session | of Redis | of this client |\n"
            "|---|---|---|---|---|"
        )
        for number in range(rounds):
            for used in (servers[:1], servers) if number % 2 else (servers, servers[:1]):
                await _print_sessions(used, redis, num_clients, seconds)


async def _print_sessions(
    servers: Sequence[MortalServer], redis: RedisServer, num_clients: int, seconds: float
) -> None:
    processes = [psutil.Process(server.pid) for server in servers]
    num_done = 0
    began, client_cpu = time.monotonic(), time.process_time()
    cpu, redis_cpu = sum(map(_cpu_seconds, processes)), _redis_cpu(redis)

    async def ask(number: int) -> None:
        nonlocal num_done
        while time.monotonic() < began + seconds:
            await read_stream(servers[number % len(servers)].port, asked(_ECHOED))
            num_done += 1

    await asyncio.gather(*(ask(number) for number in range(num_clients)))
    took = time.monotonic() - began
    costs = (sum(map(_cpu_seconds, processes)) - cpu, _redis_cpu(redis) - redis_cpu, time.process_time() - client_cpu)
    each = " | ".join(f"{cost / num_done * 1000:.2f}" for cost in costs)
    print(f"| {len(servers)} | {num_done / took:.0f} | {each} |", flush=True)


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _redis_cpu(redis: RedisServer) -> float:
    with redis.client() as client:
        info = client.info("cpu")
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


# The proof.


async def run_proof(arguments: argparse.Namespace) -> bool:
    plan = ProofPlan(
        num_sessions=arguments.sessions,
        num_at_once=arguments.at_once,
        num_blows=arguments.blows,
        cluster=ChaosClusterPlan(seed=arguments.seed),
    )
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="tis-cluster-"))
    folder.mkdir(exist_ok=True)
    proof = await prove(folder, plan, say)
    print(proof.report())
    for fault in proof.faults():
        print(f"FAULT: {fault}; the logs are in {folder}")
    return not proof.faults()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    latency = commands.add_parser("latency")
    latency.add_argument("--streams", type=int, nargs="+", default=[1, 16])
    latency.add_argument("--tokens", type=int, default=110)
    latency.add_argument("--rate", type=float, default=20.0)
    latency.add_argument("--rounds", type=int, default=3)
    sessions = commands.add_parser("sessions")
    sessions.add_argument("--clients", type=int, default=16)
    sessions.add_argument("--seconds", type=float, default=10.0)
    sessions.add_argument("--rounds", type=int, default=3)
    proof = commands.add_parser("prove")
    proof.add_argument("--sessions", type=int, default=200, help="at least")
    proof.add_argument("--at-once", type=int, default=60)
    proof.add_argument("--blows", type=int, default=0, help="0: every one once")
    proof.add_argument("--seed", type=int, default=1)
    proof.add_argument("--folder", type=Path, help="for logs; a temporary one without it")
    arguments = parser.parse_args()
    if arguments.command == "sessions":
        run_on_fast_loop(measure_sessions(arguments.clients, arguments.seconds, arguments.rounds))
    elif arguments.command == "prove":
        return 0 if run_on_fast_loop(run_proof(arguments)) else 1
    else:
        for num_streams in arguments.streams:
            run_on_fast_loop(measure_latency(num_streams, arguments.tokens, arguments.rate, arguments.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
