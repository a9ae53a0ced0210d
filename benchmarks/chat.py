"""How fast a server streams chat: any server that speaks the OpenAI protocol, ours or another.

A closed loop: each client sends its next request when the answer before is complete, on a connection of its own, so
that the times include connecting. `python benchmarks/chat.py --base-url http://127.0.0.1:3000/v1`
"""

import argparse
import asyncio
import json
import os
import random
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

_MAX_LINE_BYTES = 16 * 2**20
_MAX_ERROR_CHARS = 300
# Common enough to be one token each in the vocabularies of today.
_WORDS = (
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father "
    "power hour game line end member law car city community name president team minute idea kid body information back "
    "parent face others level office door health person art war history party result change morning reason research"
).split()


class RequestFailed(Exception):
    """One line on what the server answered instead."""


@dataclass(frozen=True, slots=True)
class Load:
    """What every client does."""

    requests_each: int = 8
    seconds: float | None = None  # then requests are begun for so long, however many they are
    warm_up_each: int = 1  # requests before the clock starts
    prompt_tokens: int = 64
    same_prompt: bool = False
    prompt_seed: str = ""  # another one makes other prompts, which no server has cached
    max_tokens: int = 64
    ignore_eos: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)  # goes into the body as it is
    api_key: str | None = None
    timeout_seconds: float = 600

    def body(self, model: str, client: int, number: int) -> bytes:
        seed = "same" if self.same_prompt else f"{self.prompt_seed}{client}:{number}"
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": prompt_text(self.prompt_tokens, seed)}],
            "max_tokens": self.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.extra,
        }
        if self.ignore_eos:
            body["ignore_eos"] = True  # not sent as false: strict servers refuse fields they do not know
        return json.dumps(body).encode()


@dataclass(slots=True)
class Sample:
    """One request, times in seconds."""

    end_to_end: float = 0.0
    first_token: float | None = None
    gaps: list[float] = field(default_factory=list)
    chunks: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str | None = None

    @property
    def tokens(self) -> int:
        return self.chunks if self.completion_tokens is None else self.completion_tokens


@dataclass(frozen=True, slots=True)
class Milliseconds:
    p50: float | None
    p99: float | None

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Milliseconds":
        ordered = sorted(seconds)
        return cls(*(None if value is None else value * 1000 for value in percentiles(ordered, 50, 99)))

    def __str__(self) -> str:
        return " / ".join("-" if value is None else f"{value:.1f}" for value in (self.p50, self.p99))


@dataclass(frozen=True, slots=True)
class ChatResult:
    clients: int
    requests: int
    errors: int
    seconds: float
    tokens: int
    tokens_from: Literal["usage", "chunks", "both", "none"]
    tokens_per_second: float
    mean_prompt_tokens: float | None  # as the server counts them
    first_token_ms: Milliseconds
    inter_token_ms: Milliseconds
    end_to_end_ms: Milliseconds
    first_error: str | None = None

    @classmethod
    def of(cls, clients: int, samples: Sequence[Sample], seconds: float) -> "ChatResult":
        good = [sample for sample in samples if sample.error is None]
        tokens = sum(sample.tokens for sample in good)
        prompts = [sample.prompt_tokens for sample in good if sample.prompt_tokens is not None]
        return cls(
            clients=clients,
            requests=len(samples),
            errors=len(samples) - len(good),
            seconds=seconds,
            tokens=tokens,
            tokens_from=_counted_from(good),
            tokens_per_second=tokens / seconds if seconds else 0.0,
            mean_prompt_tokens=sum(prompts) / len(prompts) if prompts else None,
            first_token_ms=Milliseconds.of(one.first_token for one in good if one.first_token is not None),
            inter_token_ms=Milliseconds.of(gap for one in good for gap in one.gaps),
            end_to_end_ms=Milliseconds.of(one.end_to_end for one in good),
            first_error=next((one.error for one in samples if one.error), None),
        )


def measure(base_url: str, model: str, clients: int, load: Load | None = None) -> ChatResult:
    """Warms up, then drives the server with so many clients at once until each has done its load."""
    return run_on_fast_loop(measure_on_loop(base_url, model, clients, load or Load()))


async def measure_on_loop(base_url: str, model: str, clients: int, load: Load) -> ChatResult:
    server = ChatServer(base_url, load.api_key)

    async def client_sends(client: int, numbers: Iterable[int]) -> list[Sample]:
        return [await _sample(server, load.body(model, client, number), load.timeout_seconds) for number in numbers]

    await asyncio.gather(*(client_sends(client, range(-load.warm_up_each, 0)) for client in range(clients)))
    began = time.perf_counter()
    done = await asyncio.gather(*(client_sends(client, _numbers(load, began)) for client in range(clients)))
    seconds = time.perf_counter() - began
    return ChatResult.of(clients, [sample for samples in done for sample in samples], seconds)


