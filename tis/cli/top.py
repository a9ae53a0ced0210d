"""`tis top`: what a server does now, from its `/metrics`."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tis.cli.api_client import CONNECTION_ERRORS, AddressError, ApiClient, ApiRefused, client_of, printable
from tis.cli.ctrl_c import raise_keyboard_interrupt
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Show what a server does now: models, running and waiting requests, tokens per second, cache, memory.

URL is the server; without it, that on HOST and PORT. Ctrl-C ends it."""
_HEAD = (
    "MODEL",
    "STATE",
    "RUN",
    "WAIT",
    "PROMPT/s",
    "TOKENS/s",
    "FIRST p50",
    "FIRST p99",
    "GAP p50",
    "CACHE",
    "MEMORY",
)
_FIRST_TO_GO = ("FIRST p99", "GAP p50", "PROMPT/s", "FIRST p50", "STATE")  # where a terminal is too narrow for all
_CLEAR = "\x1b[H\x1b[J"

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", nargs="?", metavar="URL", help="such as http://127.0.0.1:3000")
    parser.add_argument("--key", help="API key; without it OPENAI_API_KEY, or the first of API_KEYS")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="between two looks (default 2)")
    parser.add_argument("--once", action="store_true", help="print one table and end")
    parser.add_argument("--json", action="store_true", help="print one look as JSON and end")


def run(parsed: argparse.Namespace) -> None:
    raise_keyboard_interrupt()
    every = min(max(parsed.every, 0.2), 60.0)
    try:
        client = client_of(Settings.from_env(), parsed.url, parsed.key, timeout=10)
        before = _look(client)
    except (SettingsError, AddressError, ApiRefused) as error:
        sys.exit(f"Cannot watch: {error}")
    except (*CONNECTION_ERRORS, ValueError) as error:
        sys.exit(f"Cannot watch: no metrics at {client.url}/metrics ({error}).")
    while True:
        time.sleep(every)
        try:
            now = _look(client)
        except (ApiRefused, *CONNECTION_ERRORS, ValueError) as error:
            if parsed.once or parsed.json:
                sys.exit(f"Cannot watch: {error}")
            print(f"{_CLEAR}{client.url}: {printable(str(error))}", flush=True)  # noqa: T201
            continue
        view = View(before, now)
        if parsed.json:
            print(json.dumps(view.to_json(), indent=2))  # noqa: T201
            return
        table = "\n".join(view.lines(client.url, _columns()))
        print(table if parsed.once else _CLEAR + table, flush=True)  # noqa: T201
        if parsed.once:
            return
        before = now if now.at - before.at >= every else before


@dataclass(frozen=True, slots=True)
class MetricsLook:
    at: float
    samples: Samples

    def value(self, name: str, **labels: str) -> float:
        """The sum of all series with these labels."""
        wanted = labels.items()
        return sum(value for (one, of_one), value in self.samples.items() if one == name and wanted <= set(of_one))

    def labels(self, name: str, label: str) -> list[str]:
        found = (dict(of_one).get(label) for one, of_one in self.samples if one == name)
        return sorted({one for one in found if one})


def _look(client: ApiClient) -> MetricsLook:
    from prometheus_client.parser import text_string_to_metric_families

    page = client.get_text("/metrics")
    samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    look = MetricsLook(time.monotonic(), samples)
    if not look.labels("tis_model_state", "model_name"):
        raise ValueError("it is no server of ours")
    return look


