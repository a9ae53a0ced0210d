"""Usage of a streamed chat answer: every reader gets it or not, whatever the first reader of the answer got."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import SseBlock, blocks_of, stream, text_of
from tests.openai_api.test_resume import LONG, read_blocks
from tests.serving import Served, served, settings_with

SHOWN = {"stream_options": {"include_usage": True}}
HIDDEN = {"stream_options": {"include_usage": False}}
VIEWS = {"shown": SHOWN, "hidden": HIDDEN}


@pytest.fixture
def session_id(request: pytest.FixtureRequest) -> str:
    return "usage-" + re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)


def ends_of(blocks: Sequence[SseBlock]) -> list[tuple[int, Any]]:
    """The index and the kind of the last blocks."""
    ends: list[tuple[int, Any]] = []
    for block in blocks[-3:]:
        if block.data == "[DONE]":
            ends.append((block.index, "done"))
        else:
            ends.append((block.index, "text" if block.chunk["choices"] else "usage"))
    return ends


@pytest.mark.parametrize("first", VIEWS)
def test_each_reader_gets_what_its_stream_options_say(http: httpx2.Client, session_id: str, first: str) -> None:
    body = said("Halo", session_id=session_id)
    stream(http, body | VIEWS[first])
    shown, hidden = stream(http, body | SHOWN), stream(http, body | HIDDEN)
    assert ends_of(shown) == [(5, "text"), (6, "usage"), (7, "done")]
    assert ends_of(hidden) == [(4, "text"), (5, "text"), (6, "done")]
    *chunks, usage, _ = shown
    assert all(block.chunk["usage"] is None for block in chunks)
    assert usage.chunk["usage"]["completion_tokens"] == 4 and usage.chunk["choices"] == []
    assert all("usage" not in block.chunk for block in hidden[:-1])
    without_usage = [{name: value for name, value in block.chunk.items() if name != "usage"} for block in chunks]
    assert without_usage == [block.chunk for block in hidden[:-1]]
    assert {block.chunk["id"] for block in [*shown[:-1], *hidden[:-1]]} == {usage.chunk["id"]}


@pytest.mark.parametrize("first", VIEWS)
def test_a_reader_without_stream_options_gets_what_the_first_request_got(
    http: httpx2.Client, session_id: str, first: str
) -> None:
    body = said("Halo", session_id=session_id)
    as_first = stream(http, body | VIEWS[first])
    stream(http, body | (HIDDEN if first == "shown" else SHOWN))
    assert stream(http, body) == as_first
    assert blocks_of(http.get(f"/v1/stream/{session_id}").text) == as_first
    assert blocks_of(http.post(CHAT, json={"session_id": session_id, "stream": True}).text) == as_first


def test_the_same_request_streamed_or_not_is_answered_once(http: httpx2.Client, session_id: str) -> None:
    body = said("Halo", session_id=session_id)
    whole = http.post(CHAT, json=body).json()
    *_, usage, _ = shown = stream(http, body | SHOWN)
    assert usage.chunk["usage"] == whole["usage"]
    assert {block.chunk["id"] for block in shown[:-1]} == {whole["id"]}
    again = http.post(CHAT, json=body).json()
    assert again == whole and set(whole) == {
        "id", "object", "created", "model", "system_fingerprint", "choices", "usage"
    }  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("first", VIEWS)
def test_a_stream_cut_after_any_block_is_resumed_byte_for_byte(
    http: httpx2.Client, session_id: str, first: str, view: str
) -> None:
    body = said("Halo", session_id=session_id, stream=True)
    http.post(CHAT, json=body | VIEWS[first])
    whole = http.post(CHAT, json=body | VIEWS[view]).text
    blocks = blocks_of(whole)
    for resumed in (body | VIEWS[view], {"stream": True} | VIEWS[view]):
        for position, block in enumerate(blocks):
            rest = http.post(CHAT, json=resumed, headers={"Last-Event-ID": block.id})
            assert rest.status_code == 200
            assert "\n\n".join(whole.split("\n\n")[: position + 1]) + "\n\n" + rest.text == whole


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("first", VIEWS)
def test_a_running_answer_is_followed_in_either_form(
    slow_http: httpx2.Client, session_id: str, first: str, view: str
) -> None:
    body = said(LONG, session_id=session_id)
    read_blocks(slow_http, body | VIEWS[first], 2)
    seen = read_blocks(slow_http, body | VIEWS[view], 4)
    rest = stream(slow_http, body | VIEWS[view], **{"Last-Event-ID": seen[-1].id})
    assert [*seen, *rest] == list(stream(slow_http, body | VIEWS[view])) and text_of([*seen, *rest]) == LONG


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("first", VIEWS)
def test_the_next_turn_takes_no_index_that_a_reader_has_seen(
    http: httpx2.Client, session_id: str, first: str, view: str
) -> None:
    one, two = said("one", session_id=session_id), said("two", session_id=session_id)
    ends = [stream(http, one | VIEWS[first])[-1].index, stream(http, one | VIEWS[view])[-1].index]
    assert stream(http, two)[0].index == max(ends) + 1
    for index in range(min(ends), max(ends) + 1):
        assert stream(http, one | VIEWS["hidden"], **{"Last-Event-ID": f"{session_id}:{index}"}) == []


@pytest.mark.parametrize("first", VIEWS)
def test_a_cursor_at_the_end_of_a_view_is_followed_by_the_next_turn(
    http: httpx2.Client, session_id: str, first: str
) -> None:
    one, two = said("one", session_id=session_id), said("two", session_id=session_id)
    stream(http, one | VIEWS[first])
    ends = {view: stream(http, one | options)[-1].id for view, options in VIEWS.items()}
    for view, options in VIEWS.items():
        resumed = http.post(CHAT, json={"stream": True} | options, headers={"Last-Event-ID": ends[view]})
        assert (resumed.status_code, resumed.text) == (200, "")
    second = stream(http, two)
    for view, options in VIEWS.items():
        resumed = http.post(CHAT, json={"stream": True} | options, headers={"Last-Event-ID": ends[view]})
        assert text_of(blocks_of(resumed.text)) == "two"
        assert blocks_of(resumed.text)[0].id == second[0].id


def test_an_event_source_that_has_everything_gets_a_204_in_both_forms(http: httpx2.Client, session_id: str) -> None:
    body = said("Halo", session_id=session_id)
    ends = [stream(http, body | options)[-1].id for options in (HIDDEN, SHOWN)]
    for end in ends:
        assert http.get(f"/v1/stream/{session_id}", headers={"Last-Event-ID": end}).status_code == 204


def test_an_index_beyond_both_forms_is_a_400(http: httpx2.Client, session_id: str) -> None:
    end = stream(http, said("Halo", session_id=session_id) | SHOWN)[-1].index
    answer = http.post(CHAT, json={"stream": True}, headers={"Last-Event-ID": f"{session_id}:{end + 1}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_last_event_id")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("first", VIEWS)
def test_a_failed_answer_has_no_usage_in_either_form(session_id: str, first: str, view: str) -> None:
    with (
        served(settings_with(model_repo_id="echo?fail_after=3")) as failing,
        httpx2.Client(base_url=failing.url, timeout=30) as client,
    ):
        body = said("Halo", session_id=session_id)
        stream(client, body | VIEWS[first])
        blocks = blocks_of(
            client.post(CHAT, json={"stream": True} | VIEWS[view], headers={"Last-Event-ID": f"{session_id}:0"}).text
        )
        assert [block.index for block in blocks] == [1, 2, 3, 4] and blocks[-1].chunk["error"][
            "code"
        ] == "generation_failed"


def test_the_sdk_sees_the_usage_of_an_answer_that_began_without_it(
    sdk: Any, echo_server: Served, session_id: str
) -> None:
    create: Any = sdk(echo_server).chat.completions.create
    asked: Any = {
        "model": "echo",
        "messages": [{"role": "user", "content": "Halo"}],
        "extra_body": {"session_id": session_id},
    }
    whole = create(**asked)
    chunks = list(create(**asked, stream=True, **SHOWN))
    assert chunks[-1].usage == whole.usage and all(chunk.usage is None for chunk in chunks[:-1])


class TestInAFile:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Any:
        return settings_with(persist_sessions=True, sessions_db_path=str(tmp_path / "sessions.db"))

    @pytest.mark.parametrize("first", VIEWS)
    def test_both_forms_are_the_same_after_a_restart(self, settings: Any, session_id: str, first: str) -> None:
        body = said("Halo", session_id=session_id, stream=True)

        def forms(url: str) -> list[str]:
            return [httpx2.post(url + CHAT, json=body | options).text for options in (VIEWS[first], SHOWN, HIDDEN)]

        with served(settings) as server:
            before = forms(server.url)
        with served(settings) as server:
            assert forms(server.url) == before
            for whole, options in zip(before, (VIEWS[first], SHOWN, HIDDEN), strict=True):
                for block in blocks_of(whole)[-3:]:
                    rest = httpx2.post(server.url + CHAT, json=body | options, headers={"Last-Event-ID": block.id}).text
                    assert whole.endswith(rest) and len(blocks_of(rest)) == len(blocks_of(whole)) - 1 - blocks_of(
                        whole
                    ).index(block)