def _numbers(load: Load, began: float) -> Iterator[int]:
    """The requests of one client; asked for one by one, so that time can end them."""
    number = 0
    while number < load.requests_each if load.seconds is None else time.perf_counter() - began < load.seconds:
        yield number
        number += 1


async def _sample(server: "ChatServer", body: bytes, timeout_seconds: float) -> Sample:
    sample = Sample()
    began = time.perf_counter()
    try:
        async with asyncio.timeout(timeout_seconds):
            await _follow(server, body, sample, began)
    except (RequestFailed, OSError, EOFError, ValueError) as error:  # TimeoutError is an OSError
        sample.error = f"{type(error).__name__}: {error}"[:_MAX_ERROR_CHARS]
    sample.end_to_end = time.perf_counter() - began
    return sample


async def _follow(server: "ChatServer", body: bytes, sample: Sample, began: float) -> None:
    """To the finish: servers differ in whether `[DONE]` follows, and in which chunk brings the usage."""
    is_complete = False
    newest = began
    async with server.request("POST", "/chat/completions", body) as parts:
        async for data in sse_data(parts):
            if data == b"[DONE]":
                is_complete = True
                break
            now = time.perf_counter()
            chunk = json.loads(data)
            if chunk.get("error"):
                raise RequestFailed(str(chunk["error"]))
            _note_usage(sample, chunk.get("usage"))
            for choice in chunk.get("choices") or ():
                is_complete |= bool(choice.get("finish_reason"))
                if not _says_something(choice.get("delta") or {}):
                    continue
                sample.chunks += 1
                if sample.first_token is None:
                    sample.first_token = now - began
                else:
                    sample.gaps.append(now - newest)
                newest = now
    if not is_complete:
        raise RequestFailed("the stream ended without a finish_reason or [DONE]")


def _says_something(delta: Mapping[str, Any]) -> bool:
    return bool(
        delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning") or delta.get("tool_calls")
    )


def _note_usage(sample: Sample, usage: Mapping[str, Any] | None) -> None:
    """The last one counts: some servers send a running usage with every chunk."""
    if usage:
        sample.prompt_tokens = usage.get("prompt_tokens")
        sample.completion_tokens = usage.get("completion_tokens")


def _counted_from(samples: Sequence[Sample]) -> Literal["usage", "chunks", "both", "none"]:
    with_usage = sum(sample.completion_tokens is not None for sample in samples)
    if not samples:
        return "none"
    return "usage" if with_usage == len(samples) else "both" if with_usage else "chunks"


class ChatServer:
    """Just enough HTTP/1.1 to follow a stream cheaply: one request per connection, chunked or not."""

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"not an http(s) URL: {base_url!r}")
        self._host, self._path = url.hostname, url.path.rstrip("/")
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if url.scheme == "https" else None
        self._fixed_headers = f"Host: {url.netloc.rpartition('@')[2]}\r\nConnection: close\r\nAccept: */*\r\n"
        if api_key:
            self._fixed_headers += f"Authorization: Bearer {api_key}\r\n"

    @asynccontextmanager
    async def request(self, method: str, path: str, body: bytes = b"") -> AsyncIterator[AsyncIterator[bytes]]:
        """The parts of the answer's body, as they come."""
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=_MAX_LINE_BYTES)
        try:
            content = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
            writer.write(f"{method} {self._path}{path} HTTP/1.1\r\n{self._fixed_headers}{content}\r\n".encode() + body)
            status, headers = await _head(reader)
            parts = _parts(reader, headers)
            if status != 200:
                answer = b"".join([part async for part in parts])
                raise RequestFailed(f"HTTP {status}: {answer[:_MAX_ERROR_CHARS].decode(errors='replace')}")
            yield parts
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def first_model(self) -> str:
        async with self.request("GET", "/models") as parts:
            models = json.loads(b"".join([part async for part in parts]))
        return str(models["data"][0]["id"])


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    status_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    named = (line.partition(":") for line in lines if line)
    return int(status_line.split()[1]), {name.lower(): value.strip() for name, _, value in named}


