"""An upstream whose tokens say when they were sent: so each shows what lies between the upstream and a client."""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chat import run_on_fast_loop

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests of the server

from tests.serving import free_port, until_listening


async def tick(port: int, rate: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
                )
                body = json.loads(await reader.readexactly(length)) if length else {}
                await _answer(writer, head, body, rate)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()


async def _answer(writer: asyncio.StreamWriter, head: bytes, body: dict[str, int], rate: float) -> None:
    if head.startswith(b"GET"):
        models = json.dumps({"object": "list", "data": [{"id": "ticks"}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(models))
        writer.write(models)
        return
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    due = time.monotonic()
    for _ in range(body["max_tokens"]):
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        writer.write(_chunk({"content": f"{time.monotonic_ns()} "}, None))
    writer.write(_chunk({}, "stop"))
    writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    await writer.drain()


def _chunk(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "ticks", "choices": [choice]}
    event = b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


@contextmanager
def ticking_upstream(rate: float) -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, __file__, "--port", str(port), "--rate", str(rate)])
    try:
        until_listening(port)
        yield port
    finally:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True, help="tokens a second of each answer")
    arguments = parser.parse_args()
    run_on_fast_loop(tick(arguments.port, arguments.rate))


if __name__ == "__main__":
    main()
