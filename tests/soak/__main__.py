"""Uses the real server for an hour, kills it meanwhile, and reports: `python -m tests.soak --minutes 60 --out FOLDER`.

Clients of every kind ask at once; each kind was asked alone before, and what it was answered then is the reference. For
the first half the server is killed again and again. In the second half it lives: a long life shows what grows. Then it
is killed once more, and what was acknowledged is looked for in what is left. Ctrl-C ends it early, with its report.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import httpx2

from tests.soak import chats, market, senses, stored, streams
from tests.soak.floor import Floor, Unanswered
from tests.soak.gauges import Gauges
from tests.soak.ledger import SoakLedger
from tests.soak.report import SoakReport
from tests.soak.soaked_server import SoakedServer, kill_at_random

Action = Callable[[Floor, Random, int], Awaitable[None]]
NUM_CLIENTS = 10
KILLED_PART = 0.5  # of the time
_MAX_LOG_CHARS = 2_000_000
_ENDING_SECONDS = 700  # for what still runs when the time is over


def actions(shop: market.SoakedMarket) -> dict[Action, int]:
    """How often each comes, among all."""
    return {
        chats.chat_stream: 14,
        chats.completion_stream: 4,
        chats.message_stream: 6,
        chats.message: 3,
        chats.chat_by_sdk: 10,
        chats.tool_call: 4,
        chats.json_schema: 4,
        chats.picture: 4,
        chats.ollama: 4,
        chats.cancelled_stream: 4,
        chats.left_stream: 4,
        chats.refusals: 5,
        chats.reads: 4,
        stored.response_stream: 6,
        stored.background_response: 4,
        stored.conversation: 3,
        senses.embeddings: 6,
        senses.rerank: 4,
        senses.transcription: 4,
        senses.speech: 4,
        senses.card: 1,
        shop.buy: 16,
        shop.search: 8,
        shop.assistant: 5,
        streams.look_back: 5,
    }


# What these see differs each time, or is known beforehand.
WITHOUT_REFERENCE: tuple[Action, ...] = (
    *(chats.cancelled_stream, chats.left_stream, chats.refusals, chats.reads),
    *(stored.conversation, senses.card, streams.look_back),
)


async def run_client(floor: Floor, kinds: dict[Action, int], chance: Random) -> None:
    while floor.is_open:
        [action] = chance.choices([*kinds], weights=[*kinds.values()])
        await run_once(floor, action, chance, chance.randrange(chats.NUM_VARIANTS))
        await asyncio.sleep(chance.uniform(0, 0.3))


async def run_once(floor: Floor, action: Action, chance: Random, variant: int) -> None:
    try:
        await action(floor, chance, variant)
    except Unanswered:
        pass  # the ledger has it
    except Exception as error:  # the boundary: whatever an answer does to a client is a fault, and the soak goes on
        floor.ledger.fault("status", action.__name__, f"{type(error).__name__}: {error}")


async def change_keys(floor: Floor, chance: Random) -> None:
    """One client alone writes the file of keys."""
    while floor.is_open:
        await run_once(floor, chats.guest_key, chance, 0)
        await asyncio.sleep(20)


async def soak(minutes: float, folder: Path, out: Path, seed: int) -> bool:
    server, ledger, shop = SoakedServer(folder), SoakLedger(), market.SoakedMarket()
    try:
        await server.start()
        limits = httpx2.Limits(max_connections=100)
        async with httpx2.AsyncClient(base_url=server.url, timeout=300, limits=limits) as http:
            floor = Floor(server, ledger, http)
            await asyncio.to_thread(shop.open, floor)
            await take_references(floor, shop, seed)
            gauges = Gauges(server, every_seconds=min(10.0, minutes))
            began = time.monotonic()
            await work_and_kill(floor, shop, gauges, minutes * 60, seed)
            if not ledger.faults["hangs"]:
                await look_at_what_is_left(floor)
    finally:
        server.stop()
    log = server.log.read_text(errors="replace")
    stock = shop.check_stock(floor)
    report = SoakReport(server, ledger, gauges, (time.monotonic() - began) / 60, stock, log)
    page = report.write(out)
    (out / "server.log").write_text(log[-_MAX_LOG_CHARS:])
    say(f"{report.as_json()['verdict']}: {report.faults() or 'no fault'}; {page}")
    return not report.faults()


async def take_references(floor: Floor, shop: market.SoakedMarket, seed: int) -> None:
    for action in actions(shop):
        if action not in (*WITHOUT_REFERENCE, shop.buy):
            for variant in range(chats.NUM_VARIANTS):
                await run_once(floor, action, Random(seed), variant)
    say(f"references: {len(floor.references)}; faults: {dict(floor.ledger.faults)}")
    floor.is_quiet = False


async def work_and_kill(floor: Floor, shop: market.SoakedMarket, gauges: Gauges, seconds: float, seed: int) -> None:
    """Until the time is over or somebody ends it, and each client has the answer that it waits for."""
    floor.end = time.monotonic() + seconds
    latest_end = floor.end + _ENDING_SECONDS
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, floor.close)
    pause = (5.0, 25.0) if seconds < 600 else (20.0, 150.0)
    helpers = [
        asyncio.create_task(gauges.watch()),
        asyncio.create_task(kill_at_random(floor.server, Random(seed), KILLED_PART * seconds, pause)),
    ]
    kinds, chances = actions(shop), [Random(f"{seed} {number}") for number in range(NUM_CLIENTS)]
    clients = [asyncio.create_task(run_client(floor, kinds, chance)) for chance in chances]
    clients.append(asyncio.create_task(change_keys(floor, Random(seed))))
    while not all(client.done() for client in clients):
        await asyncio.wait(clients, timeout=min(30, seconds / 6))
        minute, num_kills = (time.monotonic() - floor.ledger.began) / 60, len(floor.server.kills)
        say(f"{minute:.1f} min, {floor.ledger.num_answers} answers, {num_kills} kills, {dict(floor.ledger.faults)}")
        if why := floor.server.ended_by_itself():
            floor.ledger.fault("status", "server", why)
            break
        if time.monotonic() > latest_end:
            num_left = sum(not client.done() for client in clients)
            floor.ledger.fault("hangs", "clients", f"{num_left} do not end")
            break
    for helper in helpers:
        if helper.done() and (failed := helper.exception()):
            floor.ledger.fault("status", "soak", f"it stopped to watch or to kill: {failed!r}")
    for task in (*helpers, *clients):
        task.cancel()
    await asyncio.gather(*helpers, *clients, return_exceptions=True)


async def look_at_what_is_left(floor: Floor) -> None:
    """A last kill, and then each stream that is remembered once more."""
    await floor.server.kill_and_start()
    floor.is_quiet = True
    remembered = [*floor.remembered]
    for one in remembered:
        floor.remembered.clear()
        floor.remembered.append(one)
        await run_once(floor, streams.look_back, Random(0), 0)


def say(text: str) -> None:
    sys.stdout.write(f"[soak] {text}\n")
    sys.stdout.flush()


def main() -> int:
    # Ending by SIGTERM unwinds as Ctrl-C does, so that the server ends, too.
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--out", type=Path, help="for report.md, report.json and server.log; a temporary folder without it"
    )
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args()
    out = parsed.out or Path(tempfile.mkdtemp(prefix="tis-soak-report-"))
    with tempfile.TemporaryDirectory(prefix="tis-soak-", ignore_cleanup_errors=True) as folder:
        return 0 if asyncio.run(soak(parsed.minutes, Path(folder), out, parsed.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
