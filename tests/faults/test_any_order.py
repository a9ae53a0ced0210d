"""Starts, reads, drops, returns, cancels, next turns and kills in any order: the promises hold."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.faults.checker import End, Reference, check
from tests.faults.forms import SOAK, short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, durable, post
from tests.openai_api.test_chat import CHAT, said

pytestmark = pytest.mark.slow

PACED = "echo?tokens_per_second=250"
_MAX_KILLS = short_or_long(1, 3)  # an example; a start takes longer than all the rest


class ComingAndGoing(RuleBasedStateMachine):
    """Sessions, their turns and their readers. A reader follows the turn he began with."""

    sessions: Bundle[str] = Bundle("sessions")
    readers: Bundle[Client] = Bundle("readers")
    numbers = itertools.count()

    def __init__(self, server: MortalServer, loop: asyncio.Runner, is_durable: bool) -> None:
        super().__init__()
        self.server, self.loop, self.is_durable = server, loop, is_durable
        self.example = next(self.numbers)
        self.turns: dict[str, list[str]] = {}
        self.cancelled: set[tuple[str, int]] = set()
        self.clients: list[Client] = []
        self.num_kills = 0

    @rule(target=sessions, length=st.integers(0, 60))
    def start(self, length: int) -> str:
        name = f"order-{self.example}-{len(self.turns)}"
        self.turns[name] = []
        self._begin(name, length)
        return name

    @rule(target=readers, session=sessions)
    def join(self, session: str) -> Client:
        return self._reader(session, len(self.turns[session]) - 1)

    @rule(target=readers, session=sessions, turn=st.integers(0, 3))
    def look_back(self, session: str, turn: int) -> Client:
        return self._reader(session, turn % len(self.turns[session]))

    @rule(reader=readers, blocks=st.integers(1, 20))
    def read(self, reader: Client, blocks: int) -> None:
        self.loop.run(reader.read(blocks))

    @rule(reader=readers, num_bytes=st.integers(1, 3000))
    def read_bytes(self, reader: Client, num_bytes: int) -> None:
        self.loop.run(reader.read(num_bytes=num_bytes))

    @rule(reader=readers, rudely=st.booleans())
    def drop(self, reader: Client, rudely: bool) -> None:
        reader.leave(rudely=rudely)

    @rule(reader=readers, method=st.sampled_from(["POST", "GET"]))
    def resume(self, reader: Client, method: str) -> None:
        if not reader.is_over:
            self.loop.run(reader.connect("POST" if reader.cursor is None else method))

    @rule(session=sessions)
    def cancel(self, session: str) -> None:
        answer = self.loop.run(post(self.server.url, f"/v1/cancel/{session}"))
        assert answer.json()["status"] in ("cancelled", "finished")
        self.cancelled.add((session, len(self.turns[session]) - 1))

    @rule(session=sessions, length=st.integers(0, 60))
    def next_turn(self, session: str, length: int) -> None:
        self.loop.run(self._reader(session, len(self.turns[session]) - 1).follow())
        self._begin(session, length)

    @rule(session=sessions)
    def ask_for_it_whole(self, session: str) -> None:
        text = self.turns[session][-1]
        answer = self.loop.run(post(self.server.url, CHAT, said(text, session_id=session))).json()
        content = answer["choices"][0]["message"]["content"]
        is_cancelled = (session, len(self.turns[session]) - 1) in self.cancelled
        assert text.startswith(content) if is_cancelled else text == content

    @precondition(lambda self: self.is_durable and self.num_kills < _MAX_KILLS and self.turns)
    @rule()
    def kill(self) -> None:
        self.num_kills += 1
        self.server.kill()
        self.loop.run(self.server.start())

    def teardown(self) -> None:
        for session, turns in self.turns.items():
            for turn in range(len(turns)):
                self._reader(session, turn)
        self.loop.run(self._follow_all())
        references = {
            (f"/{session}", turn): Reference(text, self._ends(session, turn))
            for session, turns in self.turns.items()
            for turn, text in enumerate(turns)
        }
        check(connections_of(self.clients), references)

    def _begin(self, session: str, length: int) -> None:
        """Another turn begins once its first block is there: it is known from then on, whatever happens."""
        turns = self.turns[session]
        turns.append(f"{session}, turn {len(turns)}: " + "every word in its place " * (length // 24) + "." * length)
        self.loop.run(self._reader(session, len(turns) - 1).read(blocks=1))

    def _reader(self, session: str, turn: int) -> Client:
        client = Client(self.server.url, said(self.turns[session][turn], session_id=session), turn=turn)
        self.clients.append(client)
        self.loop.run(client.connect())
        return client

    async def _follow_all(self) -> None:
        await asyncio.gather(*(client.follow() for client in self.clients))

    def _ends(self, session: str, turn: int) -> Sequence[End]:
        return ("finished", "cancelled") if (session, turn) in self.cancelled else ("finished",)


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_every_client_gets_its_answer_in_any_order_of_events(tmp_path: Path, loop: asyncio.Runner, store: str) -> None:
    is_durable = store == "sqlite"
    variables: dict[str, Any] = {"MODEL_REPO_ID": PACED, "MAX_SESSIONS": "10000"}
    server = MortalServer(tmp_path, **(durable(tmp_path, **variables) if is_durable else variables))

    class OnThisServer(ComingAndGoing):
        def __init__(self) -> None:
            super().__init__(server, loop, is_durable)

    try:
        loop.run(server.start())
        run_state_machine_as_test(
            OnThisServer,
            settings=settings(
                max_examples=short_or_long(8, 200),
                stateful_step_count=15,
                derandomize=not SOAK,  # the same examples every time; a soak looks for new ones
                database=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
        assert "Traceback" not in server.log.read_text()
    finally:
        server.stop()
