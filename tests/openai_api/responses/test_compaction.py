"""Compaction: the model's summary takes the place of a long conversation, in the stream and as an item to send back."""

from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.event_order import Event, check_events
from tests.openai_api.responses.mcp.mcp_requests import a_call, items_of, server_tool
from tests.openai_api.responses.response_requests import (
    CONVERSATIONS,
    LONG,
    RESPONSES,
    begun,
    create,
    refused,
    replay,
    stream,
    text_of,
)
from tests.openai_api.responses.test_event_types import check_strictly
from tests.serving import Served, served, settings_with
from tis.openai_api.wire.as_chat import messages_of
from tis.openai_api.wire.compacted_context import REQUEST_OF_SUMMARY, awaits_approval, messages_in

Connect = Callable[[Served], OpenAI]
COMPACT = f"{RESPONSES}/compact"
COMPACTS: dict[str, Any] = {"context_management": [{"type": "compaction", "compact_threshold": 256}]}
QUESTION = (
    "And what became of the seven goats on the ferry to Ambon? " * 5
)  # the echo model reads the last message only
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def said(role: str, text: str) -> Event:
    return {"role": role, "content": text}


HISTORY = [said("user", "I am Sari."), said("assistant", LONG * 4)]
ASKED = [*HISTORY, said("user", QUESTION)]


def kinds(response: Event) -> list[str]:
    return [item["type"] for item in response["output"]]


def test_a_stream_has_the_item_before_the_answer(http: httpx2.Client) -> None:
    events = stream(http, ASKED, **COMPACTS)
    check_strictly(events)
    response = check_events(events)
    begin = ["response.output_item.added", "response.compaction.compacting", "response.output_item.done"]
    assert [event["type"] for event in events[2:5]] == begin
    assert kinds(response) == ["compaction", "message"] and text_of(response) == QUESTION
    item = response["output"][0]
    assert item["id"].startswith("cmp_") and events[2]["item"] == {**item, "encrypted_content": ""}
    assert replay(http, response["id"]) == events and replay(http, response["id"], 3) == events[4:]
    assert http.get(f"{RESPONSES}/{response['id']}").json() == response


def test_the_item_holds_what_the_user_said_the_summary_and_the_question(http: httpx2.Client) -> None:
    [item, _] = create(http, [said("developer", "Be kind."), *ASKED], instructions="Be brief.", **COMPACTS)["output"]
    developer, asked, summary, question = messages_in(item)
    assert (developer["role"], developer["content"]) == ("developer", "Be kind.")  # the instructions are not inherited
    assert asked == said("user", f"I am Sari.\n\n{REQUEST_OF_SUMMARY}")
    assert summary == said("assistant", REQUEST_OF_SUMMARY[:64].strip())  # the echo model's, a fourth of the threshold
    assert question == said("user", QUESTION)


def test_the_summary_counts_in_usage_and_not_in_max_output_tokens(http: httpx2.Client) -> None:
    response = create(http, ASKED, max_output_tokens=10, **COMPACTS)
    assert (response["status"], text_of(response)) == ("incomplete", QUESTION[:10])
    usage = response["usage"]
    assert usage["input_tokens"] == len(REQUEST_OF_SUMMARY) + len(QUESTION)
    assert usage["output_tokens"] == 64 + 10 and usage["total_tokens"] == usage["input_tokens"] + 74


@pytest.mark.parametrize(
    "given",
    [
        [*HISTORY, said("user", "short")],
        [said("user", QUESTION)],
        [said("user", "a"), said("user", "b"), said("user", QUESTION)],
        [said("user", "a"), said("assistant", "b"), said("user", QUESTION)],
    ],
    ids=["below the threshold", "one message", "no answer yet", "shorter than a summary"],
)
def test_nothing_is_compacted_that_saves_nothing(http: httpx2.Client, given: Sequence[Event]) -> None:
    assert kinds(create(http, given, **COMPACTS)) == ["message"]


