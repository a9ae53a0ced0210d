"""Limits of calls: for each key, else for each address; what is left is in headers, and Retry-After is true."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI, RateLimitError

from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with
from tests.test_status import until
from tis.http.api_keys import ANONYMOUS, ApiKey, CallLimits, digest_of
from tis.http.call_counts import LocalCounts
from tis.http.call_limits import _duration
from tis.http.call_rates import CallRates
from tis.http.errors import CallLimitReached

MESSAGES = "/v1/messages"


class Hand:
    """A clock that a test sets."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def key(name: str, **limits: int) -> ApiKey:
    return ApiKey(name, digest_of(name), limits=CallLimits(**limits))


def refused(rates: CallRates, caller: ApiKey | None, address: str = "192.0.2.1") -> CallLimitReached | None:
    meter = rates.meter(caller, address)
    try:
        asyncio.run(meter.begin())
    except CallLimitReached as error:
        return error
    meter.end()
    return None


@pytest.mark.parametrize(
    ("limit", "seconds"), [("requests_per_minute", 60), ("tokens_per_minute", 60), ("tokens_per_day", 86_400)]
)
def test_after_the_time_that_a_refusal_names_a_call_is_accepted_and_before_it_is_not(limit: str, seconds: int) -> None:
    clock = Hand()
    rates = CallRates(CallLimits(**{limit: 3}), LocalCounts(clock))
    for _ in range(3):
        assert refused(rates, None) is None
        rates.meter(None, "192.0.2.1").count_tokens(prompt=1)
        clock.now += 5.3
    error = refused(rates, None)
    assert error and error.retry_after == math.ceil(seconds - 3 * 5.3)
    assert error.headers["Retry-After"] == str(error.retry_after)
    assert error.headers.get("x-should-retry") == (None if seconds == 60 else "false")
    clock.now += error.retry_after - 1
    assert refused(rates, None)
    clock.now += 1
    assert refused(rates, None) is None


def test_the_longest_of_several_waits_is_named() -> None:
    clock = Hand()
    rates = CallRates(CallLimits(requests_per_minute=1, tokens_per_day=5), LocalCounts(clock))
    assert refused(rates, None) is None
    rates.meter(None, "192.0.2.1").count_tokens(generated=9)
    error = refused(rates, None)
    assert error and error.retry_after == 86_400 and "5 tokens per day" in error.message


def test_keys_and_addresses_have_windows_of_their_own_and_a_key_its_own_limits() -> None:
    rates = CallRates(CallLimits(requests_per_minute=1))
    assert [bool(refused(rates, one)) for one in (key("a"), key("a"), key("b"))] == [False, True, False]
    assert [bool(refused(rates, key("c", requests_per_minute=2))) for _ in range(3)] == [False, False, True]
    assert not any(refused(rates, key("d", requests_per_minute=0)) for _ in range(5))
    assert not any(refused(rates, key("admin")) for _ in range(5))
    assert [bool(refused(rates, None, one)) for one in ("192.0.2.1", "192.0.2.1", "192.0.2.2")] == [False, True, False]


def test_running_calls_are_counted_until_they_end() -> None:
    counts = LocalCounts()
    rates = CallRates(CallLimits(running_requests=1), counts)
    first = rates.meter(None, "192.0.2.1")
    asyncio.run(first.begin())
    assert refused(rates, None) and refused(rates, None, "192.0.2.2") is None
    first.end()
    assert refused(rates, None) is None and not counts.running


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.25, "250ms"), (12.4, "12s"), (360, "6m0s"), (86_399, "23h59m59s")]
)
def test_the_time_until_a_reset_is_written_as_openai_writes_it(seconds: float, text: str) -> None:
    assert _duration(seconds) == text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    keys = [
        entry("calls", "sk-calls", requests_per_minute=2),
        entry("claude", "sk-claude", requests_per_minute=1, tokens_per_day=1000),
        entry("tokens", "sk-tokens", tokens_per_minute=10, tokens_per_day=100),
        entry("stream", "sk-stream", running_requests=1),
        entry("plain", "sk-plain"),
    ]
    path = write_key_file(tmp_path_factory.mktemp("keys") / "keys.yaml", *keys)
    with served(settings_with(api_keys_file=str(path), model_repo_id="echo?tokens_per_second=50")) as running:
        yield running


def post(server: Served, name: str, text: str = "Halo", path: str = CHAT, **more: Any) -> httpx2.Response:
    return httpx2.post(server.url + path, json=said(text, **more), headers=bearer(f"sk-{name}"))


def usage(server: Served, name: str) -> Any:
    return httpx2.get(f"{server.url}/v1/usage", headers=bearer(f"sk-{name}")).json()


