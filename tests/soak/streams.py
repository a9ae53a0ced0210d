"""Recorded streams of every dialect, followed over dropped connections and kills; each block once, and found again."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.faults.history import Client, Seen
from tests.soak.floor import Floor, Unanswered
from tests.soak.soaked_server import KEYS

_ENDS = tuple(
    ["[DONE]", '{"error":', '{"type":"message_stop"', '{"type":"transcript.text.done"', '{"type":"speech.audio.done"']
    + [f'{{"type":"response.{end}"' for end in ("completed", "incomplete", "failed", "cancelled")]
)
_PATIENCE_SECONDS = 600
_PAUSE_SECONDS = 0.3


class SoakReader(Client):
    """Follows one stream. Without a body another request has begun it."""

    def __init__(self, floor: Floor, kind: str, path: str, body: Mapping[str, Any] | None, key: str) -> None:
        super().__init__(floor.server.url, body or {}, key=KEYS[key], path=path)
        self._floor, self.kind, self._begins = floor, kind, body is not None

    def _request(self, method: str, after: int | None, with_body: bool) -> bytes:
        request = super()._request(method, after, with_body)
        if method == "GET" and self.session_id.startswith("resp_"):
            stored = f"GET /v1/responses/{self.session_id}?stream=true ".encode()
            request = request.replace(f"GET /v1/stream/{self.session_id} ".encode(), stored, 1)
        return request

    @property
    def is_over(self) -> bool:
        return any(block.index is not None and block.payload.startswith(_ENDS) for block in reversed(self.blocks[-2:]))

    @property
    def is_failed(self) -> bool:
        return any(block.is_error or block.payload.startswith('{"type":"response.failed"') for block in self.blocks)

    async def take(self, chance: Random) -> None:
        """To the end, on the way of an unreliable client: it leaves, comes back, reads slowly."""
        end = time.monotonic() + _PATIENCE_SECONDS
        try:
            while not self.is_over:
                if time.monotonic() > end:
                    self._floor.ledger.fault("hangs", self.kind, f"{self.session} did not end: {self.history[-2:]}")
                    raise Unanswered(self.session)
                await self._one_connection(chance)
                if not self.is_over:
                    await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self.leave()

    async def _one_connection(self, chance: Random) -> None:
        began, way = time.monotonic(), "whole" if self._floor.is_quiet else chance.choice(_WAYS)
        by_post = self.cursor is None and self._begins
        buffer = 4096 if way == "slow" else None
        await self.connect("POST" if by_post or self._may_post(chance) else "GET", receive_buffer=buffer)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                if way == "leaves":
                    await self.read(blocks=chance.randrange(1, 30))
                    self.leave(rudely=chance.random() < 0.5)
                elif way == "slow":
                    await self.sip(chance.choice([2000, 8000]))
                else:
                    await self.read()
        except TimeoutError:
            self.leave()
        self._judge(began)

    def _may_post(self, chance: Random) -> bool:
        return self._begins and self.path == "/v1/chat/completions" and chance.random() < 0.5

    def _judge(self, began: float) -> None:
        last, ledger = self.last, self._floor.ledger
        if last.status:
            ledger.answered(self.kind, str(last.status))
        is_excused = self._floor.server.excuses(began)
        if last.end == "lost" and not self.is_over:
            self._floor.cut(self.kind, began, f"{self.session} after {len(last.blocks)} blocks")
        if last.status >= 500:
            ledger.server_error(self.kind, last.status, last.body.decode()[:300], is_expected=is_excused)
        elif last.status == 404 and self.cursor is not None:
            ledger.fault("lost", self.kind, f"{self.session}: seen up to {self.cursor}, and now it does not exist")
            raise Unanswered(self.session)
        elif last.status not in (0, 200, 429) and not (last.status == 404 and is_excused):
            ledger.fault("status", self.kind, f"{self.session}: {last.status} {last.body.decode()[:300]}")
            raise Unanswered(self.session)


_WAYS = ("whole", "whole", "leaves", "leaves", "slow")


async def followed(
    floor: Floor, chance: Random, kind: str, path: str, body: Mapping[str, Any] | None, key: str, session: str = ""
) -> SoakReader:
    """The whole stream, checked block by block, and read a second time."""
    reader = SoakReader(floor, kind, path, body, key)
    reader.session_id = reader.session_id or session
    await reader.take(chance)
    if reader.is_failed:
        floor.ledger.fault("status", kind, f"{reader.session} failed: {reader.blocks[-1].payload[:300]}")
    first = blocks_in_order(floor, reader)
    again = blocks_in_order(floor, await read_again(floor, kind, reader.session_id, key))
    compare(floor, kind, reader.session, first, again)
    floor.remembered.append((reader.session_id, key, digest_of(again)))
    return reader


async def read_again(floor: Floor, kind: str, session_id: str, key: str) -> SoakReader:
    reader = SoakReader(floor, kind, "", None, key)
    reader.session_id = session_id
    await reader.take(Random(0) if floor.is_quiet else Random())
    return reader


def blocks_in_order(floor: Floor, reader: SoakReader) -> dict[int, str]:
    """By their index: a hole is a lost block, and one that comes once more is doubled."""
    seen: dict[int, str] = {}
    for connection in reader.history:
        expected = 0 if connection.after is None else connection.after + 1
        for block in connection.blocks:
            if block.index is None:
                continue
            where = f"{reader.session}: block {block.index} where {expected} was next"
            if block.index > expected:
                floor.ledger.fault("lost", reader.kind, where, block.index - expected)
            elif block.index < expected:
                floor.ledger.fault("doubled", reader.kind, where)
            expected = block.index + 1
            if seen.setdefault(block.index, block.payload) != block.payload:
                floor.ledger.fault("different", reader.kind, f"{where}, with another payload")
    floor.ledger.holds("blocks that were shown", len(seen))
    return seen


def compare(floor: Floor, kind: str, session: str, first: Mapping[int, str], again: Mapping[int, str]) -> None:
    for index, payload in first.items():
        if index not in again:
            floor.ledger.fault("lost", kind, f"{session}: block {index} was shown and is gone")
        elif again[index] != payload:
            floor.ledger.fault("different", kind, f"{session}: block {index} was {payload}, is {again[index]}")
    if more := set(again) - set(first):
        floor.ledger.fault("lost", kind, f"{session}: blocks {sorted(more)} came to the second reader only")
    floor.ledger.holds("blocks that were found again", len(first))


async def look_back(floor: Floor, chance: Random, variant: int) -> None:
    """A stream that has ended some while ago has the bytes that it had."""
    if not floor.remembered:
        return
    session_id, key, digest = chance.choice(floor.remembered)
    again = blocks_in_order(floor, await read_again(floor, "look back", session_id, key))
    floor.ledger.expect(digest_of(again) == digest, "different", "look back", f"{session_id} has other bytes now")


def digest_of(blocks: Mapping[int, str]) -> str:
    return hashlib.sha256("\n".join(f"{index} {blocks[index]}" for index in sorted(blocks)).encode()).hexdigest()


def text_of(blocks: Sequence[Seen]) -> str:
    """What the answer says, in any dialect: text, reasoning, calls, sound."""
    parts: list[str] = []
    for block in blocks:
        if block.index is None or block.payload == "[DONE]":
            continue
        chunk = json.loads(block.payload)
        for choice in chunk.get("choices", ()):
            delta = choice.get("delta") or choice
            parts += [delta.get("reasoning_content") or "", delta.get("content") or delta.get("text") or ""]
            parts += [call["function"].get("arguments") or "" for call in delta.get("tool_calls") or ()]
        if chunk.get("type", "").endswith(".delta") and isinstance(chunk.get("delta"), str):
            parts.append(chunk["delta"])
        if chunk.get("type") == "content_block_delta":
            parts += [str(value) for name, value in chunk["delta"].items() if name != "type"]
        if chunk.get("type") == "speech.audio.delta":
            parts.append(hashlib.sha256(chunk["audio"].encode()).hexdigest())
    return "".join(parts)