def test_a_threshold_above_the_context_is_that_of_the_context(http: httpx2.Client) -> None:
    long = [*HISTORY, said("user", "Go on."), said("assistant", LONG * 40), said("user", "x" * 30_000)]
    assert kinds(create(http, long, max_output_tokens=1)) == ["message"]
    for entry in ({"type": "compaction"}, {"type": "compaction", "compact_threshold": 200_000}):
        response = create(http, long, max_output_tokens=1, context_management=[entry])
        assert kinds(response) == ["compaction", "message"]


@pytest.mark.parametrize(
    ("entries", "param"),
    [
        ([{"type": "forget"}], "context_management.0.type"),
        ([{"compact_threshold": 1000}], "context_management.0.type"),
        ([{"type": "compaction", "compact_threshold": 255}], "context_management.0.compact_threshold"),
        ([{"type": "compaction", "compact_threshold": "1000"}], "context_management.0.compact_threshold"),
        ([{"type": "compaction", "compact_threshold": 2**70}], "context_management.0.compact_threshold"),
        ([{"type": "compaction"}] * 9, "context_management"),
        ({"type": "compaction"}, "context_management"),
    ],
    ids=str,
)
def test_a_wrong_entry_is_a_400_that_names_it(http: httpx2.Client, entries: Any, param: str) -> None:
    assert refused(http, {"input": "x", "context_management": entries})["param"] == param


def test_what_another_server_compacted_is_refused_by_name(http: httpx2.Client) -> None:
    for content in ("gAAAAABfo", None, "tis1.e30=", 7):
        item = {"type": "compaction", "id": "cmp_1", "encrypted_content": content}
        error = refused(http, {"input": [item, said("user", "x")]})
        assert (error["param"], error["code"]) == ("input.0.encrypted_content", "invalid_encrypted_content")


