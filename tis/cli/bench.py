"""`tis bench`: loads any OpenAI server and says how fast it answers."""

import argparse
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from tis.cli.api_client import CONNECTION_ERRORS, AddressError, ApiClient, ApiRefused, client_of
from tis.cli.ctrl_c import exit_at_once_after
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Load an OpenAI server with streamed chats, and print how fast it answers.

Closed arrivals, the default: --concurrency clients, each of which asks again when it has its answer.
Open arrivals, with --rate: requests come by chance at this rate, whether or not the server keeps up. They are
what users are like; closed ones show what the server can do.
Gaps are the times between two events with text; a server may send several tokens in one."""
_PERCENTILES = (50, 90, 99)
_MAX_THREADS = 2048
_WORDS = "harga kopi gula teh pasar kapal laut kota jalan rumah sekolah buku meja kursi lampu air".split()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", nargs="?", metavar="URL", help="such as http://127.0.0.1:3000")
    parser.add_argument("--model", help="without it, the first that the server lists")
    parser.add_argument("--key", help="API key; without it OPENAI_API_KEY, or the first of API_KEYS")
    parser.add_argument("--requests", type=int, default=50, metavar="N", help="how many in all (default 50)")
    parser.add_argument("--concurrency", type=int, default=8, metavar="N", help="closed arrivals: clients (default 8)")
    parser.add_argument("--rate", type=float, metavar="PER_SECOND", help="open arrivals: requests a second, by chance")
    parser.add_argument("--prompt-words", type=int, default=100, metavar="N", help="words of a prompt (default 100)")
    parser.add_argument("--max-tokens", type=int, default=64, metavar="N", help="of an answer (default 64)")
    parser.add_argument("--ignore-eos", action="store_true", help="make all tokens; ours and vLLM know the field")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of prompts and arrivals (default 0)")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="of a request (default 300)")
    parser.add_argument("--json", action="store_true", help="as JSON")


@dataclass(slots=True)
class MeasuredRequest:
    """One request, in seconds from its beginning."""

    first: float | None = None
    last: float = 0.0  # the last event with text; what follows has no token
    end: float = 0.0
    gaps: list[float] = field(default_factory=list)
    num_prompt_tokens: int = 0
    num_tokens: int = 0  # as the server counts them; without usage, the events with text
    error: str | None = None


def run(parsed: argparse.Namespace) -> None:
    exit_at_once_after(lambda: None)
    try:
        client = client_of(Settings.from_env(), parsed.url, parsed.key, parsed.timeout)
        model = parsed.model or str(client.get("/v1/models")["data"][0]["id"])
    except (SettingsError, AddressError, ApiRefused) as error:
        sys.exit(f"Cannot measure: {error}")
    except (*CONNECTION_ERRORS, ValueError, KeyError, TypeError, IndexError) as error:
        sys.exit(f"Cannot measure: no server with a model answers at {client.url} ({error}).")
    if min(parsed.requests, parsed.concurrency, parsed.prompt_words, parsed.max_tokens) < 1:
        sys.exit("Cannot measure: numbers must be 1 or more.")
    if parsed.rate is not None and parsed.rate <= 0:
        sys.exit("Cannot measure: --rate must be more than 0.")
    if parsed.concurrency > _MAX_THREADS or (parsed.rate and parsed.requests > _MAX_THREADS):
        sys.exit(f"Cannot measure: at most {_MAX_THREADS} requests at once.")
    chance = random.Random(parsed.seed)
    bodies = [_body(parsed, model, chance, number) for number in range(parsed.requests)]
    ask = lambda body: measure(client, body)  # noqa: E731
    began = time.perf_counter()
    if parsed.rate:
        measured = open_arrivals(ask, bodies, random_pauses(chance, parsed.requests, parsed.rate))
    else:
        measured = closed_arrivals(ask, bodies, parsed.concurrency)
    found = summary(measured, time.perf_counter() - began)
    arrivals = f"open, {parsed.rate:g}/s" if parsed.rate else f"closed, {parsed.concurrency} at once"
    found = {"url": client.url, "model": model, "arrivals": arrivals, **found}
    print(json.dumps(found, indent=2) if parsed.json else "\n".join(table(found)))  # noqa: T201
    if not found["succeeded"]:
        sys.exit(1)


def _body(parsed: argparse.Namespace, model: str, chance: random.Random, number: int) -> dict[str, Any]:
    """No two prompts begin alike, so that no cache of prefixes makes the server look faster than it is."""
    words = [f"{number}-{parsed.seed}", *(chance.choice(_WORDS) for _ in range(parsed.prompt_words - 1))]
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": " ".join(words)}]}
    body |= {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": parsed.max_tokens}
    return {**body, "temperature": 0, **({"ignore_eos": True} if parsed.ignore_eos else {})}


def measure(client: ApiClient, body: dict[str, Any]) -> MeasuredRequest:
    one, num_events = MeasuredRequest(), 0
    began = last = time.perf_counter()
    try:
        stream = client.stream("POST", "/v1/chat/completions", body)
        try:
            for event in stream:
                now = time.perf_counter()
                chunk = json.loads(event.data)
                if chunk.get("error"):
                    raise ApiRefused(500, str(chunk["error"].get("message")))
                if usage := chunk.get("usage"):
                    one.num_prompt_tokens = int(usage.get("prompt_tokens") or 0)
                    one.num_tokens = int(usage.get("completion_tokens") or 0)
                if not _has_text(chunk):
                    continue
                num_events += 1
                if one.first is None:
                    one.first = now - began
                else:
                    one.gaps.append(now - last)
                last = now
                one.last = now - began
        finally:
            stream.close()
        one.end = time.perf_counter() - began
        one.num_tokens = one.num_tokens or num_events
        if one.first is None:
            one.error = "an answer without text"
    except (ApiRefused, *CONNECTION_ERRORS, ValueError, TypeError, AttributeError) as error:
        one.error = f"{type(error).__name__}: {error}"[:200]
    return one


def _has_text(chunk: dict[str, Any]) -> bool:
    deltas = (choice.get("delta") or {} for choice in chunk.get("choices") or ())
    return any(
        delta.get(name) for delta in deltas for name in ("content", "reasoning_content", "reasoning", "tool_calls")
    )


Ask = Callable[[dict[str, Any]], MeasuredRequest]


def closed_arrivals(ask: Ask, bodies: Sequence[dict[str, Any]], concurrency: int) -> list[MeasuredRequest]:
    waiting, lock, done = iter(bodies), threading.Lock(), []

    def work() -> None:
        while True:
            with lock:
                body = next(waiting, None)
            if body is None:
                return
            done.append(ask(body))

    _run_all([threading.Thread(target=work, daemon=True) for _ in range(min(concurrency, len(bodies)))])
    return done


def random_pauses(chance: random.Random, count: int, rate: float) -> list[float]:
    """Of a Poisson process, stretched so that the last request comes at count / rate: few requests vary by tenths."""
    pauses = [chance.expovariate(rate) for _ in range(count)]
    return [pause * count / rate / sum(pauses) for pause in pauses]


def open_arrivals(ask: Ask, bodies: Sequence[dict[str, Any]], pauses: Sequence[float]) -> list[MeasuredRequest]:
    done: list[MeasuredRequest] = []
    threads = [threading.Thread(target=lambda body=body: done.append(ask(body)), daemon=True) for body in bodies]
    due_at = time.perf_counter()
    for thread, pause in zip(threads, pauses, strict=True):
        due_at += pause
        time.sleep(max(0.0, due_at - time.perf_counter()))
        thread.start()
    for thread in threads:
        thread.join()
    return done


def _run_all(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def summary(measured: Sequence[MeasuredRequest], seconds: float) -> dict[str, Any]:
    good = [one for one in measured if one.error is None]
    errors: dict[str, int] = {}
    for one in measured:
        if one.error:
            errors[one.error] = errors.get(one.error, 0) + 1
    per_token = [
        (one.last - one.first) / (one.num_tokens - 1) for one in good if one.first is not None and one.num_tokens > 1
    ]
    return {
        "succeeded": len(good),
        "failed": len(measured) - len(good),
        "errors": errors,
        "seconds": round(seconds, 3),
        "requests_per_second": round(len(good) / seconds, 3),
        "prompt_tokens_per_second": round(sum(one.num_prompt_tokens for one in good) / seconds, 1),
        "tokens_per_second": round(sum(one.num_tokens for one in good) / seconds, 1),
        "tokens": sum(one.num_tokens for one in good),
        "first_token_ms": spread([one.first for one in good if one.first is not None]),
        "gap_ms": spread([gap for one in good for gap in one.gaps]),
        "per_token_ms": spread(per_token),
        "end_to_end_ms": spread([one.end for one in good]),
    }


def spread(seconds: Sequence[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    found = {f"p{percent}": percentile(ordered, percent) for percent in _PERCENTILES}
    return {
        name: round(value * 1000, 2) for name, value in {"mean": fmean(ordered), **found, "max": ordered[-1]}.items()
    }


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Between the two nearest values, as numpy does."""
    at = (len(ordered) - 1) * percent / 100
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def table(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['model']} at {found['url']}, arrivals {found['arrivals']}"
    yield f"{found['succeeded']} answers, {found['failed']} failures in {found['seconds']:.1f} s"
    for error, count in found["errors"].items():
        yield f"  {count} x {error}"
    yield (
        f"{found['requests_per_second']:.2f} requests/s   {found['prompt_tokens_per_second']:.1f} prompt tokens/s   "
        f"{found['tokens_per_second']:.1f} tokens/s"
    )
    yield f"{'milliseconds':<16}" + "".join(f"{name:>10}" for name in ("mean", "p50", "p90", "p99", "max"))
    for name, title in (
        ("first_token_ms", "first token"),
        ("gap_ms", "gap"),
        ("per_token_ms", "per token"),
        ("end_to_end_ms", "end to end"),
    ):
        if found[name]:
            yield f"{title:<16}" + "".join(f"{value:>10.1f}" for value in found[name].values())
