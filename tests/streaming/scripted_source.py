"""A source that a test controls, and sessions started with it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.source import Block
from tis.streaming.stores.store import Status
from tis.streaming.turn import Turn

REQUEST = SessionRequest(owner="me", session_id="s", fingerprint="f")


class ScriptedSource:
    """Yields its lines, then waits for `go`."""

    summary = b"{}"
    request = b"what was asked"
    attachments: Mapping[str, bytes] = {}
    traceparent = ""
    is_waiting_to_resume = False
    may_be_repeated = True

    def __init__(self, *lines: bytes, fails: Exception | None = None) -> None:
        self._lines = lines
        self._fails = fails
        self.go = asyncio.Event()
        self.was_cancelled = False

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        for line in self._lines:
            yield [Block(line, b"state " + line)]
        await self.go.wait()
        if self._fails:
            raise self._fails
        yield [Block(b"end", b"state end", is_last=True)]

    @property
    def outcome(self) -> Status:
        return "cancelled" if self.was_cancelled else "finished"

    def cancel(self) -> None:
        self.was_cancelled = True
        self.go.set()

    def failure(self, error: Exception) -> Block:
        return Block(type(error).__name__.encode())


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def data_of(session: Session, turn: Turn) -> list[bytes]:
    with session.listening(turn, turn.first_index - 1) as reader:
        return [event.data async for events in reader.batches() for event in events]


def start_turn(
    sessions: Sessions, asked: SessionRequest = REQUEST, *lines: bytes, fails: Exception | None = None
) -> tuple[ScriptedSource, Session, Turn]:
    script = ScriptedSource(*lines, fails=fails)
    session, turn = sessions.start(asked, lambda: script)
    return script, session, turn