def test_calls_a_minute_are_shown_in_headers_and_refused_in_openais_shape(server: Served) -> None:
    answers = [post(server, "calls") for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 429]
    assert [one.headers["x-ratelimit-remaining-requests"] for one in answers] == ["1", "0", "0"]
    last = answers[-1]
    assert last.headers["x-ratelimit-limit-requests"] == "2" and 50 <= int(last.headers["retry-after"]) <= 60
    assert "x-ratelimit-limit-tokens" not in last.headers
    assert (
        last.json()["error"]["type"] == "rate_limit_error"
        and "2 requests per minute" in last.json()["error"]["message"]
    )
    with pytest.raises(RateLimitError):
        OpenAI(base_url=f"{server.url}/v1", api_key="sk-calls", max_retries=0).chat.completions.create(
            model="echo", messages=[{"role": "user", "content": "Halo"}]
        )
    # What makes no answer is not counted.
    assert httpx2.get(f"{server.url}/v1/models", headers=bearer("sk-calls")).status_code == 200
    assert httpx2.post(f"{server.url}/v1/cancel/unknown", headers=bearer("sk-calls")).status_code == 200


def test_messages_have_the_headers_and_errors_of_anthropic(server: Served) -> None:
    first, second = (post(server, "claude", path=MESSAGES, max_tokens=5) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 429)
    assert second.json()["error"]["type"] == "rate_limit_error"
    assert first.headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert first.headers["anthropic-ratelimit-tokens-limit"] == "1000"
    assert int(second.headers["anthropic-ratelimit-tokens-remaining"]) < 1000
    assert first.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert not any(name.startswith("x-ratelimit") for name in first.headers)


def test_tokens_of_prompts_and_answers_are_counted(server: Served) -> None:
    assert post(server, "tokens", "Halo").status_code == 200
    used = usage(server, "tokens")
    assert (used["key"], used["requests"], used["completion_tokens"]) == ("tokens", 1, 4) and used["prompt_tokens"] >= 4
    left = used["limits"]["tokens_per_minute"]["remaining"]
    assert left == max(0, 10 - used["prompt_tokens"] - 4)
    assert post(server, "tokens", "a longer text").status_code == (200 if left else 429)
    refusal = post(server, "tokens")
    assert refusal.status_code == 429 and "10 tokens per minute" in refusal.json()["error"]["message"]
    assert refusal.headers["x-ratelimit-remaining-tokens"] == "0"
    assert usage(server, "plain")["requests"] == 0


def test_running_streams_are_limited_and_one_that_its_client_left_still_runs(server: Served) -> None:
    text, headers = "x" * 60, bearer("sk-stream")
    with httpx2.stream("POST", server.url + CHAT, json=said(text, stream=True, session_id="s"), headers=headers) as one:
        next(one.iter_bytes())
        refusal = post(server, "stream")
        assert (refusal.status_code, refusal.headers["retry-after"]) == (429, "1")
    assert post(server, "stream").status_code == 429
    assert httpx2.post(f"{server.url}/v1/cancel/s", headers=headers).json()["status"] == "cancelled"
    until(lambda: usage(server, "stream")["running"] == 0)
    assert post(server, "stream").status_code == 200


def test_the_metrics_show_the_use_of_keys_by_their_names_only(server: Served) -> None:
    post(server, "plain")
    page = httpx2.get(f"{server.url}/metrics", headers=bearer("sk-plain")).text
    lines = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in page.splitlines() if line[:1] != "#"}
    assert lines['tis_key_requests_total{key="plain"}'] >= 1
    assert lines['tis_key_generated_tokens_total{key="plain"}'] >= 4
    labels = {name for name in lines if name.startswith("tis_key_requests_total")}
    assert labels == {
        f'tis_key_requests_total{{key="{one}"}}' for one in ("calls", "claude", "tokens", "stream", "plain")
    }
    assert "sk-" not in page and digest_of("sk-plain").hex() not in page


def test_without_keys_each_address_behind_a_trusted_proxy_has_its_own_limit() -> None:
    with served(settings_with(requests_per_minute=1)) as open_server:

        def status(address: str) -> int:
            headers = {"X-Forwarded-For": address}  # uvicorn trusts this computer
            return httpx2.post(open_server.url + CHAT, json=said("Halo"), headers=headers).status_code

        assert [status("192.0.2.1"), status("192.0.2.1"), status("192.0.2.2")] == [200, 429, 200]
        assert [status("2001:db8::1"), status("2001:db8::ffff"), status("2001:db8:0:1::1")] == [200, 429, 200]
        used = httpx2.get(f"{open_server.url}/v1/usage", headers={"X-Forwarded-For": "192.0.2.1"}).json()
        assert used["key"] == ANONYMOUS and used["limits"]["requests_per_minute"]["remaining"] == 0


def test_the_limits_of_the_settings_hold_for_keys_without_their_own(tmp_path: Path) -> None:
    path = write_key_file(tmp_path / "keys.json", entry("free", "sk-free", requests_per_minute=0))
    with served(settings_with(api_keys="sk-laptop", api_keys_file=str(path), requests_per_minute=1)) as both:
        assert [post(both, name).status_code for name in ("laptop", "laptop", "free", "free")] == [200, 429, 200, 200]
