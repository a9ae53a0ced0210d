"""What a long prompt does to those who are being answered: gaps between the tokens of 8 streams, before and during it.

`python benchmarks/fairness.py --base-url http://127.0.0.1:3000/v1`. The server needs a context of `--prompt-tokens`.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chat import ChatServer, RequestFailed, percentiles, prompt_text, run_on_fast_loop, sse_data

_CALIBRATION_WORDS = 200
_BEGIN_SECONDS = 300


@dataclass(slots=True)
class Listener:
    """One stream: when its chunks came, in seconds."""

    times: list[float] = field(default_factory=list)
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, server: ChatServer, body: dict[str, Any]) -> None:
        async with server.request("POST", "/chat/completions", json.dumps(body).encode()) as parts:
            async for data in sse_data(parts):
                if data != b"[DONE]" and json.loads(data).get("error"):
                    raise RequestFailed(data.decode())
                self.times.append(time.perf_counter())
                self.has_begun.set()

    def gaps(self, begin: float, end: float) -> list[float]:
        """Those that end in this time; and the last, if the stream is silent at its end."""
        times = [*(one for one in self.times if one < end), end]
        return [now - before for before, now in zip(times, times[1:], strict=False) if now > begin]


@dataclass(frozen=True, slots=True)
class Fairness:
    quiet: Sequence[float]  # gaps before the long prompt, shortest first
    during: Sequence[float]  # and while it was computed
    prompt_tokens: int
    prompt_seconds: float  # to its first token

    def lines(self) -> list[str]:
        rows = [("quiet", self.quiet), ("long prompt", self.during)]
        heading = f"{'gaps in ms':<14}{'number':>8}{'p50':>10}{'p99':>10}{'longest':>10}"
        shown = [
            f"{name:<14}{len(gaps):>8}"
            + "".join(f"{(one or 0) * 1000:>10.0f}" for one in percentiles(gaps, 50, 99, 100))
            for name, gaps in rows
        ]
        speed = self.prompt_tokens / self.prompt_seconds
        return [heading, *shown, f"{self.prompt_tokens} tokens in {self.prompt_seconds:.1f} s, {speed:.0f} a second"]


async def measure_fairness(server: ChatServer, model: str, streams: int, words: int, quiet_seconds: float) -> Fairness:
    def body(text: str, max_tokens: int, **more: Any) -> dict[str, Any]:
        return {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": max_tokens, **more}

    words = round(words * _CALIBRATION_WORDS / await _num_tokens(server, body(prompt_text(_CALIBRATION_WORDS, "c"), 1)))
    listeners = [Listener() for _ in range(streams)]
    talking = [
        body(prompt_text(20, str(number)), 16384, stream=True, min_tokens=16384, temperature=1, seed=number)
        for number in range(streams)
    ]
    tasks = [asyncio.create_task(one.follow(server, given)) for one, given in zip(listeners, talking, strict=True)]
    try:
        await asyncio.wait_for(asyncio.gather(*(one.has_begun.wait() for one in listeners)), _BEGIN_SECONDS)
        began = time.perf_counter()
        await asyncio.sleep(quiet_seconds)
        sent = time.perf_counter()
        prompt_tokens = await _num_tokens(server, body(prompt_text(words, "long"), 1))
        done = time.perf_counter()
        if any(task.done() for task in tasks):
            raise RequestFailed("a stream ended before the long prompt was computed")
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
    quiet = sorted(gap for one in listeners for gap in one.gaps(began, sent))
    during = sorted(gap for one in listeners for gap in one.gaps(sent, done))
    return Fairness(quiet, during, prompt_tokens, done - sent)


async def _num_tokens(server: ChatServer, body: dict[str, Any]) -> int:
    async with server.request("POST", "/chat/completions", json.dumps(body).encode()) as parts:
        answer = json.loads(b"".join([part async for part in parts]))
    return int(answer["usage"]["prompt_tokens"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default="http://127.0.0.1:3000/v1")
    parser.add_argument("--model", help="default: the first that the server names")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=30_000)
    parser.add_argument("--quiet-seconds", type=float, default=10)
    given = parser.parse_args()

    async def run() -> Fairness:
        server = ChatServer(given.base_url, os.environ.get("OPENAI_API_KEY"))
        model = given.model or await server.first_model()
        return await measure_fairness(server, model, given.streams, given.prompt_tokens, given.quiet_seconds)

    print("\n".join(run_on_fast_loop(run()).lines()))


if __name__ == "__main__":
    main()
