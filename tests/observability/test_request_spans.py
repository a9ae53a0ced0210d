"""The spans of requests, as an exporter gets them."""

import logging
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import httpx2
import pytest

from tests.mcp_client.fake_mcp_server import FakeMcpServer, fake_mcp_server
from tests.observability.span_tree import SeenSpans, attributes_of, id_of, trace_of, traced_server
from tests.observability.test_request_log import json_log, lines_of  # noqa: F401  a fixture
from tests.openai_api.responses.mcp.mcp_requests import a_call
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served
from tests.test_status import until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
SECRET = "rahasia-4711"
Traced = tuple[Served, SeenSpans]


@pytest.fixture(scope="module")
def mcp() -> Iterator[FakeMcpServer]:
    with fake_mcp_server() as server:
        yield server


@pytest.fixture(scope="module")
def server(mcp: FakeMcpServer) -> Iterator[Traced]:
    with traced_server(mcp_allowed_hosts=mcp.host, log_level="info") as (running, seen):
        httpx2.post(running.url + CHAT, json=said("this loads the model"), timeout=30)
        yield running, seen


@pytest.fixture
def seen(server: Traced) -> SeenSpans:
    server[1].clear()
    return server[1]


@pytest.fixture
def http(server: Traced) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server[0].url, timeout=30) as client:
        yield client


def stream(http: httpx2.Client, body: dict[str, Any], **headers: str) -> str:
    with http.stream("POST", CHAT, json={**body, "stream": True}, headers=headers) as answer:
        return "".join(answer.iter_text())


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_chat_is_a_tree_of_what_took_time(http: httpx2.Client, seen: SeenSpans, is_streamed: bool) -> None:
    body = said("Halo", max_tokens=3, temperature=0.5)
    if is_streamed:
        stream(http, body)
    else:
        http.post(CHAT, json=body)
    request = seen.named(f"POST {CHAT}")
    assert seen.tree(request) == {f"POST {CHAT}": ["prepare", {"chat echo": ["queue", "prefill", "decode"]}]}
    assert request.kind.name == "SERVER" and request.parent is None and request.status.status_code.name == "UNSET"
    attributes = attributes_of(request)
    assert attributes.pop("tis.request.id").startswith("req-")
    assert attributes == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "http.route": CHAT,
        "http.response.status_code": 200,
    }
    run = seen.named("chat echo")
    attributes = attributes_of(run)
    assert attributes.pop("gen_ai.response.id").startswith("chatcmpl-")
    assert 0 < attributes.pop("gen_ai.response.time_to_first_chunk") < 20
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "transformers-inference-server",
        "gen_ai.request.model": "echo",
        "gen_ai.response.model": "echo",
        "gen_ai.request.max_tokens": 3,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.usage.input_tokens": 4,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.response.finish_reasons": ("length",),
        "tis.dialect": "chat",
        "tis.run.outcome": "finished",
    }
    times = [(span.start_time or 0, span.end_time or 0) for span in seen.children(run)]
    assert [end for _, end in times[:-1]] == pytest.approx([begin for begin, _ in times[1:]], abs=2_000_000)
    assert (run.start_time or 0) <= times[0][0] + 2_000_000 and times[-1][1] <= (run.end_time or 0)


def test_the_trace_of_the_client_goes_on_here(http: httpx2.Client, seen: SeenSpans) -> None:
    http.post(CHAT, json=said("Halo"), headers={**SAMPLED, "tracestate": "vendor=1"})
    request = seen.named(f"POST {CHAT}")
    assert request.parent and f"{request.parent.span_id:016x}" == PARENT and request.parent.is_remote
    assert {f"{trace_of(span):032x}" for span in seen.all} == {TRACE}


@pytest.mark.parametrize(
    "given", ["", "00-0-0-01", f"00-{'0' * 32}-{PARENT}-01", "x" * 3000, f"ff-{TRACE}-{PARENT}-01"]
)
def test_a_header_that_names_no_trace_begins_a_new_one(http: httpx2.Client, seen: SeenSpans, given: str) -> None:
    assert http.post(CHAT, json=said("Halo"), headers={"traceparent": given}).status_code == 200
    assert seen.named(f"POST {CHAT}").parent is None


