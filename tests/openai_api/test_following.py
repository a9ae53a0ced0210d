"""GET /v1/stream/{session_id}: what an EventSource does, and what a page does that lost its request."""

import json

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, stream, text_of
from tests.openai_api.test_resume import LONG, read_blocks


@pytest.fixture
def session_id(request: pytest.FixtureRequest) -> str:
    return f"follow-{request.node.name}"


def get(http: httpx2.Client, session_id: str, query: str = "", **headers: str) -> httpx2.Response:
    return http.get(f"/v1/stream/{session_id}{query}", headers=headers)


def test_without_a_cursor_it_is_the_latest_turn_from_its_beginning(http: httpx2.Client, session_id: str) -> None:
    stream(http, said("one", session_id=session_id))
    second = stream(http, said("two", session_id=session_id))
    answer = get(http, session_id)
    assert list(blocks_of(answer.text)) == list(second)
    assert answer.headers["x-session-id"] == session_id
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_it_follows_a_running_answer_to_its_end(slow_http: httpx2.Client, session_id: str) -> None:
    first = read_blocks(slow_http, said(LONG, session_id=session_id), 4)
    rest = list(blocks_of(get(slow_http, session_id, **{"Last-Event-ID": first[-1].id}).text))
    assert text_of([*first, *rest]) == LONG and rest[-1].data == "[DONE]"


@pytest.mark.parametrize("cursor", ["{session}:3", "3"])
def test_the_index_alone_will_do_as_the_path_names_the_session(
    http: httpx2.Client, session_id: str, cursor: str
) -> None:
    session = "follow-cursor"
    everything = stream(http, said("Halo", session_id=session))
    query = f"?last_event_id={cursor.format(session=session)}"
    assert list(blocks_of(get(http, session, query).text)) == list(everything[4:])


def test_the_header_wins_as_an_event_source_moves_it_and_not_its_url(http: httpx2.Client, session_id: str) -> None:
    everything = stream(http, said("Halo", session_id=session_id))
    answer = get(http, session_id, "?last_event_id=0", **{"Last-Event-ID": f"{session_id}:4"})
    assert list(blocks_of(answer.text)) == list(everything[5:])


def test_nothing_left_is_a_204_which_ends_an_event_source(http: httpx2.Client, session_id: str) -> None:
    last = stream(http, said("Halo", session_id=session_id))[-1]
    answer = get(http, session_id, **{"Last-Event-ID": last.id})
    assert (answer.status_code, answer.content) == (204, b"")


def test_a_cursor_at_the_end_of_an_earlier_turn_goes_on_with_the_next(http: httpx2.Client, session_id: str) -> None:
    first = stream(http, said("one", session_id=session_id))
    second = stream(http, said("two", session_id=session_id))
    answer = get(http, session_id, **{"Last-Event-ID": first[-1].id})
    assert list(blocks_of(answer.text)) == list(second)


def test_but_who_sends_the_earlier_request_wants_that_one_and_has_it(http: httpx2.Client, session_id: str) -> None:
    first = stream(http, said("one", session_id=session_id))
    stream(http, said("two", session_id=session_id))
    assert stream(http, said("one", session_id=session_id), **{"Last-Event-ID": first[-1].id}) == []


@pytest.mark.parametrize(
    ("cursor", "status", "code"),
    [("other:1", 400, "session_mismatch"), ("999", 400, "invalid_last_event_id"), ("-1", 400, "invalid_last_event_id")],
)
def test_an_invalid_cursor_is_a_400(http: httpx2.Client, cursor: str, status: int, code: str) -> None:
    stream(http, said("Halo", session_id="follow-refused"))
    answer = get(http, "follow-refused", f"?last_event_id={cursor}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_an_unknown_session_is_a_404(http: httpx2.Client) -> None:
    answer = get(http, "nobody")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "session_not_found")


class TestWithoutTheRequest:
    def test_a_page_that_was_reloaded_comes_back_by_name(self, http: httpx2.Client, session_id: str) -> None:
        everything = stream(http, said("Halo", session_id=session_id))
        answer = http.post(CHAT, json={"session_id": session_id, "stream": True})
        assert list(blocks_of(answer.text)) == list(everything)
        by_cursor = http.post(CHAT, json={"stream": True}, headers={"Last-Event-ID": everything[2].id})
        assert list(blocks_of(by_cursor.text)) == list(everything[3:])

    def test_or_gets_the_answer_whole(self, http: httpx2.Client, session_id: str) -> None:
        http.post(CHAT, json=said("Halo", session_id=session_id))
        answer = http.post(CHAT, json={"session_id": session_id}).json()
        assert answer["choices"][0]["message"]["content"] == "Halo"

    def test_a_session_that_nobody_knows_is_a_404(self, http: httpx2.Client) -> None:
        answer = http.post(CHAT, json={"session_id": "nobody-at-all", "stream": True})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "session_not_found")

    def test_without_a_name_the_messages_are_missing(self, http: httpx2.Client) -> None:
        error = http.post(CHAT, json={"stream": True}).json()["error"]
        assert (error["param"], error["code"]) == ("messages", "missing_required_parameter")


def test_a_cursor_before_the_events_that_are_kept_is_a_410(http: httpx2.Client, session_id: str) -> None:
    first = stream(http, said("x" * 20, max_tokens=20, session_id=session_id))
    for letter in "yz":
        http.post(CHAT, json=said(letter * 2000, max_tokens=2000, session_id=session_id))
    answer = http.get(f"/v1/stream/{session_id}?last_event_id={first[5].id}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "replay_gap")


def test_every_block_of_every_kind_is_numbered(http: httpx2.Client, session_id: str) -> None:
    body = said("Hai", n=2, session_id=session_id, stream_options={"include_usage": True})
    blocks = stream(http, body)
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert blocks[-1].data == "[DONE]" and json.loads(blocks[-2].data)["usage"]
