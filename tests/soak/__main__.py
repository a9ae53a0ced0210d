"""Uses the real server for an hour, kills it meanwhile, and reports: `python -m tests.soak --minutes 60 --out FOLDER`.

Clients of every kind ask at once; each kind was asked alone before, and what it was answered then is the reference. For
the first half the server is killed again and again. In the second half it lives: a long life shows what grows. Then it
is killed once more, and what was acknowledged is looked for in what is left.
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
_ENDING_SECONDS = 300  # for what still runs when the time is over


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


async def run_client(floor: Floor, kinds: dict[Action, int], chance: Random, end: float) -> None:
    while time.monotonic() < end:
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


async def change_keys(floor: Floor, chance: Random, end: float) -> None:
    """One client alone writes the file of keys."""
    while time.monotonic() < end:
        await run_once(floor, chats.guest_key, chance, 0)
        await asyncio.sleep(20)


async def soak(minutes: float, folder: Path, out: Path, seed: int) -> bool:
    server, ledger, shop = SoakedServer(folder), SoakLedger(), market.SoakedMarket()
    try:
        await server.start()
        limits = httpx2.Limits(max_connections=100)
        async with httpx2.AsyncClient(base_url=server.url, timeout=120, limits=limits) as http:
            floor = Floor(server, ledger, http)
            await asyncio.to_thread(shop.open, floor)
            kinds = actions(shop)
            for action in kinds:
                for variant in range(chats.NUM_VARIANTS if action not in (*WITHOUT_REFERENCE, shop.buy) else 0):
                    await run_once(floor, action, Random(seed), variant)
            say(f"references: {len(floor.references)}; faults: {dict(ledger.faults)}")
            floor.is_quiet, seconds = False, minutes * 60
            gauges = Gauges(server, every_seconds=min(10.0, seconds / 60))
            watching = asyncio.create_task(gauges.watch())
            end, chances = time.monotonic() + seconds, [Random(f"{seed} {number}") for number in range(NUM_CLIENTS)]
            clients = [asyncio.create_task(run_client(floor, kinds, chance, end)) for chance in chances]
            clients.append(asyncio.create_task(change_keys(floor, Random(seed), end)))
            pause = (5.0, 25.0) if minutes < 10 else (20.0, 150.0)
            killing = asyncio.create_task(kill_at_random(server, Random(seed), KILLED_PART * seconds, pause))
            while not all(client.done() for client in clients):
                await asyncio.sleep(min(30, seconds / 6))
                minute, num_kills = (time.monotonic() - ledger.began) / 60, len(server.kills)
                say(f"{minute:.1f} min, {ledger.num_answers} answers, {num_kills} kills, {dict(ledger.faults)}")
                if why := server.ended_by_itself():
                    ledger.fault("status", "server", why)
                    break
                if time.monotonic() > end + _ENDING_SECONDS:
                    ledger.fault("hangs", "clients", f"{sum(not client.done() for client in clients)} do not end")
                    break
            for task in (watching, killing):
                if task.done() and (failed := task.exception()):
                    ledger.fault("status", "soak", f"it stopped to watch or to kill: {failed!r}")
            for task in (watching, killing, *clients):
                task.cancel()
            await asyncio.gather(watching, killing, *clients, return_exceptions=True)
            if not ledger.faults["hangs"]:
                await look_at_what_is_left(floor)
    finally:
        server.stop()
    log = server.log.read_text(errors="replace")
    report = SoakReport(server, ledger, gauges, minutes, shop.check_stock(floor), log)
    page = report.write(out)
    (out / "server.log").write_text(log[-2_000_000:])
    say(f"{report.as_json()['verdict']}: {report.faults() or 'no fault'}; {page}")
    return not report.faults()


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