@dataclass(frozen=True, slots=True)
class View:
    """Two looks, and what happened between them."""

    before: MetricsLook
    now: MetricsLook

    def rate(self, name: str, **labels: str) -> float:
        seconds = max(self.now.at - self.before.at, 1e-6)
        return max(0.0, self.now.value(name, **labels) - self.before.value(name, **labels)) / seconds

    def quantile(self, name: str, share: float, **labels: str) -> float | None:
        """Within the buckets, as Prometheus estimates it; of all time if nothing happened between the looks."""
        for since in (self.before, None):
            counts: dict[float, float] = {}
            for bound in self.now.labels(f"{name}_bucket", "le"):
                made = self.now.value(f"{name}_bucket", le=bound, **labels)
                counts[float(bound)] = made - (since.value(f"{name}_bucket", le=bound, **labels) if since else 0)
            if counts and max(counts.values()) > 0:
                return _quantile(sorted(counts.items()), share)
        return None

    def to_json(self) -> dict[str, object]:
        return {
            "models": [self._model(name) for name in self.now.labels("tis_model_state", "model_name")],
            "requests_per_second": self.rate("tis_http_requests_total"),
            "errors_per_second": sum(
                self.rate("tis_http_requests_total", status=status)
                for status in self.now.labels("tis_http_requests_total", "status")
                if status.startswith("5")
            ),
            "refusals_per_second": self.rate("tis_admission_rejections_total"),
            "streams": self.now.value("tis_sessions", state="running"),
            "readers": self.now.value("tis_sse_clients"),
            "store_lag_seconds": self.now.value("tis_session_store_durable_lag_seconds"),
            "memory_bytes": self.now.value("tis_resident_memory_bytes"),
            "loop_lag_p99_seconds": self.quantile("tis_event_loop_lag_seconds", 0.99),
        }

    def _model(self, name: str) -> dict[str, object]:
        labels = {"model_name": name}
        states = self.now.labels("tis_model_state", "state")
        return {
            "model": name,
            "state": next((one for one in states if self.now.value("tis_model_state", state=one, **labels)), "-"),
            "running": self.now.value("tis_num_requests_running", **labels),
            "waiting": self.now.value("tis_num_requests_waiting", **labels),
            "prompt_tokens_per_second": self.rate("tis_prompt_tokens_total", **labels),
            "tokens_per_second": self.rate("tis_generation_tokens_total", **labels),
            "first_token_p50_seconds": self.quantile("tis_time_to_first_token_seconds", 0.5, **labels),
            "first_token_p99_seconds": self.quantile("tis_time_to_first_token_seconds", 0.99, **labels),
            "gap_p50_seconds": self.quantile("tis_inter_token_latency_seconds", 0.5, **labels),
            "cache_use": self.now.value("tis_kv_cache_usage_perc", **labels),
            "memory_bytes": self.now.value("tis_model_memory_bytes", **labels),
        }

    def lines(self, url: str, columns: int) -> Iterator[str]:
        given = self.to_json()
        models = given.pop("models")
        assert isinstance(models, list)
        yield f"{url}   {time.strftime('%H:%M:%S')}"[:columns]
        shown = {name: float(str(value or 0)) for name, value in given.items()}
        facts = (
            f"requests {shown['requests_per_second']:.1f}/s",
            f"errors {shown['errors_per_second']:.1f}/s",
            f"refused {shown['refusals_per_second']:.1f}/s",
            f"streams {shown['streams']:.0f}, readers {shown['readers']:.0f}",
            f"store lag {_seconds(shown['store_lag_seconds'])}",
            f"loop lag p99 {_seconds(shown['loop_lag_p99_seconds'])}",
            f"memory {_size(shown['memory_bytes'])}",
        )
        yield from _in_lines(facts, columns)
        yield ""
        yield from _table([_HEAD, *(_cells(model) for model in models)], columns)


def _columns() -> int:
    """What a program or a file gets is whole."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or os.environ.get("COLUMNS") else sys.maxsize


def _in_lines(facts: Sequence[str], columns: int) -> Iterator[str]:
    line = ""
    for fact in facts:
        if line and len(line) + 3 + len(fact) > columns:
            yield line
            line = ""
        line += f"   {fact}" if line else fact[:columns]
    yield line


def _table(rows: Sequence[Sequence[str]], columns: int) -> Iterator[str]:
    """Some columns stay away rather than that the last ones, cache and memory, are cut off."""
    shown = list(zip(*rows, strict=True))
    widths = {column[0]: max(map(len, column)) for column in shown}
    for name in _FIRST_TO_GO:
        if sum(widths.values()) + 2 * (len(widths) - 1) > columns:
            del widths[name]
    for row in rows:
        cells = (
            cell.ljust(widths[name]) if name in ("MODEL", "STATE") else cell.rjust(widths[name])
            for name, cell in zip(_HEAD, row, strict=True)
            if name in widths
        )
        yield "  ".join(cells)[:columns].rstrip()


def _quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    wanted, below, lower = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (wanted - below) / max(count - below, 1e-9)
        below, lower = count, bound
    return lower


def _cells(model: Mapping[str, object]) -> tuple[str, ...]:
    def number(name: str) -> float:
        return float(str(model[name] or 0))

    def seconds(name: str) -> str:
        return "-" if model[name] is None else _seconds(number(name))

    return (
        printable(str(model["model"])),
        str(model["state"]),
        f"{number('running'):.0f}",
        f"{number('waiting'):.0f}",
        f"{number('prompt_tokens_per_second'):.1f}",
        f"{number('tokens_per_second'):.1f}",
        seconds("first_token_p50_seconds"),
        seconds("first_token_p99_seconds"),
        seconds("gap_p50_seconds"),
        f"{number('cache_use'):.0%}",
        _size(number("memory_bytes")),
    )


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _size(size: float) -> str:
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"
