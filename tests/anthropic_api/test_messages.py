"""POST /v1/messages, answered whole: what becomes of each part of a request."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.anthropic_api.message_requests import COUNT, MESSAGES, WEATHER, asked, message_of, refusal
from tests.serving import served, settings_with
from tis.anthropic_api.wire.message_answer import fold_message
from tis.anthropic_api.wire.message_blocks import PlacedPart, chat_content

CALL = json.dumps({"name": "get_weather", "arguments": {"city": "Bandung"}})

LEVELS = "[" * 250 + "]" * 250


@pytest.fixture(scope="module")
def thinking() -> Iterator[httpx2.Client]:
    with served(settings_with(model_repo_id="echo?thinks=1")) as running, httpx2.Client(base_url=running.url) as client:
        yield client


def test_an_answer_has_the_shape_that_clients_expect(http: httpx2.Client) -> None:
    answer = http.post(MESSAGES, json=message_of("Halo 你好"))
    message = answer.json()
    assert message.pop("id").startswith("msg_")
    assert message == {
        "type": "message",
        "role": "assistant",
        "model": "echo",
        "content": [{"type": "text", "text": "Halo 你好"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 7,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 0},
            "service_tier": "standard",
        },
    }
    assert answer.headers["request-id"] == answer.headers["x-request-id"]


def test_max_tokens_ends_it(http: httpx2.Client) -> None:
    message = asked(http, message_of("Halo", max_tokens=2))
    assert (message["content"][0]["text"], message["stop_reason"]) == ("Ha", "max_tokens")


def test_more_tokens_than_the_model_has_are_as_many_as_there_are(http: httpx2.Client) -> None:
    """Clients that know Anthropic's models ask for 64,000."""
    assert asked(http, message_of("Halo", max_tokens=64_000))["content"][0]["text"] == "Halo"


@pytest.mark.parametrize("sequences", [["zzz", ", t"], [", t", ", th"], ["hree", ", t"]])
def test_the_stop_sequence_that_ended_it_is_named(http: httpx2.Client, sequences: list[str]) -> None:
    message = asked(http, message_of("one, two, three", stop_sequences=sequences))
    assert message["content"][0]["text"] == "one"
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", ", t")


def test_sixteen_stop_sequences_are_legal(http: httpx2.Client) -> None:
    sequences = [f"<{number}>" for number in range(16)]
    assert asked(http, message_of("a <15> b", stop_sequences=sequences))["stop_sequence"] == "<15>"
    error = refusal(http, message_of("a", stop_sequences=[*sequences, "<16>"]))
    assert error["details"]["param"] == "stop_sequences"


def test_texts_of_one_message_are_paragraphs(http: httpx2.Client) -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}}]
    assert asked(http, message_of(blocks))["content"][0]["text"] == "one\n\ntwo"


def test_texts_between_images_are_joined_and_have_the_place_of_the_first() -> None:
    def text(number: int, said: str) -> PlacedPart:
        return PlacedPart(f"content.{number}", {"type": "text", "text": said})

    picture: dict[str, Any] = {"type": "image", "b64_json": "x"}
    parts = [text(0, "a"), text(1, ""), text(2, "b"), PlacedPart("content.3", picture), text(4, "c"), text(5, "d")]
    content, places = chat_content(parts)
    assert content == [{"type": "text", "text": "a\n\nb"}, picture, {"type": "text", "text": "c\n\nd"}]
    assert places == ["content.0", "content.3", "content.4"]
    many = [text(number, "x" * 300) for number in range(33_000)]  # takes minutes if each copies what is before it
    assert chat_content(many) == ("\n\n".join(["x" * 300] * 33_000), ["content.0"])


def test_documents_and_search_results_are_text_between_tags(http: httpx2.Client) -> None:
    blocks = [
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "Tides rise."},
            "title": "Sea",
            "context": "a leaflet",
        },
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Tides fall."}]}},
        {
            "type": "search_result",
            "source": "https://example.com/moon",
            "title": "Moon",
            "content": [{"type": "text", "text": "It pulls."}],
        },
        {"type": "text", "text": "Why?"},
    ]
    assert asked(http, message_of(blocks))["content"][0]["text"] == (
        "<document>\n<title>Sea</title>\n<context>a leaflet</context>\nTides rise.\n</document>\n\n"
        "<document>\nTides fall.\n</document>\n\n"
        "<search_result>\n<title>Moon</title>\n<source>https://example.com/moon</source>\nIt pulls.\n"
        "</search_result>\n\nWhy?"
    )


def test_messages_of_one_role_in_a_row_are_one(http: httpx2.Client) -> None:
    body = message_of("one")
    body["messages"].append({"role": "user", "content": [{"type": "text", "text": "two"}]})
    assert asked(http, body)["content"][0]["text"] == "one\n\ntwo"


