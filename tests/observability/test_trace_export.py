"""Spans on their way to a collector, as the OTEL_* variables say."""

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.observability.otlp_collector import OtlpCollector, attributes_in, otlp_collector
from tests.openai_api.test_chat import CHAT, said
from tests.serving import free_port, served, server_process, settings_with, wait_until_live
from tests.test_status import until
from tis.arguments.stores import tracer_of
from tis.setting_types import SettingsError

pytestmark = pytest.mark.long

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
OFTEN = {"OTEL_BSP_SCHEDULE_DELAY": "50"}  # milliseconds


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with otlp_collector() as running:
        yield running


@pytest.fixture(autouse=True)
def sdk_log() -> Iterator[None]:
    """Tracers of these tests turn the log of the SDK off."""
    log = logging.getLogger("opentelemetry")
    handlers, propagates = list(log.handlers), log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagates


@pytest.mark.slow
def test_an_answer_outlives_kill_9_and_stays_in_its_trace(collector: OtlpCollector, tmp_path: Path) -> None:
    port, variables = str(free_port()), {
        "MODEL_REPO_ID": "echo?tokens_per_second=30",
        "SERVED_MODEL_NAME": "echo",
        "PERSIST_SESSIONS": "1",
        "SESSIONS_DB_PATH": str(tmp_path / "sessions.db"),
        "TRACES": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=toko",
        "OTEL_SERVICE_NAME": "kasir",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=uji",
        **OFTEN,
    }  # fmt: skip
    with server_process(**variables, PORT=port) as first:
        wait_until_live(first.url, 90)
        body = said("x" * 60, stream=True, session_id="a")
        with httpx2.stream("POST", first.url + CHAT, json=body, headers=SAMPLED, timeout=20) as answer:
            next(answer.iter_bytes())
            collector.named("prepare")  # what has ended is there already
            first.popen.kill()
    assert not any(span.name == "chat echo" for span in collector.spans)
    with server_process(**variables, PORT=port) as second:
        wait_until_live(second.url, 90)
        text = httpx2.get(f"{second.url}/v1/stream/a", timeout=20).text
        assert text.rstrip().endswith("data: [DONE]")
        run, reader = collector.named("chat echo"), collector.named("GET /v1/stream/{session_id}")
    assert run.trace_id.hex() == TRACE and attributes_in(run)["tis.run.is_resumed"]
    assert [link.span_id for link in run.links] == [run.parent_span_id]
    assert [link.span_id for link in reader.links] == [run.span_id] and reader.trace_id.hex() != TRACE
    assert {span.name for span in collector.spans if span.parent_span_id == run.span_id} >= {"queue", "decode"}
    assert attributes_in(run)["gen_ai.usage.output_tokens"] == 60
    assert set(collector.paths) == {"/v1/traces"} and {one["x-tenant"] for one in collector.headers} == {"toko"}
    for resource in collector.resources:
        assert resource["service.name"] == "kasir" and resource["deployment.environment.name"] == "uji"


def test_what_is_not_sent_yet_is_sent_at_the_end(collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    with served(settings_with(traces=True)) as running:
        httpx2.post(running.url + CHAT, json=said("Halo"))
        assert not collector.bodies  # five seconds are not over
    assert {span.name for span in collector.spans} >= {f"POST {CHAT}", "chat echo", "decode"}
    assert collector.resources[0]["service.name"] == "transformers-inference-server"


def test_a_sampler_that_takes_none_sends_none(collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ENDPOINT": "", "TRACES_ENDPOINT": f"{collector.url}/own/path"}.items():
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    with served(settings_with(traces=True)) as running:
        httpx2.post(running.url + CHAT, json=said("Halo"))
        httpx2.post(running.url + CHAT, json=said("Halo"), headers=SAMPLED)
    assert collector.paths == ["/own/path"] and {span.trace_id.hex() for span in collector.spans} == {TRACE}


def test_a_dead_collector_costs_a_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    for name, value in OFTEN.items():
        monkeypatch.setenv(name, value)

    def lines() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name.startswith(("tis.traces", "opentelemetry"))]

    with caplog.at_level(logging.DEBUG, "opentelemetry"), served(settings_with(traces=True)) as running:
        with httpx2.Client(base_url=running.url, timeout=20) as client:
            for _ in range(40):  # two hundred spans for a queue of sixteen
                assert client.post(CHAT, json=said("Halo")).status_code == 200
            until(lambda: bool(lines()))
            [line] = lines()
            assert line.startswith("spans are dropped until the collector takes them: ")
            with otlp_collector(port) as collector:
                # What had waited may be lost by now: only a new span finds out that the collector is there.
                until(lambda: client.get("/version").is_success and len(lines()) == 2)
                until(lambda: collector.has("GET /version"))
            assert lines()[1:] == ["the collector takes spans again"]


def test_a_collector_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        tracer = tracer_of(settings_with(traces=True))
        tracer.request_span("one", {}, {}).end()
        began = time.monotonic()
        tracer.close()
        assert time.monotonic() - began < 5


def test_a_missing_package_and_another_protocol_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(SettingsError, match="http/protobuf"):
        tracer_of(settings_with(traces=True))
    monkeypatch.delitem(sys.modules, "tis.observability.trace_export", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SettingsError, match="requirements-traces.txt"):
        tracer_of(settings_with(traces=True))


@pytest.mark.slow
def test_without_traces_nothing_of_the_sdk_is_imported() -> None:
    program = "import sys, tis.app, tis.settings; tis.app.create_app(tis.settings.Settings(model_repo_id='echo'))"
    program += (
        "; print([one for one in sys.modules if one.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