def test_calls_stay_with_their_outputs(http: httpx2.Client) -> None:
    call = {"type": "function_call", "call_id": "call_9", "name": "look", "arguments": '{"at": "goats"}'}
    output = {"type": "function_call_output", "call_id": "call_9", "output": QUESTION}
    given = [*HISTORY, said("user", "Look!"), call, output]
    [item, message] = create(http, given, tools=[TOOL], **COMPACTS)["output"]
    assert message["content"][0]["text"] == QUESTION
    asked, _, between, called, answered = messages_in(item)
    assert asked["content"].startswith("I am Sari.\n\nLook!\n\n") and between["role"] == "user"
    assert called["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "goats"}'}
    assert (answered["tool_call_id"], answered["content"]) == ("call_9", QUESTION)
    assert create(http, [item, message, said("user", "x")], tools=[TOOL])["status"] == "completed"


def test_a_cancelled_summary_leaves_no_item(slow_http: httpx2.Client) -> None:
    entries = [{"type": "compaction", "compact_threshold": 280}]
    events = begun(slow_http, ASKED, num_events=5, background=True, context_management=entries)
    assert events[-1]["type"] == "response.compaction.compacting"
    response_id = events[0]["response"]["id"]
    assert slow_http.get(f"{RESPONSES}/{response_id}").json()["output"] == []
    cancelled = slow_http.post(f"{RESPONSES}/{response_id}/cancel").json()
    assert (cancelled["status"], kinds(cancelled)) == ("cancelled", [])
    assert check_events(replay(slow_http, response_id)) == cancelled


def test_a_running_summary_is_resumed_where_the_reader_left(slow_http: httpx2.Client) -> None:
    first = begun(slow_http, ASKED, num_events=4, max_output_tokens=5, **COMPACTS)
    rest = replay(slow_http, first[0]["response"]["id"], first[-1]["sequence_number"])
    assert kinds(check_events([*first, *rest])) == ["compaction", "message"]


def test_in_the_background_without_a_store_and_in_a_conversation(http: httpx2.Client) -> None:
    waiting = create(http, ASKED, background=True, **COMPACTS)
    assert kinds(check_events(replay(http, waiting["id"]))) == ["compaction", "message"]
    assert kinds(create(http, ASKED, store=False, **COMPACTS)) == ["compaction", "message"]
    for store in (True, False):
        conversation = http.post(CONVERSATIONS, json={"items": HISTORY}).json()["id"]
        asked = {"conversation": conversation, "store": store}
        assert kinds(create(http, QUESTION, **asked, **COMPACTS)) == ["compaction", "message"]
        listed = http.get(f"{CONVERSATIONS}/{conversation}/items?order=asc").json()["data"]
        assert [item["type"] for item in listed] == ["message"] * 3 + ["compaction", "message"]
        assert kinds(create(http, "short", **asked, **COMPACTS)) == ["message"]


def test_input_items_show_it_and_an_item_reference_names_it(http: httpx2.Client) -> None:
    first = create(http, ASKED, **COMPACTS)
    second = create(http, "x", previous_response_id=first["id"])
    listed = http.get(f"{RESPONSES}/{second['id']}/input_items?order=asc").json()["data"]
    assert [item["type"] for item in listed] == [*["message"] * 3, "compaction", "message", "message"]
    assert listed[3] == first["output"][0]
    named = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    third = create(http, [*ASKED, *named, said("user", "y")])
    own = http.get(f"{RESPONSES}/{third['id']}/input_items?order=asc").json()["data"]
    assert [item["type"] for item in own] == ["compaction", "message", "message"]  # what it replaces is not kept


def test_a_trigger_compacts_and_nothing_else(http: httpx2.Client) -> None:
    trigger = {"type": "compaction_trigger"}
    events = stream(http, [*ASKED, trigger])
    check_strictly(events)
    response = check_events(events)
    assert (kinds(response), response["status"]) == (["compaction"], "completed")
    assert messages_in(response["output"][0])[0]["content"].startswith("I am Sari.\n\n")
    behind = create(http, [trigger], previous_response_id=create(http, ASKED)["id"])
    assert kinds(behind) == ["compaction"]
    assert refused(http, {"input": [trigger, said("user", "x")]})["param"] == "input.0.type"
    assert refused(http, {"input": [trigger]})["param"] == "input"


def test_mcp_servers_are_listed_and_called_behind_it(visiting_server: Served, weather: McpProcess) -> None:
    call = a_call("order", item="ink" + " and ink" * 40)
    with httpx2.Client(base_url=visiting_server.url, timeout=30) as http:
        given = [*HISTORY, said("user", call)]
        events = stream(
            http, given, tools=[server_tool(weather, allowed_tools=["order"])], max_output_tokens=700, **COMPACTS
        )
        check_strictly(events)
        response = events[-1]["response"]
    assert kinds(response)[:3] == ["compaction", "mcp_list_tools", "mcp_call"]
    assert items_of(response, "mcp_call")[0]["status"] == "completed"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # its types lack what OpenAI sends
def test_the_official_client_compacts_and_goes_on(sdk: Connect, echo_server: Served) -> None:
    client = sdk(echo_server)
    with client.responses.stream(model="m", input=ASKED, **COMPACTS) as events:  # type: ignore[arg-type]
        seen = [event.type for event in events]
        streamed = events.get_final_response()
    assert "response.compaction.compacting" in seen
    assert [item.type for item in streamed.output] == ["compaction", "message"] and streamed.output_text == QUESTION
    compacted = client.responses.compact(model="m", input=ASKED, instructions="Be brief.")  # type: ignore[arg-type]
    echoed = f"{QUESTION}\n\n{REQUEST_OF_SUMMARY}"
    assert (compacted.object, compacted.usage.output_tokens) == ("response.compaction", len(echoed))
    assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
    window: Any = [*compacted.output, said("user", "Halo")]
    following = client.responses.create(model="m", input=window)
    assert following.output_text == "Halo"
    by_id = client.responses.compact(model="m", previous_response_id=streamed.id)
    assert [item.type for item in by_id.output] == ["message", "message", "compaction"]  # what the first item has kept


def test_a_window_keeps_what_is_not_the_assistants(http: httpx2.Client) -> None:
    call = {"type": "function_call", "call_id": "call_9", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_9", "output": "7 goats"}
    body = {"input": [said("developer", "Be kind."), *ASKED, call, output], "tools": [TOOL], "reasoning": {}}
    answer = http.post(COMPACT, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ignored-parameters"] == "tools, reasoning"
    *messages, item = answer.json()["output"]
    assert [one["role"] for one in messages] == ["developer", "user", "user"]
    assert [one["role"] for one in messages_in(item)] == ["assistant", "user", "assistant", "tool"]
    assert refused(http, {}, url=COMPACT)["param"] == "input"
    assert refused(http, {"previous_response_id": "resp_x"}, url=COMPACT)["code"] == "previous_response_not_found"


def test_a_window_of_one_item_begins_with_the_user(http: httpx2.Client) -> None:
    answer = http.post(COMPACT, json={"input": [said("assistant", LONG * 4)]})
    [item] = answer.json()["output"]
    messages, origins = messages_of([("input.0", item)], {})
    assert [one["role"] for one in messages] == ["user", "assistant"] and origins == ["input.0"] * 2


def test_open_calls_that_fill_the_context_are_not_compacted() -> None:
    call = {"type": "function_call", "call_id": "call_9", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_9", "output": "goats " * 20_000}
    with served(settings_with(max_context_tokens=4096)) as small, httpx2.Client(base_url=small.url) as http:
        body = {"input": [*HISTORY, call, output, {"type": "compaction_trigger"}], "tools": [TOOL]}
        error = refused(http, body)
    assert error["code"] == "context_length_exceeded"


def test_a_request_for_approval_is_answered_before_anything_is_compacted() -> None:
    asked = {"type": "mcp_approval_request", "id": "mcpr_1"}
    answered = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"}
    assert awaits_approval([asked]) and not awaits_approval([asked, answered]) and not awaits_approval([])


TALK = [
    said(role, f"{text} ({number})")
    for number in range(8)
    for role, text in (
        ("user", "Berapa harga laptop yang murah di Jakarta, dan toko mana yang menjualnya?"),
        ("assistant", "Ada beberapa laptop murah di Jakarta. Toko mana yang dekat dengan rumah kamu?"),
    )
]


def counted(http: httpx2.Client, **body: Any) -> int:
    answer = http.post(f"{RESPONSES}/input_tokens", json=body)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["input_tokens"])


@pytest.mark.model
def test_the_demo_model_answers_what_is_in_the_item(demo_server: Served) -> None:
    asked = [*TALK, said("user", "Yang mana paling murah?")]
    greedy: dict[str, Any] = {"temperature": 0, "ignore_eos": True}
    with httpx2.Client(base_url=demo_server.url, timeout=60) as http:
        response = create(http, asked, instructions="Be brief.", max_output_tokens=24, **greedy, **COMPACTS)
        item, message = response["output"]
        messages = [said("system", "Be brief."), *messages_in(item)]
        chat = {"model": "m", "messages": messages, "max_tokens": 24, **greedy}
        same = http.post("/v1/chat/completions", json=chat).json()
        assert same["choices"][0]["message"]["content"] == text_of(response)
        new = said("user", "Lalu?")
        num_tokens = counted(http, input=[item, message, new])
        assert num_tokens == counted(http, input=[*asked, item, message, new])
        assert num_tokens == counted(http, input=[new], previous_response_id=response["id"])
        assert num_tokens < counted(http, input=[*asked, message, new]) - 100


@pytest.mark.model
def test_a_history_longer_than_the_context_is_cut_before_it_is_summarised() -> None:
    call = {"type": "function_call", "call_id": "call_9", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_9", "output": "Toko Sari, Jakarta. " * 200}
    settings = settings_with(model_repo_id="models/demo", load_wait_seconds=120, max_context_tokens=512)
    with served(settings) as small, httpx2.Client(base_url=small.url, timeout=60) as http:
        for head in (TALK * 2, [said("user", "Cari!"), call, output, said("assistant", "Ada.")]):
            given = [*head, said("user", "Yang mana paling murah?")]
            assert refused(http, {"input": given})["code"] == "context_length_exceeded"
            response = create(http, given, max_output_tokens=4, **COMPACTS)
            assert kinds(response) == ["compaction", "message"]
            window = http.post(COMPACT, json={"input": given}).json()
            assert create(http, [*window["output"], said("user", "Lalu?")], max_output_tokens=4)["output"]
