"""What happens to an answer whose reader has gone."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import httpx2

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_resume import LONG, read_blocks
from tests.serving import MovedClock, Served, served, settings_with
from tests.test_status import until
from tis.arguments.limits import session_limits_of
from tis.streaming.session import Session
from tis.streaming.stores.memory import MemoryStore

PACED = "echo?tokens_per_second=80"
TEN_MINUTES = {"ignore_eos": True, "max_tokens": 30_000}  # at this pace


@contextmanager
def paced_server(clock: MovedClock, **settings: object) -> Iterator[Served]:
    """Looks at its sessions all the time."""
    chosen = settings_with(model_repo_id=PACED, **settings)
    rules = replace(session_limits_of(chosen), sweep_seconds=0.01)
    with served(chosen, session_store=MemoryStore(clock), session_limits=rules) as server:
        yield server


def sessions_of(server: Served) -> list[Session]:
    return list(server.app.state.sessions)


def status_of(server: Served) -> str:
    [session] = sessions_of(server)
    return session.latest.status


def read_and_leave(server: Served, **body: object) -> None:
    with httpx2.Client(base_url=server.url) as client:
        read_blocks(client, said(LONG, **body), 2)
    [session] = sessions_of(server)
    until(lambda: not session.recording.readers)


def is_resumed(server: Served) -> None:
    """Without a reader, by more than what is made between two sweeps."""
    [session] = sessions_of(server)
    there = session.recording.next_index
    until(lambda: session.recording.next_index > there + 10)
    assert status_of(server) == "running"


def post_and_leave(server: Served, **body: object) -> None:
    """Not streamed: hangs up once the answer is being made."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
    connection.request("POST", CHAT, json.dumps(said(LONG, **body)), {"Content-Type": "application/json"})
    until(lambda: bool(sessions_of(server)))
    assert status_of(server) == "running"
    connection.close()


def test_a_named_stream_is_cancelled_after_its_grace_period() -> None:
    clock = MovedClock()
    with paced_server(clock, cancel_after_disconnect_seconds=100, anonymous_grace_seconds=0) as server:
        read_and_leave(server, session_id="mine", **TEN_MINUTES)
        clock.move(80)
        is_resumed(server)
        clock.move(30)
        until(lambda: status_of(server) == "cancelled")


def test_zero_seconds_mean_never() -> None:
    clock = MovedClock()
    with paced_server(clock, cancel_after_disconnect_seconds=0) as server:
        read_and_leave(server, session_id="mine")
        clock.move(500)  # and still it is kept when it has ended
        is_resumed(server)
        until(lambda: status_of(server) != "running")
        assert status_of(server) == "finished"


def test_an_anonymous_stream_has_a_shorter_grace_period() -> None:
    clock = MovedClock()
    with paced_server(clock, cancel_after_disconnect_seconds=1000, anonymous_grace_seconds=50) as server:
        read_and_leave(server, **TEN_MINUTES)
        clock.move(30)
        is_resumed(server)
        clock.move(30)
        until(lambda: status_of(server) == "cancelled")


def test_an_anonymous_unstreamed_answer_is_cancelled_at_once() -> None:
    with served(settings_with(model_repo_id=PACED)) as server:
        post_and_leave(server, **TEN_MINUTES)
        until(lambda: status_of(server) == "cancelled")


def test_a_named_unstreamed_answer_can_be_fetched_later() -> None:
    with served(settings_with(model_repo_id=PACED)) as server:
        post_and_leave(server, session_id="mine")
        until(lambda: status_of(server) == "finished")
        [session] = sessions_of(server)
        again = httpx2.post(server.url + CHAT, json=said(LONG, session_id="mine")).json()
        assert again["choices"][0]["message"]["content"] == LONG
        assert len(session.turns) == 1  # it was not made again


def test_nothing_is_left_behind_by_streams_that_ended(echo_server: Served, http: httpx2.Client) -> None:
    http.post(CHAT, json=said("Halo", stream=True))
    threads = threading.active_count()
    for _ in range(20):
        http.post(CHAT, json=said("Halo", stream=True))
    assert threading.active_count() < threads + 10  # the server may still be starting some of its own
    assert not any(session.recording.readers for session in sessions_of(echo_server))
