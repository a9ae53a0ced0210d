"""What requests may use at once: others wait or get a 429, and everything comes back at the end."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with
from tests.test_status import until
from tis.admission.admission import Admission
from tis.admission.limits import Resource, Stage

MIB = 2**20
SEARCH = "/api/auth/login"
TIGHT: dict[str, Any] = {"max_bodies_mb": 1, "admission_wait_seconds": 0.05}
PATIENT = {**TIGHT, "admission_wait_seconds": 20}


def admission_of(server: Served) -> Admission:
    admission: Admission = server.app.state.admission
    return admission


def held(server: Served) -> dict[str, int]:
    admission = admission_of(server)
    used = {name: admission.used(name) for name in get_args(Resource)}
    stages = {name: admission.num_in(name) for name in get_args(Stage)}
    return {name: amount for name, amount in {**used, **stages}.items() if amount}


def until_all_is_back(server: Served) -> None:
    until(lambda: not held(server))


@contextmanager
def half_a_body(server: Served, num_bytes: int = MIB, key: str = "") -> Iterator[None]:
    """A client that announces a body and does not send it."""
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {num_bytes}\r\nX-Api-Key: {key}\r\n\r\n"
    with socket.create_connection((host, int(port))) as client:
        client.sendall(head.encode())
        until(lambda: admission_of(server).used("body_bytes") >= num_bytes)
        yield
    until(lambda: admission_of(server).used("body_bytes") < num_bytes)


@pytest.fixture(scope="module")
def tight() -> Iterator[Served]:
    with served(settings_with(**TIGHT)) as running:
        yield running


def test_a_body_without_room_gets_a_429_in_the_shape_of_its_api(tight: Served) -> None:
    with half_a_body(tight):
        for path in (CHAT, SEARCH):
            answer = httpx2.post(tight.url + path, json=said("Halo"))
            assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
            assert answer.headers["x-request-id"]
            body = answer.json()
            message = body["error"]["message"] if path == CHAT else body["detail"]
            assert "busy" in message and "Retry later" in message
            assert path != CHAT or body["error"]["code"] == "rate_limit_exceeded"
        # What has no body needs no room.
        assert httpx2.get(f"{tight.url}/v1/models").status_code == 200
        assert httpx2.get(f"{tight.url}/live").status_code == 200
    assert httpx2.post(tight.url + CHAT, json=said("Halo")).status_code == 200
    until_all_is_back(tight)


@pytest.mark.parametrize(("path", "shape"), [(CHAT, "error"), ("/api/auth/login", "detail"), ("/live", "detail")])
def test_a_body_that_is_too_large_is_refused_before_it_comes(tight: Served, path: str, shape: str) -> None:
    host, port = tight.url.removeprefix("http://").split(":")
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {2**62}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(head.encode())
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 413") and b"x-request-id" in answer
    assert list(json.loads(answer.partition(b"\r\n\r\n")[2])) == [shape]
    until_all_is_back(tight)


@pytest.mark.parametrize("path", [CHAT, SEARCH, "/api/suppliers/1/products/import"])
def test_a_body_of_unknown_length_that_becomes_too_large_is_refused(path: str) -> None:
    with served(settings_with(max_body_mb=0.1)) as small:
        answer = httpx2.post(small.url + path, content=iter([b" " * 60_000] * 9))
    assert answer.status_code == 413 or (answer.status_code == 401 and path.endswith("import"))
    assert path != CHAT or answer.json()["error"]["code"] == "body_too_large"


def test_a_body_of_unknown_length_is_counted_as_it_comes(tight: Served) -> None:
    def chunks(count: int) -> Iterator[bytes]:
        yield b'{"messages": [{"role": "user", "content": "' + b"x" * 1000
        for _ in range(count):
            yield b"x" * 65536
        yield b'"}], "max_tokens": 1}'

    url, headers = tight.url + CHAT, {"Content-Type": "application/json"}
    assert httpx2.post(url, content=chunks(0), headers=headers).status_code == 200
    answer = httpx2.post(url, content=chunks(40), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    until_all_is_back(tight)


def test_a_body_waits_for_room_and_is_then_served() -> None:
    with served(settings_with(**PATIENT)) as patient:
        answers: list[int] = []
        post = lambda: answers.append(httpx2.post(patient.url + CHAT, json=said("Halo")).status_code)  # noqa: E731
        with half_a_body(patient):
            waiting = threading.Thread(target=post)
            waiting.start()
            until(lambda: admission_of(patient).budgets["body_bytes"].num_waiting == 1)
            assert not answers
        waiting.join()
        assert answers == [200]
        until_all_is_back(patient)


def test_one_key_cannot_take_the_room_of_another() -> None:
    with served(settings_with(api_keys="one,two", **TIGHT)) as shared:
        with half_a_body(shared, MIB // 2, key="one"):

            def post(key: str) -> int:
                return httpx2.post(shared.url + CHAT, json=said("Halo"), headers={"X-Api-Key": key}).status_code

            assert (post("one"), post("two"), post("none")) == (429, 200, 401)
        until_all_is_back(shared)


def test_a_request_that_is_refused_gives_its_ticket_back(http: httpx2.Client, echo_server: Served) -> None:
    for body in (b"{", b'{"messages": []}', b'{"messages": [{"role": "user", "content": "x"}], "n": 1000}'):
        assert http.post(CHAT, content=body, headers={"Content-Type": "application/json"}).status_code == 400
    assert http.post(f"{CHAT}/nowhere", json={}).status_code == 404
    assert http.get("/v1/stream/unknown").status_code == 404
    until_all_is_back(echo_server)


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize("more", [{}, {"stream": True}, {"max_tokens": 2}], ids=str)
def test_an_answer_gives_its_ticket_back(
    http: httpx2.Client, echo_server: Served, path: str, more: dict[str, Any]
) -> None:
    if path == "responses":
        body = {"input": "Halo", **({"max_output_tokens": 16} if "max_tokens" in more else more)}
    else:
        body = said("Halo", **more)
    assert http.post(f"/v1/{path}", json=body).status_code == 200
    until_all_is_back(echo_server)


def test_a_client_that_leaves_takes_no_ticket_away(slow_http: httpx2.Client, slow_server: Served) -> None:
    admission = admission_of(slow_server)
    with slow_http.stream("POST", CHAT, json=said("Halo " * 8, stream=True, session_id="left")) as stream:
        next(stream.iter_bytes())
        until(lambda: admission.num_in("generating") == 1)
        assert admission.used("prompt_tokens") == 40
    until(lambda: admission.used("body_bytes") == 0)
    assert admission.num_in("generating") == 1  # the answer goes on
    assert slow_http.post("/v1/cancel/left").json()["status"] == "cancelled"
    until_all_is_back(slow_server)


@pytest.mark.parametrize("option", ["fail_after=3", "die_after=3"])
def test_a_model_that_fails_keeps_no_ticket(option: str) -> None:
    with served(settings_with(model_repo_id=f"echo?{option}", log_level="error")) as failing:
        assert httpx2.post(failing.url + CHAT, json=said("a long text")).status_code in (500, 503)
        until_all_is_back(failing)


def test_a_server_that_drains_keeps_no_ticket() -> None:
    with served(settings_with(model_repo_id="echo?tokens_per_second=20", drain_seconds=0)) as draining:
        with httpx2.stream("POST", draining.url + CHAT, json=said("x" * 100, stream=True)) as stream:
            next(stream.iter_bytes())
            until(lambda: held(draining).get("generating") == 1)
    assert not held(draining)


def test_too_many_prompt_tokens_at_once_are_a_429() -> None:
    with served(settings_with(model_repo_id="echo?tokens_per_second=20", max_prompt_tokens=50)) as small:
        with httpx2.stream("POST", small.url + CHAT, json=said("x" * 40, stream=True)) as stream:
            next(stream.iter_bytes())
            answer = httpx2.post(small.url + CHAT, json=said("x" * 20))
            assert answer.status_code == 429 and "tokens" in answer.json()["error"]["message"]
            assert httpx2.post(small.url + CHAT, json=said("x" * 5, max_tokens=1)).status_code == 200


def test_the_metrics_show_who_waits_and_who_was_refused(tight: Served) -> None:
    def value(name: str) -> float:
        lines = httpx2.get(f"{tight.url}/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))

    refused, made = (
        'tis_admission_rejections_total{reason="body_bytes"}',
        'tis_generation_tokens_total{model_name="echo"}',
    )
    first_token = 'tis_time_to_first_token_seconds_count{model_name="echo"}'
    before = {name: value(name) for name in (refused, made, first_token)}
    with half_a_body(tight):
        assert httpx2.post(tight.url + CHAT, json=said("Halo")).status_code == 429
        assert value('tis_requests{stage="receiving"}') == 1
        assert value('tis_admission_used{resource="body_bytes"}') == MIB
    assert httpx2.post(tight.url + CHAT, json=said("Halo")).status_code == 200
    after = {name: value(name) for name in before}
    assert [after[name] - before[name] for name in before] == [1, 4, 1]
    assert value('tis_num_requests_waiting_by_reason{reason="model_queue"}') == 0
    assert value('tis_prompt_tokens_total{model_name="echo"}') >= 4
    assert value('tis_request_queue_time_seconds_count{model_name="echo"}') >= 1
    assert value('tis_inter_token_latency_seconds_bucket{le="+Inf",model_name="echo"}') >= 3
    until(lambda: value('tis_event_loop_lag_seconds_bucket{le="+Inf"}') > 0)
    assert value("tis_resident_memory_bytes") > 2**20
