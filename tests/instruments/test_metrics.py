"""What `/metrics` exposes: documented, complete, and with labels of closed sets."""

import asyncio
import re
import runpy
from collections.abc import Iterator

import httpx2
import pytest

from tests.media.loading import load
from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, Served, served, settings_with
from tests.test_status import until
from tis.media.errors import BadMedia
from tis.observability.metrics import REGISTRY

# vLLM's metrics of a server without disaggregation, speculative models and multi-modal caches, without their prefix.
OF_VLLM = """num_requests_running num_requests_waiting kv_cache_usage_perc prefix_cache_queries_total
prefix_cache_hits_total num_preemptions_total prompt_tokens_total generation_tokens_total request_success_total
request_prompt_tokens request_generation_tokens time_to_first_token_seconds inter_token_latency_seconds
request_time_per_output_token_seconds e2e_request_latency_seconds request_queue_time_seconds
request_inference_time_seconds request_prefill_time_seconds request_decode_time_seconds
spec_decode_num_draft_tokens_total spec_decode_num_accepted_tokens_total""".split()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with()) as running:
        yield running


def page_of(server: Served) -> str:
    return httpx2.get(f"{server.url}/metrics", timeout=60).text  # it has the models of all tests of this process


def samples(server: Served) -> dict[str, float]:
    lines = [line for line in page_of(server).splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_the_page_in_the_documents_is_what_a_server_exposes(server: Served) -> None:
    until(lambda: "tis_database_connections_used" in page_of(server))
    script = runpy.run_path(str(REPOSITORY / "scripts" / "write_metrics.py"))
    assert script["table_of"](page_of(server)) == script["written_table"](), "python scripts/write_metrics.py"


def test_nothing_of_vllm_is_missing(server: Served) -> None:
    names = set(re.findall(r"^# TYPE tis_(\S+) ", page_of(server), re.MULTILINE))
    assert set(OF_VLLM) <= names
    assert {"embedding_cache_hits_total", "embedding_cache_misses_total"} <= set(
        re.findall(r"^# TYPE (\S+) ", page_of(server), re.MULTILINE)
    )


def test_an_answer_counts_where_it_should(server: Served) -> None:
    before = samples(server)
    for fields in ({"stream": True}, {"max_tokens": 3}, {"n": 2}):
        assert httpx2.post(server.url + CHAT, json=said("Halo kopi", **fields)).status_code == 200
    after = samples(server)

    def grown(name: str, labels: str = "") -> float:
        key = f'{name}{{{labels}model_name="echo"}}'
        return after[key] - before.get(key, 0)

    assert grown("tis_prompt_tokens_total") == 27 and grown("tis_generation_tokens_total") == 9 + 3 + 18
    assert grown("tis_prefix_cache_queries_total") == 27
    assert grown("tis_request_success_total", 'finished_reason="stop",') == 3
    assert grown("tis_request_success_total", 'finished_reason="length",') == 1
    for name in (
        *("time_to_first_token_seconds", "e2e_request_latency_seconds", "request_prefill_time_seconds"),
        *("request_decode_time_seconds", "request_inference_time_seconds", "request_queue_time_seconds"),
        *("request_prompt_tokens", "request_generation_tokens", "request_time_per_output_token_seconds"),
    ):
        assert grown(f"tis_{name}_count") == 3, name
    assert grown("tis_request_generation_tokens_sum") == 30
    parts = sum(grown(f"tis_request_{name}_time_seconds_sum") for name in ("queue", "prefill", "decode"))
    assert 0 < parts <= grown("tis_e2e_request_latency_seconds_sum") + 0.01


def test_sessions_and_states_are_seen(server: Served) -> None:
    before = samples(server)
    assert httpx2.post(server.url + CHAT, json=said("x", stream=True, session_id="kept")).status_code == 200
    after = samples(server)
    assert after['tis_sessions{state="kept"}'] > 0 and after["tis_sse_clients"] == 0
    assert after["tis_session_events_total"] > before["tis_session_events_total"]
    assert after['tis_session_store_state{state="memory"}'] == 1
    assert after['tis_model_state{model_name="echo",state="ready"}'] == 1
    assert sum(value for name, value in after.items() if name.startswith("tis_model_state{")) == 1


def test_refused_media_are_counted_by_their_code() -> None:
    def refused() -> float:
        return REGISTRY.get_sample_value("tis_media_rejected_total", {"reason": "invalid_image_format"}) or 0

    before = refused()
    with pytest.raises(BadMedia):
        asyncio.run(load("data:image/png;base64,AAAA"))
    assert refused() == before + 1


def test_no_label_takes_what_a_client_sends(server: Served) -> None:
    secret = "rahasia-0815"
    for path in (f"/{secret}", f"/v1/stream/{secret}", f"/v1/models/{secret}", f"/api/products/{secret}"):
        httpx2.get(server.url + path, headers={"X-Request-ID": secret, "User-Agent": secret})
    httpx2.request("PURGE", f"{server.url}/live")
    httpx2.post(server.url + CHAT, json=said(secret, model=secret, user=secret, session_id=secret))
    page = page_of(server)
    assert secret not in page and "PURGE" not in page
    routes = set(re.findall(r'tis_http_requests_total\{.*?route="([^"]*)"', page))
    assert {"(none)", "/v1/stream/{session_id}", "/v1/chat/completions"} <= routes
