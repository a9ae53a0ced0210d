"""What a conversation changes as it goes on: tools, effort, texts of the system for one turn, a compaction."""

import json
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError

from tests.anthropic_api.message_requests import MESSAGES, WEATHER, message_of, refusal
from tis.anthropic_api.wire import messages_request
from tis.anthropic_api.wire.chat_of_messages import ConvertedMessages, chat_of_messages
from tis.anthropic_api.wire.messages_request import MessagesRequest
from tis.errors import BadRequest

Body = dict[str, Any]
FIND: Body = {"name": "find", "input_schema": {"type": "object"}}
SERVER: Body = {"type": "url", "name": "atlas", "url": "https://atlas.example/mcp"}
TOOLSET: Body = {"type": "mcp_toolset", "mcp_server_name": "atlas"}


def user(text: str) -> Body:
    return {"role": "user", "content": text}


def assistant(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str) -> Body:
    return {"type": "text", "text": said}


def system(*blocks: Body, **more: Any) -> Body:
    return {"role": "system", "content": list(blocks), **more}


def added(**tool: Any) -> Body:
    return {"type": "tool_addition", "tool": tool}


def removed(**tool: Any) -> Body:
    return {"type": "tool_removal", "tool": tool}


def converted(*messages: Body, **more: Any) -> ConvertedMessages:
    return chat_of_messages(MessagesRequest.model_validate({"max_tokens": 9, "messages": list(messages), **more}))


def names(*messages: Body, **more: Any) -> list[str]:
    tools = [tool.model_dump() for tool in converted(*messages, **more).chat.tools or ()]
    return [tool["server_label"] if tool["type"] == "mcp" else tool["function"]["name"] for tool in tools]


def history(*messages: Body, **more: Any) -> list[tuple[str, Any]]:
    return [(one.role, one.content) for one in converted(*messages, **more).chat.messages or ()]


def test_messages_of_the_system_add_tools_and_take_them_away() -> None:
    of_find = {"type": "tool_reference", "name": "find"}
    gone = system(removed(**of_find))
    assert names(user("x"), gone, tools=[WEATHER, FIND]) == ["get_weather"]
    assert names(user("x"), gone, user("y"), system(added(**of_find)), tools=[WEATHER, FIND]) == ["get_weather", "find"]
    define = added(type="tool_definition", definition=FIND)
    assert names(user("x"), system(text("Use it."), define), tools=[WEATHER]) == ["get_weather", "find"]
    assert names(user("x"), system(define), user("y"), gone) == []
    assert names(user("x"), gone, user("y"), system(define), tools=[FIND]) == ["find"]
    newer = {**FIND, "description": "Newer."}
    made = converted(user("x"), system(added(type="tool_definition", definition=newer)), tools=[FIND, WEATHER])
    assert [one.function.description for one in made.chat.tools or () if one.type == "function"] == [
        WEATHER["description"],
        "Newer.",
    ]
    assert history(user("x"), system(define), user("y")) == [("user", "x\n\ny")]


def test_a_toolset_is_taken_away_and_comes_back() -> None:
    reference = {"type": "mcp_toolset_reference", "server_name": "atlas"}
    more = {"tools": [WEATHER, TOOLSET], "mcp_servers": [SERVER]}
    assert names(user("x"), **more) == ["get_weather", "atlas"]
    assert names(user("x"), system(removed(**reference)), **more) == ["get_weather"]
    assert names(user("x"), system(removed(**reference), added(**reference)), **more) == ["get_weather", "atlas"]
    define = added(type="tool_definition", definition=TOOLSET)
    assert names(user("x"), system(removed(**reference), define), mcp_servers=[SERVER]) == ["atlas"]


@pytest.mark.parametrize(
    ("block", "param"),
    [
        ({"type": "tool_addition"}, "messages.1.content.0.tool"),
        (added(type="tool_reference"), "messages.1.content.0.tool.name"),
        (removed(type="mcp_tool_reference", server_name="a", name="b"), "messages.1.content.0.tool.type"),
        (removed(type="tool_definition", definition=FIND), "messages.1.content.0.tool.type"),
        (added(type="tool_definition"), "messages.1.content.0.tool.type"),
        (added(type="tool_definition", definition={"name": "f"}), "messages.1.content.0.tool.definition.input_schema"),
        (added(type="tool_definition", definition=TOOLSET), "messages.1.content.0.tool.definition.mcp_server_name"),
    ],
    ids=str,
)
def test_a_change_that_is_wrong_is_named(http: httpx2.Client, block: Body, param: str) -> None:
    error = refusal(http, message_of("x", messages=[user("x"), system(block)]))
    assert error["details"]["param"] == param


def test_more_tools_than_a_request_may_have_are_refused() -> None:
    many = [added(type="tool_definition", definition={**FIND, "name": f"f{number}"}) for number in range(100)]
    turns = [system(*(json.loads(json.dumps(many).replace('"f', f'"g{turn}_f')))) for turn in range(11)]
    with pytest.raises(BadRequest, match="at most 1024 tools"):
        converted(user("x"), *turns)


