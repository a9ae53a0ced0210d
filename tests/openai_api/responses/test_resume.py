"""Streams of responses are picked up from any point, by their number or by the id of an event."""

import httpx2
import pytest

from tests.openai_api.responses.event_order import check_events
from tests.openai_api.responses.response_requests import (
    LONG,
    RESPONSES,
    begun,
    create,
    events_in,
    refused,
    replay,
    stream,
    text_of,
)


def test_any_stored_response_is_replayed_from_any_point(http: httpx2.Client) -> None:
    for events in (stream(http, "Halo"), replay(http, create(http, "Halo")["id"])):
        response = check_events(events)
        for after in range(-1, len(events)):
            assert replay(http, response["id"], after) == events[after + 1 :]
        assert http.get(f"{RESPONSES}/{response['id']}").json() == response


@pytest.mark.parametrize("background", [False, True])
def test_a_running_response_is_resumed_where_the_reader_left(slow_http: httpx2.Client, background: bool) -> None:
    first = begun(slow_http, LONG, background=background)
    response_id = first[0]["response"]["id"]
    rest = replay(slow_http, response_id, first[-1]["sequence_number"])
    response = check_events([*first, *rest])
    assert text_of(response) == LONG
    assert check_events(replay(slow_http, response_id)) == response


def test_last_event_id_wins_over_starting_after(http: httpx2.Client) -> None:
    events = stream(http, "Halo")
    response_id = events[-1]["response"]["id"]
    header = {"Last-Event-ID": f"{response_id}:3"}
    assert replay(http, response_id, None, header) == replay(http, response_id, 7, header) == events[4:]
    by_query = http.get(f"{RESPONSES}/{response_id}", params={"last_event_id": "3"})
    assert events_in(by_query.text) == events[4:]
    again = http.post(RESPONSES, json={"input": "Halo", "stream": True}, headers=header)
    assert events_in(again.text) == events[4:]


def test_an_event_source_with_all_events_gets_a_204(http: httpx2.Client) -> None:
    events = stream(http, "Halo")
    response_id, last = events[-1]["response"]["id"], events[-1]["sequence_number"]
    answer = http.get(f"{RESPONSES}/{response_id}", headers={"Last-Event-ID": f"{response_id}:{last}"})
    assert answer.status_code == 204
    assert replay(http, response_id, last) == []


def test_a_future_sequence_number_is_a_400(http: httpx2.Client) -> None:
    response_id = create(http, "Halo")["id"]
    for query in ("starting_after=99", "starting_after=x", "last_event_id=99", "last_event_id=other:1"):
        answer = http.get(f"{RESPONSES}/{response_id}?stream=true&{query}")
        assert answer.status_code == 400, query


def test_an_unstored_response_is_not_kept(http: httpx2.Client) -> None:
    response = check_events(stream(http, "Halo", store=False))
    assert response["store"] is False
    for url in (f"{RESPONSES}/{response['id']}", f"{RESPONSES}/{response['id']}/input_items"):
        assert http.get(url).status_code == 404
    error = refused(http, {"input": "x", "previous_response_id": response["id"]})
    assert error["code"] == "previous_response_not_found"


def test_an_unstored_response_is_not_found_while_it_runs(slow_http: httpx2.Client) -> None:
    with slow_http.stream("POST", RESPONSES, json={"input": LONG, "stream": True, "store": False}) as answer:
        response_id = answer.headers["x-session-id"]
        assert slow_http.get(f"{RESPONSES}/{response_id}").status_code == 404
        assert slow_http.post(f"{RESPONSES}/{response_id}/cancel").status_code == 404


def test_chats_and_responses_are_apart_but_both_are_streams_to_read(http: httpx2.Client) -> None:
    response_id = create(http, "Halo")["id"]
    stream = http.get(f"/v1/stream/{response_id}")
    assert stream.status_code == 200 and "event: response.created" in stream.text
    assert http.post(f"/v1/cancel/{response_id}").json()["status"] == "unknown"
    body = {"messages": [{"role": "user", "content": "Halo"}], "session_id": response_id}
    assert http.post("/v1/chat/completions", json=body).status_code == 409
    http.post("/v1/chat/completions", json={**body, "session_id": "a-chat"})
    assert http.get(f"{RESPONSES}/a-chat").status_code == 404
