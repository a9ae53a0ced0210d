"""What /status computes of /metrics: the same as prometheus_client and `tis top` find in the same text."""

import json
import math
import random
import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.browser.conftest import Visitor
from tests.browser.looks import PHONE, PageLook, on_both_screens_too
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Process, server_process, wait_until_live
from tis.cli.top import MetricsLook, View

# On a machine with other work the sentence may say that the server itself is late.
IDLE = "h1:is([data-message=idle], [data-message=late])"


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    """A process of its own: metrics count all that their process does, and only so many refusals are listed."""
    with server_process(MODEL_REPO_ID="echo?tokens_per_second=40") as server:
        wait_until_live(server.url, 60)
        yield server


def in_page(page: Page, module: str, body: str, *arguments: Any) -> Any:
    """Runs a function of a module of the page: `body` sees it as `m`, and the arguments as `a`."""
    asset = page.locator('link[rel="manifest"]').get_attribute("href")
    assert asset
    address = asset.replace("manifest.webmanifest", module)
    script = (
        "async ([address, a]) => { const m = await import(new URL(address, document.baseURI).href);"
        f" return JSON.stringify(await (async () => {{ {body} }})()); }}"
    )
    return json.loads(page.evaluate(script, [address, list(arguments)]))


def look_at(text: str, at: float) -> MetricsLook:
    samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return MetricsLook(at, samples)


def odd_page() -> str:
    registry = CollectorRegistry()
    odd = Counter("odd", 'Has "quotes",\nlines', ["name", "other"], registry=registry)
    odd.labels('a "b" \\ c\nd, e="f"}', "").inc(3)
    odd.labels("ä{}", "# not a comment").inc(0.25)
    Gauge("endless", "Without end", registry=registry).set(math.inf)
    Gauge("large", "In another notation", registry=registry).set(1.5e300)
    return generate_latest(registry).decode()


def test_the_page_reads_what_prometheus_client_writes(visitor: Visitor, server: Process) -> None:
    httpx2.post(server.url + CHAT, json=said("satu dua tiga"), timeout=30).raise_for_status()
    page = visitor.open(f"{server.url}/status")
    for text in (odd_page(), httpx2.get(f"{server.url}/metrics").text):
        read = in_page(
            page,
            "status/metrics_text.js",
            "return [...m.parseMetrics(a[0]).series].flatMap(([name, all]) =>"
            " all.map((one) => [name, Object.entries(one.labels).sort(), String(one.value)]));",
            text,
        )
        found = {
            (name, frozenset(map(tuple, labels))): float(value.replace("Infinity", "inf"))
            for name, labels, value in read
        }
        assert found == look_at(text, 0).samples


def test_percentiles_and_rates_are_those_of_tis_top(visitor: Visitor, server: Process) -> None:
    chance = random.Random(7)
    registry = CollectorRegistry()
    spread = Histogram("spread_seconds", "Of two models", ["model"], buckets=(0.01, 0.1, 1, 10), registry=registry)
    counted = Counter("counted", "Of two models", ["model"], registry=registry)
    texts = []
    for _ in range(2):
        for _ in range(200):
            spread.labels(chance.choice("ab")).observe(chance.lognormvariate(-2, 2))
            counted.labels(chance.choice("ab")).inc(chance.random())
        texts.append(generate_latest(registry).decode())
    page = visitor.open(f"{server.url}/status")
    view = View(look_at(texts[0], 0), look_at(texts[1], 4))
    for labels in ({}, {"model": "a"}):
        for share in (0.05, 0.5, 0.95, 1.0):
            found = in_page(
                page,
                "status/quantiles.js",
                'const { parseMetrics } = await import(new URL("metrics_text.js", new URL(address, document.baseURI)));'
                " const [before, now] = [parseMetrics(a[0], 0), parseMetrics(a[1], 4000)];"
                ' return [m.quantile(m.bucketsBetween(before, now, "spread_seconds", a[2]), a[3]),'
                ' m.rateBetween(before, now, "counted_total", a[2])];',
                *texts,
                labels,
                share,
            )
            assert found == pytest.approx(
                [view.quantile("spread_seconds", share, **labels), view.rate("counted_total", **labels)]
            )
    assert in_page(page, "status/quantiles.js", "return m.quantile([[1, 0], [Infinity, 0]], 0.5);") is None
    times = [[0.1, 0], [1, 30], [10, 30], [60, 40]]
    spread = in_page(page, "status/quantiles.js", "return m.spreadOf(a[0]);", times)
    assert spread == [[0.1, 1, 0.75], [10, 60, 0.25]]


def rounded(value: float, digits: int) -> Decimal:
    """A half goes up, as in JavaScript."""
    return Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def written(seconds: float, look: PageLook) -> str:
    """As the page writes it."""
    if seconds < 0.00995:
        number, unit = rounded(seconds * 1000, 1), "unit.ms"
    elif seconds < 0.9995:
        number, unit = rounded(seconds * 1000, 0), "unit.ms"
    else:
        number, unit = rounded(seconds, 2), "unit.s"
    text = str(number).replace(".", ",") if look.language == "id" else str(number)
    return f"{text} {look.t(unit)}"


@on_both_screens_too
def test_the_numbers_shown_are_those_of_metrics_at_that_moment(visitor: Visitor, server: Process) -> None:
    look, t = visitor.look, visitor.t
    for text in ("satu dua tiga empat lima", "enam tujuh"):
        httpx2.post(server.url + CHAT, json=said(text), timeout=30).raise_for_status()
    httpx2.post(server.url + CHAT, json=said("x", temperature=9))
    page = visitor.open(f"{server.url}/status")
    page.locator(IDLE).wait_for()
    page.get_by_role("button", name=t("status.pause"), exact=True).click()
    page.get_by_text(t("status.paused")).wait_for()
    text = httpx2.get(f"{server.url}/metrics").text
    now = look_at(text, 0)
    ever = View(look_at("", 0), now)
    tiles = {name: page.locator(f"[data-tile='{name}']").inner_text() for name in ("running", "first.token", "gap")}
    assert "\n0\n" in tiles["running"]
    for tile, metric in (
        ("first.token", "tis_time_to_first_token_seconds"),
        ("gap", "tis_inter_token_latency_seconds"),
    ):
        middle, high = (ever.quantile(metric, share) for share in (0.5, 0.95))
        assert middle is not None and high is not None
        assert f"\n{written(middle, look)}\n" in tiles[tile], tiles[tile]
        assert t("status.p95.ever", value=written(high, look)) in tiles[tile], tiles[tile]
    row = page.locator("[data-key=anonymous]")
    for metric in ("requests", "prompt_tokens", "generated_tokens", "refused"):
        shown = row.locator(f"[data-metric={metric}]").inner_text()
        assert shown == look.number(now.value(f"tis_key_{metric}_total", key="anonymous")), metric
    streams = page.locator("[data-part=streams]")
    events = streams.locator("[data-fact='status.events'] dd").inner_text()
    assert events == look.number(now.value("tis_session_events_total"))
    refused = now.value("tis_http_requests_total", status="400", route="/v1/chat/completions")
    line = page.locator("[data-part=refusals] li", has_text="400 · /v1/chat/completions")
    assert refused >= 1 and line.locator(".numbers").inner_text() == f"{refused:.0f}"


def test_the_page_shows_no_name_of_a_message(visitor: Visitor, server: Process) -> None:
    page = visitor.open(f"{server.url}/status", PHONE)
    page.locator(IDLE).wait_for()
    assert re.findall(r"\bstatus\.[a-z0-9.]+\b", page.locator("main").inner_text()) == []