def test_a_text_of_the_system_may_hold_for_one_turn() -> None:
    hint = system(text("Now is noon."), clear_at="next_user_message")
    assert history(user("x"), hint) == [("user", "x"), ("system", "Now is noon.")]
    assert history(user("x"), hint, assistant(text("a")), user("y")) == [
        ("user", "x"),
        ("assistant", "a"),
        ("user", "y"),
    ]
    call = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "7"}
    for said, is_shown in ([result], True), ([result, text("y")], False):
        turn = history(user("x"), hint, assistant(call), {"role": "user", "content": said})
        assert (("system", "Now is noon.") in turn) is is_shown
    define = system(added(type="tool_definition", definition=FIND), text("New."), clear_at="next_user_message")
    assert names(user("x"), define, user("y")) == ["find"]


def test_a_message_of_the_system_may_set_the_effort_of_its_turn(http: httpx2.Client) -> None:
    low = {"role": "system", "output_config": {"effort": "low"}}
    call = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "7"}]}
    high = {"output_config": {"effort": "high"}}
    assert converted(user("x"), low, **high).chat.reasoning_effort == "low"
    assert converted(user("x"), low, assistant(call), result, **high).chat.reasoning_effort == "low"
    assert converted(user("x"), low, assistant(text("a")), user("y"), **high).chat.reasoning_effort == "high"
    for wrong in ({"role": "system"}, {"role": "user"}, {"role": "user", "output_config": {"effort": "low"}}):
        assert refusal(http, message_of("x", messages=[user("x"), wrong]))["details"]["param"] == "messages.1.content"


def test_a_compaction_of_a_client_takes_the_place_of_what_was_before() -> None:
    block = {"type": "compaction", "content": "Sari asked for tea.", "signature": "x"}
    before = [user("Tea?"), assistant({"type": "tool_use", "id": "t1", "name": "find", "input": {}})]
    behind = [assistant(block, text("It is there.")), user("Thanks.")]
    expected = [("system", "Be kind."), ("user", "<summary>\nSari asked for tea.\n</summary>")]
    for messages in ([*before, *behind], behind):
        assert history(*messages, system="Be kind.") == [
            *expected,
            ("assistant", "It is there."),
            ("user", "Thanks."),
        ]
    alone = history(assistant(block), user("Thanks."))
    assert alone == [("user", "<summary>\nSari asked for tea.\n</summary>\n\nThanks.")]
    assert history(assistant({**block, "content": [text("Sari asked"), text("for tea.")]}), user("y"))[0][1].startswith(
        "<summary>\nSari asked\n\nfor tea.\n</summary>"
    )
    changes = [added(type="tool_definition", definition=FIND), removed(type="tool_reference", name="get_weather")]
    assert names(assistant({**block, "tool_changes": changes}), user("x"), tools=[WEATHER]) == ["find"]


def test_changes_of_tools_in_a_compaction_are_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    block: Body = {
        "type": "compaction",
        "content": "x",
        "tool_changes": [removed(type="tool_reference", name="x")] * 1024,
    }
    with pytest.raises(ValidationError, match="1024"):
        converted(assistant({**block, "tool_changes": [*block["tool_changes"], block]}), user("x"))
    slices: list[int] = []
    validate = messages_request._BLOCKS.validate_python

    def noted(some: list[Any]) -> list[Any]:
        slices.append(len(some))
        return list(validate(some))

    monkeypatch.setattr(messages_request, "_BLOCKS", SimpleNamespace(validate_python=noted))
    MessagesRequest.prepare_large({"messages": [assistant(*[block] * 5)]})
    assert slices == [2, 2, 1]


def test_a_compaction_that_failed_is_left_out_and_one_that_is_sealed_is_refused(http: httpx2.Client) -> None:
    failed = message_of("x", messages=[user("Tea?"), assistant({"type": "compaction", "content": None}), user("y")])
    answer = http.post(MESSAGES, json=failed)
    assert answer.status_code == 200 and answer.headers["x-ignored-parameters"] == "messages.content.compaction"
    odd = assistant({"type": "compaction", "content": {"a": 1}})
    param = refusal(http, message_of("x", messages=[odd, user("y")]))["details"]["param"]
    assert param == "messages.0.content.0.content"
    sealed = {"type": "compaction", "content": None, "encrypted_content": "gAAA"}
    error = refusal(http, message_of("x", messages=[assistant(sealed), user("y")]))
    assert error["details"]["param"] == "messages.0.content.0.encrypted_content"


def test_a_search_for_tools_is_left_out_as_the_model_sees_all_of_them(http: httpx2.Client) -> None:
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    answer = http.post(MESSAGES, json=message_of("x", tools=[search, {**FIND, "defer_loading": True}]))
    assert answer.status_code == 200 and answer.headers["x-ignored-parameters"] == "tools.type"
    choice = {"type": "tool", "name": "tool_search_tool_regex"}
    assert refusal(http, message_of("x", tools=[search], tool_choice=choice))["details"]["param"] == "tool_choice.name"