def test_what_the_client_does_not_sample_is_not_sent(
    http: httpx2.Client,
    seen: SeenSpans,
    mcp: FakeMcpServer,
    json_log: StringIO,  # noqa: F811
) -> None:
    mcp.headers.clear()
    unsampled = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
    assert http.post(CHAT, json=calling(mcp), headers=unsampled).status_code == 200
    http.post(CHAT, json=said("after"))
    seen.named(f"POST {CHAT}")
    assert TRACE not in {f"{trace_of(span):032x}" for span in seen.all}
    assert all(one["traceparent"].startswith(f"00-{TRACE}-") for one in mcp.headers)
    assert all(one["traceparent"].endswith("-00") for one in mcp.headers)
    first, *_ = [line for line in lines_of(json_log) if line["logger"] == "tis.requests"]
    assert first["trace_id"] == TRACE


def test_lines_of_the_log_name_their_trace(
    http: httpx2.Client,
    seen: SeenSpans,
    json_log: StringIO,  # noqa: F811
) -> None:
    http.post(CHAT, json=said("Halo"), headers=SAMPLED)
    seen.named(f"POST {CHAT}")
    logging.getLogger("tis.errors").warning("of no request")
    request, other = lines_of(json_log)
    assert request["trace_id"] == TRACE and "trace_id" not in other


def test_probes_have_no_span(http: httpx2.Client, seen: SeenSpans) -> None:
    for path in ("/live", "/ready", "/health", "/metrics", "/version"):
        http.get(path)
    seen.named("GET /version")
    assert [span.name for span in seen.all] == ["GET /version"]


def test_faults_of_the_client_are_no_errors_of_the_span(http: httpx2.Client, seen: SeenSpans) -> None:
    http.post(CHAT, json=said("Halo", temperature=9))
    http.get(f"/v1/{SECRET}")
    wrong = seen.named(f"POST {CHAT}")
    assert attributes_of(wrong)["http.response.status_code"] == 400
    assert attributes_of(wrong)["tis.error.code"] == "invalid_value" and wrong.status.status_code.name == "UNSET"
    assert "http.route" not in attributes_of(seen.named("GET"))


def test_a_client_that_leaves_ends_the_run_as_cancelled(seen: SeenSpans) -> None:
    with traced_server(model_repo_id="echo?tokens_per_second=20", served_model_name="echo") as (running, slow):
        with httpx2.stream("POST", running.url + CHAT, json=said("x" * 200, stream=True)) as answer:
            next(answer.iter_bytes())
            session = answer.headers["x-session-id"]
        httpx2.post(f"{running.url}/v1/cancel/{session}")
        run = slow.named("chat echo")
        assert attributes_of(run)["gen_ai.response.finish_reasons"] == ("cancelled",)
        assert attributes_of(run)["tis.run.outcome"] == "cancelled"
        assert {span.name for span in slow.children(run)} == {"queue", "prefill", "decode"}


def test_a_reader_of_another_trace_is_linked_to_the_run(seen: SeenSpans) -> None:
    with traced_server(model_repo_id="echo?tokens_per_second=40", served_model_name="echo") as (running, slow):
        with httpx2.stream("POST", running.url + CHAT, json=said("x" * 40, stream=True), headers=SAMPLED) as answer:
            httpx2.get(f"{running.url}/v1/stream/{answer.headers['x-session-id']}")
            answer.read()
        reader, run = slow.named("GET /v1/stream/{session_id}"), slow.named("chat echo")
        assert f"{trace_of(run):032x}" == TRACE != f"{trace_of(reader):032x}"
        assert [link.context.span_id for link in reader.links] == [id_of(run)]
        assert not slow.named(f"POST {CHAT}").links


def calling(mcp: FakeMcpServer, **arguments: Any) -> dict[str, Any]:
    tool = {"type": "mcp", "server_label": "s", "server_url": mcp.url, "require_approval": "never"}
    return said(a_call("look", **arguments), tools=[tool])


