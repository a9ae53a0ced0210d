"""Clients that begin and cancel one session at once, at both servers, and write down what they are told."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import cast

from tests.faults.cluster.calm import Calm
from tests.faults.cluster.chaos_proxy import ChaosProxy
from tests.faults.cluster.linear import SessionOperation, Told, is_linear
from tests.faults.history import Client
from tests.openai_api.test_chat import said

_ANSWER_SECONDS = 15.0
_NUM_CLIENTS, _NUM_CALLS = 3, 4
_MAX_CALLS = _NUM_CLIENTS * _NUM_CALLS
_CONFLICT, _FOUND = 409, 200


@dataclass
class SessionHistory:
    session_id: str
    operations: list[SessionOperation] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)  # ids of answers
    refusals: list[str] = field(default_factory=list)

    @property
    def is_linear(self) -> bool:
        return is_linear(self.operations, self.failed)

    @property
    def num_answered(self) -> int:
        return sum(operation.told is not None for operation in self.operations)

    def story(self) -> str:
        begin = min(operation.called_at for operation in self.operations)
        lines = [
            f"{one.called_at - begin:.2f}..{one.answered_at - begin:.2f} {one.verb} {one.request} -> {one.told} "
            f"{one.answer_id[-6:]}"
            for one in sorted(self.operations, key=lambda one: one.called_at)
        ]
        return "\n".join([self.session_id, *lines, *self.refusals])


class RivalClients:
    """Of one session; each asks for one of two answers, or cancels what runs."""

    def __init__(self, number: int, fronts: Sequence[ChaosProxy], chance: Random) -> None:
        self.history = SessionHistory(f"rivals-{number}")
        self._fronts, self._chance = fronts, chance
        self._texts = {name: f"{name} {number} " + "to and fro, " * 4 for name in ("a", "b", "c")}

    async def run(self, calm: Calm) -> None:
        """Apart from faults of Redis: while it is away, two servers may begin the same session."""
        async with calm.needed():
            await asyncio.gather(*(self._act() for _ in range(_NUM_CLIENTS)))
            await self._look_at_the_end()

    async def _act(self) -> None:
        for _ in range(_NUM_CALLS):
            await asyncio.sleep(self._chance.uniform(0, 0.8))
            name = self._chance.choice(["a", "a", "b", "c", "cancel", "cancel"])
            await (self._cancel() if name == "cancel" else self._begin(name))

    def _client(self, text: str = "") -> Client:
        body = said(text or "-", session_id=self.history.session_id)
        return Client(self._chance.choice(self._fronts).url, body)

    async def _begin(self, name: str) -> None:
        client, called_at = self._client(self._texts[name]), time.monotonic()
        told, answer_id = None, ""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await client.connect()
                await client.read(blocks=1)
        except TimeoutError:
            pass
        blocks, status = client.blocks, client.last.status
        if status == _CONFLICT:
            told = "conflict"
        elif blocks and not blocks[0].is_error:
            told, answer_id = "answer", str(blocks[0].chunk["id"])
        elif status not in (0, 200, 429, 503):
            self.history.refusals.append(f"begin: {status} {client.last.body[:200]!r}")
        client.leave()
        self._note("begin", called_at, told, name, answer_id)

    async def _cancel(self) -> None:
        called_at, told = time.monotonic(), None
        status, body = await _post(self._chance.choice(self._fronts), f"/v1/cancel/{self.history.session_id}")
        if status == _FOUND:
            told = str(json.loads(body)["status"])
        elif status not in (0, 429, 503):
            self.history.refusals.append(f"cancel: {status} {body[:200]!r}")
        self._note("cancel", called_at, told)

    def _note(self, verb: str, called_at: float, told: str | None, request: str = "", answer_id: str = "") -> None:
        answered_at = time.monotonic() if told else float("inf")
        self.history.operations.append(
            SessionOperation(verb, called_at, answered_at, cast(Told | None, told), request, answer_id)  # type: ignore[arg-type]
        )

    async def _look_at_the_end(self) -> None:
        """Which answers have failed, of all turns of the session: those may be begun again."""
        client, after = self._client(), 0
        for _ in range(2 * _MAX_CALLS):
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await client.connect("GET", after=after)
                    await client.read()
            except TimeoutError:
                continue
            blocks = client.last.blocks
            if client.last.status in (204, 404):
                return
            if not blocks or blocks[-1].index is None:
                continue  # a server that is away
            if blocks[-1].is_error and len(blocks) > 1:
                self.history.failed.add(str(blocks[0].chunk["id"]))
            after = blocks[-1].index


async def _post(front: ChaosProxy, path: str) -> tuple[int, bytes]:
    """0: nobody has answered."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            try:
                head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\nConnection: close\r\n"
                writer.write(f"{head}Content-Length: 0\r\n\r\n".encode())
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return 0, b""
    headers, _, body = answer.partition(b"\r\n\r\n")
    is_whole = f"content-length: {len(body)}".encode() in headers.lower()
    return (int(headers.split(b" ")[1]), body) if is_whole else (0, b"")