def test_a_call_is_a_block_with_its_input(http: httpx2.Client) -> None:
    message = asked(http, message_of(CALL, tools=[WEATHER]))
    [block] = message["content"]
    assert block.pop("id").startswith("call_")
    assert block == {"type": "tool_use", "name": "get_weather", "input": {"city": "Bandung"}}
    assert message["stop_reason"] == "tool_use"


def test_a_cut_call_has_the_part_of_its_input_that_exists(http: httpx2.Client) -> None:
    text = json.dumps({"name": "get_weather", "arguments": {"city": "Bandung", "more": "x" * 200}})
    message = asked(http, message_of(text, tools=[WEATHER], max_tokens=150))
    [block] = message["content"]
    assert block["input"]["city"] == "Bandung" and message["stop_reason"] == "max_tokens"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        (r'{"a": "x\ud83d é"}', {"a": "x\ud83d é"}),
        ('{"a": 1e999}', {"a": "1e999"}),
        (f'{{"a": {LEVELS}}}', {"a": json.loads(LEVELS)}),
    ],
    ids=["half a pair", "infinity", "levels"],
)
def test_an_input_is_the_one_that_was_written(http: httpx2.Client, written: str, sent: Any) -> None:
    call = f'{{"name": "now", "arguments": {written}}}'
    message = asked(http, message_of(call, tools=[{"name": "now", "input_schema": {}}], max_tokens=100_000))
    assert message["content"][0]["input"] == sent and message["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("pieces", "given"),
    [
        (['{"a": ', "1" * 5000, "}"], {"a": "1" * 5000}),
        (['{"a": "x", ', '"b": "y'], {"a": "x"}),
        (['{"a": 1e999, ', '"b": "y'], {}),
    ],
    ids=["digits", "cut", "cut behind infinity"],
)
def test_an_input_is_put_together_as_far_as_json_has_it(pieces: list[str], given: dict[str, Any]) -> None:
    start = {"type": "message_start", "message": {"content": []}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "input": {}}}
    events = [start, block]
    for piece in pieces:
        delta = {"type": "input_json_delta", "partial_json": piece}
        events.append({"type": "content_block_delta", "index": 0, "delta": delta})
    assert fold_message(json.dumps(event).encode() for event in events)["content"][0]["input"] == given


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_a_tool_that_must_be_called_needs_a_model_with_grammars(http: httpx2.Client, choice: dict[str, Any]) -> None:
    error = refusal(http, message_of(CALL, tools=[WEATHER], tool_choice=choice))
    assert error["details"]["param"] == "tool_choice"


def test_no_tool_is_called_if_none_may_be(http: httpx2.Client) -> None:
    [block] = asked(http, message_of(CALL, tools=[WEATHER], tool_choice={"type": "none"}))["content"]
    assert block == {"type": "text", "text": CALL}


def test_one_call_at_a_time(http: httpx2.Client) -> None:
    body = message_of(f"[{CALL}, {CALL}]", tools=[WEATHER])
    assert len(asked(http, body)["content"]) == 2
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert len(asked(http, {**body, "tool_choice": choice})["content"]) == 1


@pytest.mark.parametrize(
    ("kind", "name", "given"),
    [
        ("bash_20250124", "bash", {"command": "ls"}),
        ("text_editor_20250728", "str_replace_based_edit_tool", {"command": "view", "path": "/a"}),
        ("text_editor_20250124", "str_replace_editor", {"command": "undo_edit", "path": "/a"}),
        ("memory_20250818", "memory", {"command": "rename", "old_path": "/a", "new_path": "/b"}),
    ],
)
def test_tools_that_the_client_runs_need_no_schema(
    http: httpx2.Client, kind: str, name: str, given: dict[str, Any]
) -> None:
    call = json.dumps({"name": name, "arguments": given})
    [block] = asked(http, message_of(call, tools=[{"type": kind, "name": name}]))["content"]
    assert (block["name"], block["input"]) == (name, given)


def test_many_tools_with_long_names_are_legal(http: httpx2.Client) -> None:
    tools = [
        {**WEATHER, "name": f"mcp__a_server_with_a_long_name__and_a_tool_with_{number:040d}"} for number in range(300)
    ]
    call = json.dumps({"name": tools[299]["name"], "arguments": {"city": "Solo"}})
    [block] = asked(http, message_of(call, tools=tools))["content"]
    assert block["name"] == tools[299]["name"]