def test_rounds_and_calls_of_tools_are_spans_and_the_trace_goes_out(
    http: httpx2.Client, seen: SeenSpans, mcp: FakeMcpServer
) -> None:
    mcp.headers.clear()
    mcp.received.clear()
    assert http.post(CHAT, json=calling(mcp, at=SECRET), headers=SAMPLED).status_code == 200
    request = seen.named(f"POST {CHAT}")
    a_round = {"round": ["prepare", "queue", "prefill", "decode"]}
    run = {"chat echo": ["tools/list", a_round, "execute_tool look", a_round]}
    assert seen.tree(request) == {f"POST {CHAT}": ["prepare", run]}
    called = seen.named("execute_tool look")
    attributes = attributes_of(called)
    assert attributes.pop("gen_ai.tool.call.id").startswith("call_")
    assert called.kind.name == "CLIENT" and attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "extension",
        "mcp.method.name": "tools/call",
    }
    whole = attributes_of(seen.named("chat echo"))
    assert (whole["tis.run.rounds"], whole["tis.run.calls"]) == (2, 1)
    for message, headers in zip(mcp.received, mcp.headers, strict=True):
        span = called if message["method"] == "tools/call" else seen.named("tools/list")
        if message["method"] in ("tools/call", "tools/list"):
            assert headers["traceparent"] == message["params"]["_meta"]["traceparent"]
            assert headers["traceparent"] == f"00-{TRACE}-{id_of(span):016x}-01"


def test_a_call_that_fails_has_the_kind_of_its_error(
    http: httpx2.Client, seen: SeenSpans, mcp: FakeMcpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = {"content": [{"type": "text", "text": SECRET}], "isError": True}
    monkeypatch.setitem(mcp.handlers, "tools/call", lambda message: failed)
    http.post(CHAT, json=calling(mcp))
    called = seen.named("execute_tool look")
    assert called.status.status_code.name == "ERROR" and called.status.description is None
    assert attributes_of(called)["error.type"] == "mcp_tool_execution_error"
    assert SECRET not in "".join(span.to_json() for span in seen.all)


def test_an_answer_that_fails_has_the_code_of_its_error(seen: SeenSpans) -> None:
    with traced_server(model_repo_id="echo?fail_after=3", served_model_name="echo") as (running, failing):
        answer = httpx2.post(running.url + CHAT, json=said("Halo semua"))
        assert failing.tree(failing.named("prepare")) == {"prepare": ["load"]}  # the first request waits for it
        run, request = failing.named("chat echo"), failing.named(f"POST {CHAT}")
        assert answer.status_code == 500 and run.status.status_code.name == request.status.status_code.name == "ERROR"
        assert attributes_of(run)["error.type"] == attributes_of(request)["error.type"]
        assert attributes_of(run)["tis.run.outcome"] == "failed"


def test_lists_of_prompts_are_a_text_completion(http: httpx2.Client, seen: SeenSpans) -> None:
    http.post("/v1/completions", json={"prompt": ["one", "two", "three"] * 4, "max_tokens": 2})
    run = seen.named("text_completion echo")
    assert attributes_of(run)["gen_ai.request.choice.count"] == 12
    assert [span.name for span in seen.children(run)].count("decode") == 12


def test_a_span_has_so_many_children_and_says_how_many_more_there_were(http: httpx2.Client, seen: SeenSpans) -> None:
    http.post("/v1/completions", json={"prompt": ["one"] * 80, "max_tokens": 1})
    run = seen.named("text_completion echo")
    until(lambda: attributes_of(run).get("tis.children_left_out") == 40)
    assert len(seen.children(run)) == 200


def test_statements_have_placeholders_for_values(http: httpx2.Client, seen: SeenSpans) -> None:
    assert http.get("/api/products/search", params={"q": SECRET}).status_code == 200
    request = seen.named("GET /api/products/search")
    statements = [span for span in seen.children(request) if "db.query.text" in attributes_of(span)]
    assert {span.kind.name for span in statements} == {"CLIENT"}
    selects = [attributes_of(span) for span in statements if span.name.startswith("SELECT ")]
    assert selects and all(one["db.system.name"] == "sqlite" for one in selects)
    assert any(one["db.query.summary"] == "SELECT product_search" for one in selects)
    assert any(re.search("[:?]", one["db.query.text"]) for one in selects)
    assert SECRET not in "".join(span.to_json() for span in seen.all)
