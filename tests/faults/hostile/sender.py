"""Sends rows over bare sockets, and says what is wrong with the answers: status, shape, length, leaks."""

import asyncio
import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from tests.faults.hostile.row import CLOSED, Names, Row, request

_MAX_ERROR_BYTES = 10_000
_ANSWER_SECONDS = 60
# Of code, memory and machines; none of them is in what the rows send.
_LEAKS = re.compile(
    rb'Traceback|File "[^"]*\.py|\.py", line|site-packages| at 0x[0-9a-f]{6}|root:x:0|sqlite3?\.|sqlalche|psycopg'
    rb"|pydantic_core|torch\.|transformers\.|errors\.pydantic\.dev|KeyError|TypeError|AttributeError|RuntimeError"
)


@dataclass
class RowAnswer:
    status: int = CLOSED
    content_type: str = ""
    request_id: str = ""
    body: bytes = b""
    seconds: float = 0


class Sender:
    def __init__(self, url: str, names: Names, secrets: Iterable[str]) -> None:
        self._host, self._names = urlsplit(url).netloc, names
        self._secrets = [secret.encode() for secret in secrets]
        self.slowest: list[tuple[float, str]] = []

    async def fault(self, row: Row) -> str:
        """What is wrong with the answer to the row; empty if nothing is."""
        answer = await self.answer(row)
        self.slowest.append((answer.seconds, row.name))
        found = [*self._wrong_status(row, answer), *self._wrong_shape(row, answer), *self._leaks(answer)]
        return f"{row.name}: {'; '.join(found)}\n    {answer.body[:400]!r}" if found else ""

    async def answer(self, row: Row) -> RowAnswer:
        host, _, port = self._host.rpartition(":")
        data = await asyncio.to_thread(request, row, self._names, self._host)
        reader, writer = await asyncio.open_connection(host, int(port))
        answer, began = RowAnswer(), time.monotonic()
        writing = asyncio.create_task(_write(writer, data, row.pause_at))
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await _read(reader, answer, row.method, row.leaves_after)
        except TimeoutError:
            answer.body = b"(no end) " + answer.body
            answer.status = -1
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            writer.transport.abort()
        answer.seconds = time.monotonic() - began
        return answer

    def _wrong_status(self, row: Row, answer: RowAnswer) -> Iterable[str]:
        if answer.status not in row.statuses:
            yield f"{answer.status}, not {row.statuses}"

    def _wrong_shape(self, row: Row, answer: RowAnswer) -> Iterable[str]:
        if answer.status < 400 or row.method in ("HEAD", "OPTIONS") or not answer.status:
            return
        if not answer.request_id:
            yield "no request id"
        if len(answer.body) > _MAX_ERROR_BYTES:
            yield f"{len(answer.body)} bytes of error"
        try:
            body = json.loads(answer.body)
        except ValueError:
            yield "an error that is no JSON"
            return
        error = body.get("error") if isinstance(body, dict) else None
        if isinstance(error, dict):
            names = {"message", "code"} if "jsonrpc" in body else {"message", "type", "param", "code"}
            if body.get("type") == "error":  # as Anthropic has it
                names = {"message", "type", "details"}
            if set(error) != names or not error["message"]:
                yield f"an error of {set(error)}"
        elif row.is_ollama:
            if not (isinstance(error, str) and error and list(body) == ["error"]):
                yield "an error that is not Ollama's"
        elif not isinstance(body, dict) or not body.get("detail") or row.is_v1:
            yield "an error of another shape"

    def _leaks(self, answer: RowAnswer) -> Iterable[str]:
        body = answer.body if answer.status >= 400 or not answer.content_type.startswith("text/html") else b""
        if found := _LEAKS.search(body):
            yield f"shows {found[0]!r}"
        for secret in self._secrets:
            if secret in body:
                yield f"shows {secret!r}"


async def _write(writer: asyncio.StreamWriter, data: bytes, pause_at: int) -> None:
    try:
        for start in range(0, pause_at or len(data), 65536):
            writer.write(data[start : min(start + 65536, pause_at or len(data))])
            await writer.drain()
    except OSError:
        return  # refused on the way


async def _read(reader: asyncio.StreamReader, answer: RowAnswer, method: str, leaves_after: int) -> None:
    wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=2**20)
    wire.send(h11.Request(method="HEAD" if method == "HEAD" else "GET", target="/", headers=[("Host", "tests")]))
    wire.send(h11.EndOfMessage())
    num_bytes = 0
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            try:
                data = await reader.read(65536)
            except OSError:
                return
            num_bytes += len(data)
            if leaves_after and num_bytes >= leaves_after:
                return
            if not data and wire.their_state in (h11.SEND_RESPONSE, h11.SEND_BODY):
                return  # closed
            wire.receive_data(data)
        elif isinstance(event, h11.Response):
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
            answer.status = event.status_code
            answer.content_type, answer.request_id = headers.get("content-type", ""), headers.get("x-request-id", "")
        elif isinstance(event, h11.Data):
            answer.body += bytes(event.data)
        elif not isinstance(event, h11.InformationalResponse):
            return