def test_the_result_of_a_tool_is_what_comes_next(http: httpx2.Client) -> None:
    def told(**result: Any) -> str:
        call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Bandung"}}
        body = message_of("Weather?", tools=[WEATHER])
        block = {"type": "tool_result", "tool_use_id": "toolu_1", **result}
        body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]
        return str(asked(http, body)["content"][0]["text"])

    assert told(content="24 degrees") == "24 degrees"
    assert told(content=[{"type": "text", "text": "24"}, {"type": "text", "text": "dry"}]) == "24\n\ndry"
    assert told(content="no such city", is_error=True) == "Error: no such city"
    assert told(content="error: no such city", is_error=True) == "error: no such city"
    assert told(content=[{"type": "tool_reference", "tool_name": "f"}]) == "The tool f can be called."


def test_a_conversation_that_began_with_tools_of_anthropic_goes_on(http: httpx2.Client) -> None:
    """As Claude answers with web search and code execution. What stands around an empty answer is one message."""
    found = {"type": "web_search_result", "url": "https://example.com", "title": "Sea", "encrypted_content": "x"}
    failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    searched: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "sea"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_2", "content": failed},
        {"type": "container_upload", "file_id": "file_1"},
    ]
    kinds = ("server_tool_use", "web_search_tool_result", "container_upload")
    for texts, expected in (([{"type": "text", "text": "Deep."}], "Sure?"), ([], "How deep?\n\nSure?")):
        body = message_of("How deep?")
        body["messages"] += [
            {"role": "assistant", "content": [*searched, *texts]},
            {"role": "user", "content": "Sure?"},
        ]
        answer = http.post(MESSAGES, json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["content"][0]["text"] == expected
        ignored = answer.headers["x-ignored-parameters"].split(", ")
        assert {f"messages.content.{kind}" for kind in kinds} <= set(ignored)


@pytest.mark.parametrize("kind", ["image", "tool_result"])
def test_blocks_of_the_user_are_none_of_the_assistant(http: httpx2.Client, kind: str) -> None:
    body = message_of("Halo")
    body["messages"].append({"role": "assistant", "content": [{"type": kind, "tool_use_id": "x"}]})
    assert refusal(http, body)["details"]["param"] == "messages.1.content.0.type"


def test_a_call_without_its_result_is_refused(http: httpx2.Client) -> None:
    body = message_of("Weather?", tools=[WEATHER])
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    body["messages"].append({"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]})
    assert refusal(http, body)["details"]["param"] == "messages.1.content.1"


def test_the_beginning_of_an_answer_is_continued(http: httpx2.Client) -> None:
    """The echo model repeats the last message, which here is the one that it continues."""
    body = message_of("A joke?")
    body["messages"].append({"role": "assistant", "content": "There was"})
    assert asked(http, body)["content"] == [{"type": "text", "text": "There was"}]


def test_an_empty_beginning_is_none(http: httpx2.Client) -> None:
    for content in ("", [], [{"type": "text", "text": ""}]):
        body = message_of("A joke?")
        body["messages"].append({"role": "assistant", "content": content})
        assert asked(http, body)["content"][0]["text"] == "A joke?"


def test_thinking_is_a_signed_block_that_comes_back(thinking: httpx2.Client) -> None:
    message = asked(thinking, message_of("<think>\nHm.\n</think>\n\nYes."))
    thought, text = message["content"]
    assert (thought["type"], thought["thinking"], text["text"]) == ("thinking", "Hm.", "Yes.")
    assert message["usage"]["output_tokens_details"]["thinking_tokens"] > 0
    for block, is_dropped in (
        (thought, False),
        ({**thought, "thinking": "Hmm."}, True),
        ({**thought, "signature": "x"}, True),
    ):
        body = message_of("Well?")
        body["messages"] += [
            {"role": "assistant", "content": [block, text]},
            {"role": "user", "content": "Sure?"},
        ]
        answer = thinking.post(MESSAGES, json=body)
        assert answer.json()["content"][0]["text"] == "Sure?"
        assert answer.headers.get("x-ignored-parameters") == ("messages.content.thinking" if is_dropped else None)


def test_thinking_that_is_not_shown_is_in_its_signature(thinking: httpx2.Client) -> None:
    shown = {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}
    thought, text = asked(thinking, message_of("<think>\nHm.\n</think>\n\nYes.", thinking=shown))["content"]
    assert (thought["thinking"], text["text"]) == ("", "Yes.")
    body = message_of("Well?")
    body["messages"] += [{"role": "assistant", "content": [thought, text]}, {"role": "user", "content": "Sure?"}]
    assert "x-ignored-parameters" not in thinking.post(MESSAGES, json=body).headers


def test_what_is_ignored_is_named(http: httpx2.Client) -> None:
    body = message_of(
        "Halo",
        metadata={"user_id": "u-1"},
        service_tier="standard_only",
        container="c",
        context_management={"edits": []},
        output_config={"effort": "low"},
        betas=["x"],
        cache_control={"type": "ephemeral"},
    )
    answer = http.post(f"{MESSAGES}?beta=true", json=body, headers={"anthropic-beta": "a,b", "anthropic-version": "x"})
    assert answer.status_code == 200
    assert answer.headers["x-ignored-parameters"].split(", ") == [
        "betas", "metadata", "container", "context_management", "output_config.effort",
    ]  # fmt: skip


def test_an_effort_is_followed_by_a_model_that_reasons(thinking: httpx2.Client) -> None:
    body = message_of("Halo", output_config={"effort": "low"}, thinking={"type": "adaptive"})
    assert "x-ignored-parameters" not in thinking.post(MESSAGES, json=body).headers


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "messages.0.content.0.type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0.text"),
        ({"system": [{"type": "image"}]}, "system.0.type"),
        ({"temperature": 3}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": 1.5}, "top_k"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"thinking": {"type": "later"}}, "thinking.type"),
        ({"thinking": {"type": "enabled", "budget_tokens": -1}}, "thinking.budget_tokens"),
        ({"thread": {"type": "create"}}, "thread"),
        ({"tools": [{"name": "f"}]}, "tools.0.input_schema"),
        ({"tools": [{"name": "f g", "input_schema": {}}]}, "tools.0.name"),
        ({"tools": [WEATHER, WEATHER]}, "tools.1.name"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0.type"),
        ({"tools": [{"type": "computer_20250124", "name": "computer"}]}, "tools.0.type"),
        ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}]}, "tools.0.mcp_server_name"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tool_choice": {"type": "tool"}, "tools": [WEATHER]}, "tool_choice.name"),
        ({"tool_choice": {"type": "tool", "name": "g"}, "tools": [WEATHER]}, "tool_choice.name"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {}}}}, "output_config.format.schema"),
        ({"session_id": "no spaces please"}, "session_id"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_bad_request_names_the_field(http: httpx2.Client, change: dict[str, Any], param: str) -> None:
    error = refusal(http, {**message_of("Halo"), **change})
    assert error["type"] == "invalid_request_error"
    assert error["details"]["param"] == param and param in error["message"]


@pytest.mark.parametrize(
    ("block", "place"),
    [
        ({"type": "image", "source": {"type": "file", "file_id": "x"}}, "source.type"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png"}}, "source.data"),
        ({"type": "image", "source": "x"}, "source"),
        ({"type": "image"}, "source"),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "x"}},
            "source.type",
        ),
        ({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}, "source.type"),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "x"}]}}, "source.content.0.type"),
        ({"type": "search_result", "title": "x", "content": []}, "source"),
        ({"type": "tool_result"}, "tool_use_id"),
        ({"type": "tool_result", "tool_use_id": "x", "content": [{"type": "tool_result"}]}, "content.0.type"),
        ({"type": "tool_result", "tool_use_id": "x", "content": {"type": "text"}}, "content"),
        ({"type": "tool_result", "tool_use_id": "x", "content": 1}, "content"),
        ({"type": "tool_result", "tool_use_id": "x", "content": [{"text": "a"}]}, "content.0.type"),
        ({"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}, "type"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_bad_block_is_named_by_its_place(http: httpx2.Client, block: dict[str, Any], place: str) -> None:
    body = message_of([{"type": "text", "text": "a"}, block])
    assert refusal(http, body)["details"]["param"] == f"messages.0.content.1.{place}"


def test_an_image_for_a_model_that_does_not_see_is_named_by_its_place(http: httpx2.Client) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGFsbG8="}}
    result = {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "a"}, image]}
    for content, place in (([{"type": "text", "text": "a"}, image], "1"), ([result], "0.content.1")):
        error = refusal(http, {**message_of(content), "system": "Look."})
        assert error["details"] == {"error_code": "unsupported_content", "param": f"messages.0.content.{place}"}


def test_the_tokens_of_a_prompt_are_counted(http: httpx2.Client) -> None:
    body = message_of("Halo", tools=[WEATHER], thinking={"type": "adaptive"})
    del body["max_tokens"]
    answer = http.post(COUNT, params={"beta": "true"}, json=body)
    assert answer.json() == {"input_tokens": 4} and answer.headers["request-id"]
    answer = http.post(COUNT, json=message_of("Halo" * 100_000))
    assert answer.json() == {"input_tokens": 400_000}  # more than the model has
    assert refusal(http, {"model": "echo"}, COUNT)["details"]["param"] == "messages"
    assert refusal(http, {**body, "tools": [{"name": "f"}]}, COUNT)["details"]["param"] == "tools.0.input_schema"


def test_a_bill_is_no_part_of_the_prompt(http: httpx2.Client) -> None:
    """Claude Code puts a line before its system prompt that differs from request to request."""
    system = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=0f3a9;"}]
    body = {**message_of("Halo"), "system": system}
    assert asked(http, body)["content"][0]["text"] == "Halo"