async def _parts(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        while size := int((await reader.readline()).partition(b";")[0] or b"0", 16):
            yield (await reader.readexactly(size + 2))[:-2]
    elif length := headers.get("content-length"):
        yield await reader.readexactly(int(length))
    else:
        while part := await reader.read(2**16):
            yield part


async def sse_data(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each event; ids, names and comments are left out. A last block needs no blank line."""
    rest, event = b"", []
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                event.append(line[5:].removeprefix(b" "))
            elif not line and event:
                yield b"\n".join(event)
                event = []
    if rest.startswith(b"data:"):
        event.append(rest[5:].strip())
    if event:
        yield b"\n".join(event)


def prompt_text(num_tokens: int, seed: str) -> str:
    return " ".join(random.Random(seed).choices(_WORDS, k=max(1, num_tokens)))


def percentiles(ordered: Sequence[float], *ranks: int) -> list[float | None]:
    """Nearest rank: values that were measured, none in between."""
    if not ordered:
        return [None] * len(ranks)
    return [ordered[max(0, -(-len(ordered) * rank // 100) - 1)] for rank in ranks]


def run_on_fast_loop(main: Coroutine[Any, Any, T]) -> T:
    """On uvloop where there is one, so that the driver takes less of the machine it shares with the server."""
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        from uvloop import new_event_loop as new_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


_COLUMNS = "{:>8} {:>9} {:>7} {:>10} {:>8} {:>18} {:>18} {:>20}"
_HEADINGS = (
    "clients", "requests", "errors", "tok/s", "counted", "TTFT ms p50/p99", "inter-token ms", "end-to-end ms",
)  # fmt: skip


def table_heading() -> str:
    return _COLUMNS.format(*_HEADINGS)


def table_row(result: ChatResult) -> str:
    times = (str(one) for one in (result.first_token_ms, result.inter_token_ms, result.end_to_end_ms))
    speed = f"{result.tokens_per_second:.1f}"
    return _COLUMNS.format(result.clients, result.requests, result.errors, speed, result.tokens_from, *times)


def main() -> None:
    options = _options()
    api_key = options.api_key or os.environ.get("OPENAI_API_KEY")
    load = Load(
        requests_each=options.requests,
        seconds=options.seconds,
        warm_up_each=options.warm_up,
        prompt_tokens=options.prompt_tokens,
        same_prompt=options.same_prompt,
        max_tokens=options.max_tokens,
        ignore_eos=options.ignore_eos,
        extra=options.extra,
        api_key=api_key,
        timeout_seconds=options.timeout,
    )
    try:
        model = options.model or run_on_fast_loop(ChatServer(options.base_url, api_key).first_model())
    except (RequestFailed, OSError, EOFError, ValueError, LookupError) as error:
        sys.exit(f"No model was named, and {options.base_url}/models did not name one: {error!r}")
    print(f"{options.base_url}  {model}  prompt ~{load.prompt_tokens} tokens, answer <= {load.max_tokens}\n")
    print(table_heading())
    results = []
    for clients in options.clients:
        result = measure(options.base_url, model, clients, load)
        results.append(result)
        print(table_row(result), flush=True)
        if result.first_error:
            print(f"         first error: {result.first_error}")
    if options.json:
        report = {"base_url": options.base_url, "model": model, "load": _public(load)}
        report["results"] = [asdict(result) for result in results]
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if any(result.errors for result in results) else 0)


def _public(load: Load) -> dict[str, Any]:
    return {name: value for name, value in asdict(load).items() if name != "api_key"}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--base-url", default="http://127.0.0.1:3000/v1")
    add("--model", help="default: the first that /models lists")
    add("--api-key", help="default: OPENAI_API_KEY")
    add("--clients", type=_numbers_of, default=[1, 4, 16], metavar="1,4,16", help="each number is a run of its own")
    add("--requests", type=int, default=8, help="of each client")
    add("--seconds", type=float, help="begin requests for so long instead; those under way are completed")
    add("--warm-up", type=int, default=1, help="requests of each client before the clock starts")
    add("--prompt-tokens", type=int, default=64, help="about so many: one common word each")
    add("--same-prompt", action="store_true", help="one prompt for all, as a prefix cache likes it")
    add("--max-tokens", type=int, default=64)
    add("--ignore-eos", action="store_true", help="vendor field: answers of exactly max_tokens")
    add("--extra", type=json.loads, default={}, metavar="JSON", help='more of the body, as {"temperature": 0}')
    add("--timeout", type=float, default=600, help="seconds for one request")
    add("--json", type=Path, metavar="FILE", help="write the results there too")
    return parser.parse_args()


def _numbers_of(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
