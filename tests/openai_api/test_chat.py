"""POST /v1/chat/completions, answered whole."""

import json
from typing import Any, get_args

import httpx2
import pytest
from openai.types.shared import ReasoningEffort

from tis.openai_api.wire.chat_prompt import requested_sampling
from tis.openai_api.wire.chat_request import ChatRequest

EFFORTS = get_args(get_args(ReasoningEffort)[0])  # none, minimal, ...
CHAT = "/v1/chat/completions"


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def test_an_answer_has_the_shape_clients_expect(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("Halo 你好")).json()
    assert answer["id"].startswith("chatcmpl-") and answer["object"] == "chat.completion"
    assert answer["model"] == "echo" and isinstance(answer["created"], int)
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Halo 你好", "refusal": None}
    assert (choice["index"], choice["finish_reason"], choice["logprobs"]) == (0, "stop", None)
    assert {name: answer["usage"][name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
        "prompt_tokens": 7,
        "completion_tokens": 7,
        "total_tokens": 14,
    }


def test_max_tokens_ends_it_with_length(http: httpx2.Client) -> None:
    [choice] = http.post(CHAT, json=said("Halo", max_tokens=2)).json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Ha", "length")


def test_max_completion_tokens_beats_max_tokens(http: httpx2.Client) -> None:
    [choice] = http.post(CHAT, json=said("Halo", max_tokens=1, max_completion_tokens=3)).json()["choices"]
    assert choice["message"]["content"] == "Hal"


def test_a_stop_string_ends_it_and_is_not_shown(http: httpx2.Client) -> None:
    [choice] = http.post(CHAT, json=said("one, two, three", stop=[", t", "zzz"])).json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one", "stop")


def test_n_choices_come_in_order(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("abc", n=3)).json()
    assert [(one["index"], one["message"]["content"]) for one in answer["choices"]] == [(i, "abc") for i in range(3)]
    assert answer["usage"]["completion_tokens"] == 9


def test_logprobs_have_an_entry_for_every_token(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("a stop b", logprobs=True, stop=["stop b"])).json()
    entries = answer["choices"][0]["logprobs"]["content"]
    assert len(entries) == answer["usage"]["completion_tokens"] == 8
    assert entries[0] == {"token": "a", "logprob": 0.0, "bytes": [97], "top_logprobs": []}


def test_as_many_top_logprobs_as_asked_for_likeliest_first(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("abc", logprobs=True, top_logprobs=20)).json()
    for letter, entry in zip("abc", answer["choices"][0]["logprobs"]["content"], strict=True):
        top = entry["top_logprobs"]
        assert top[0] == {"token": letter, "logprob": 0.0, "bytes": [ord(letter)]}
        assert len({one["token"] for one in top}) == 20
        assert [one["logprob"] for one in top] == sorted((one["logprob"] for one in top), reverse=True)


def test_parts_of_text_are_joined(http: httpx2.Client) -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    answer = http.post(CHAT, json={"messages": [{"role": "user", "content": parts}]}).json()
    assert answer["choices"][0]["message"]["content"] == "one two"


def test_null_is_absent_and_unknown_fields_are_ignored(http: httpx2.Client) -> None:
    nothing = dict.fromkeys(["max_tokens", "stop", "temperature", "tools", "tool_choice", "seed", "n", "logit_bias"])
    body = said("Halo", **nothing, user="someone", store=True, metadata={}, made_up={"by": "us"})
    assert http.post(CHAT, json=body).json()["choices"][0]["message"]["content"] == "Halo"


def test_empty_lists_are_legal(http: httpx2.Client) -> None:
    assert http.post(CHAT, json=said("Halo", stop=[], tools=[], temperature=0)).status_code == 200


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": 1.5}, "top_k"),
        ({"min_p": -0.1}, "min_p"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 5}, "stop"),
        ({"stop": 5}, "stop"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"9999999": 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"stop_token_ids": [-1]}, "stop_token_ids"),
        ({"min_tokens": 9, "max_tokens": 4}, "min_tokens"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"seed": "lucky"}, "seed"),
        ({"session_id": "no spaces please"}, "session_id"),
        ({"session_id": "x" * 129}, "session_id"),
        ({"messages": []}, "messages"),
        ({"messages": "Halo"}, "messages"),
        ({"messages": [{"content": "Halo"}]}, "messages.0.role"),
        ({"messages": [{"role": "wizard", "content": "Halo"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "messages.0.content.0.type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0.text"),
        ({"messages": [{"role": "user", "content": ["bare"]}]}, "messages.0.content"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"guided_json": {}}, "guided_json"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
        ({"continue_final_message": True}, "continue_final_message"),
        ({"stream": "yes"}, "stream"),
    ],
    ids=str,
)
def test_a_value_out_of_range_is_a_400_that_names_it(http: httpx2.Client, change: dict[str, Any], param: str) -> None:
    answer = http.post(CHAT, json={**said("Halo"), **change})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error" and error["message"]
    assert error["param"].startswith(param)


NOT_SUPPORTED: list[tuple[str, Any]] = [
    ("audio", {"voice": "alloy", "format": "wav"}),
    ("web_search_options", {}),
    ("chat_template", "{{ messages }}"),
    ("modalities", ["text", "audio"]),
    ("modalities", ["audio"]),
    ("modalities", "text"),
]


@pytest.mark.parametrize(("name", "value"), NOT_SUPPORTED, ids=str)
@pytest.mark.parametrize("stream", [False, True])
def test_a_field_that_is_not_supported_is_refused_by_its_name(
    http: httpx2.Client, name: str, value: Any, stream: bool
) -> None:
    answer = http.post(CHAT, json=said("Halo", stream=stream, **{name: value}))
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, name)
    assert name in error["message"] and error["code"] in ("unsupported_parameter", "unsupported_value")


def test_nothing_of_what_is_not_supported_may_be_asked_for(http: httpx2.Client) -> None:
    names = {name for name, _ in NOT_SUPPORTED}
    bodies: list[dict[str, Any]] = [
        dict.fromkeys([*names, "stream_options", "metadata"]),
        {"functions": [], "modalities": []},
        {"modalities": ["text"]},
    ]
    for body in bodies:
        assert http.post(CHAT, json=said("Halo", **body)).status_code == 200, body


def test_stop_takes_four_strings(http: httpx2.Client) -> None:
    [choice] = http.post(CHAT, json=said("one, two", stop=["w", "x", "y", "z"])).json()["choices"]
    assert choice["message"]["content"] == "one, t"
    error = http.post(CHAT, json=said("one, two", stop=["v", "w", "x", "y", "z"])).json()["error"]
    assert (error["param"], error["message"]) == ("stop", "stop: at most 4 entries, got 5")


@pytest.mark.parametrize(
    ("metadata", "param"),
    [
        ({f"key{n}": "" for n in range(17)}, "metadata"),
        ({"k" * 65: ""}, "metadata"),
        ({"topic": "x" * 513}, "metadata.topic"),
        ({"topic": 5}, "metadata.topic"),
        (["topic"], "metadata"),
    ],
    ids=["17 keys", "a long key", "a long value", "a number", "a list"],
)
def test_metadata_has_the_limits_of_openai(http: httpx2.Client, metadata: Any, param: str) -> None:
    answer = http.post(CHAT, json=said("Halo", metadata=metadata))
    assert answer.status_code == 400 and answer.json()["error"]["param"].startswith(param)
    fits = {"k" * 63 + str(n): "x" * 512 for n in range(10)} | {f"key{n}": "" for n in range(6)}
    assert http.post(CHAT, json=said("Halo", metadata=fits)).status_code == 200


def test_metadata_makes_no_other_request_of_it(http: httpx2.Client) -> None:
    body = said("Halo", session_id="metadata-1")
    first, second = (http.post(CHAT, json={**body, "metadata": {"try": value}}) for value in ("1", "2"))
    assert first.json()["id"] == second.json()["id"]


@pytest.mark.parametrize("options", [{}, {"include_usage": True}])
def test_stream_options_need_a_stream(http: httpx2.Client, options: dict[str, Any]) -> None:
    for more in ({}, {"stream": False}, {"stream": None}):
        answer = http.post(CHAT, json=said("Halo", stream_options=options, **more))
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "stream_options")
    assert http.post(CHAT, json=said("Halo", stream_options=options, stream=True)).status_code == 200


def test_everything_is_checked_before_a_stream_begins(http: httpx2.Client) -> None:
    assert http.post(CHAT, json=said("Halo", stream=True, temperature=3)).status_code == 400


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "1" * 400])
def test_numbers_that_are_none_are_refused(http: httpx2.Client, value: str) -> None:
    body = '{"messages":[{"role":"user","content":"Halo"}],"temperature":%s}' % value  # noqa: UP031
    assert http.post(CHAT, content=body, headers={"Content-Type": "application/json"}).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"messages":',
        b'{"messages":[{"role":"user","content":"\\ud800"}]}',
        b'{"messages":[{"role":"user","content":"\xff"}]}',
        b"[" * 100_000,
        b'{"messages":[{"role":"user","content":"x","tool_calls":[{"\\ud800":1}]}]}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_body_that_cannot_be_meant_is_a_400(http: httpx2.Client, body: bytes) -> None:
    answer = http.post(CHAT, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def nested(depth: int) -> bytes:
    """A request whose tool has parameters so deep."""
    head = (
        b'{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":'
    )
    return head + b'{"a":' + b"[" * depth + b"]" * depth + b"}}}]}"


def test_deep_nesting_is_answered(http: httpx2.Client) -> None:
    answer = http.post(CHAT, content=nested(150), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["choices"][0]["message"]["content"]) == (200, "x")


def test_nesting_deeper_than_the_limit_is_refused(http: httpx2.Client) -> None:
    answer = http.post(CHAT, content=nested(900), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "nested_too_deep")


def test_a_body_without_content_type_is_told_what_to_send(http: httpx2.Client) -> None:
    answer = http.post(CHAT, content=b'{"messages":[]}', headers={"Content-Type": "text/plain"})
    assert "Content-Type: application/json" in answer.json()["error"]["message"]


def test_a_picture_is_refused_by_its_place(http: httpx2.Client) -> None:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    error = http.post(CHAT, json={"messages": [{"role": "user", "content": parts}]}).json()["error"]
    assert error["param"] == "messages.0.content.1" and "model does not accept images" in error["message"]


def test_a_prompt_over_the_context_is_refused_in_the_words_clients_look_for(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("x" * 32768, stream=True))
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")
    begin = "This model's maximum context length is 32768 tokens. However, you requested 32768 tokens"
    assert error["message"].startswith(begin)


def test_max_tokens_alone_over_the_context_is_refused(http: httpx2.Client) -> None:
    error = http.post(CHAT, json=said("x", max_tokens=32769)).json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "max_tokens")
    assert error["message"].startswith("This model's maximum context length is 32768 tokens. However, you requested")


def test_a_prompt_that_fits_with_a_max_tokens_that_does_not_is_cut(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("x" * 32760, max_tokens=32768, ignore_eos=True)).json()
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_long_value_does_not_come_back_many_times_its_size(http: httpx2.Client) -> None:
    answer = http.post(CHAT, json=said("x", chat_template_kwargs={"k" * 100_000: 1}))
    assert answer.status_code == 400 and len(answer.content) < 3000


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_effort_of_openai_is_taken(http: httpx2.Client, effort: str) -> None:
    assert http.post(CHAT, json=said("Halo", reasoning_effort=effort)).status_code == 200
    answer = http.post("/v1/responses", json={"input": "Halo", "reasoning": {"effort": effort}})
    assert answer.status_code == 200 and answer.json()["reasoning"]["effort"] == effort


def test_more_effort_may_think_longer_and_leaves_room_for_an_answer() -> None:
    asked = [requested_sampling(ChatRequest.model_validate({"reasoning_effort": effort})) for effort in EFFORTS]
    shares = [one["thinking_share"] for one in asked]
    assert shares == sorted(set(shares)) and shares[0] == 0 and shares[-1] < 1


@pytest.mark.parametrize("more", [{}, {"logprobs": True, "top_logprobs": 2, "n": 2}])
def test_text_that_looks_like_logprobs_is_text(http: httpx2.Client, more: dict[str, Any]) -> None:
    text = '{"logprobs":{"content":[{}]},"finish_reason":"é"} \\"logprobs\\":{"content":['
    answer = http.post(CHAT, json=said(text, **more)).json()
    assert [choice["message"]["content"] for choice in answer["choices"]] == [text] * more.get("n", 1)
    for choice in answer["choices"]:
        assert choice["finish_reason"] == "stop"
        if more:
            assert "".join(entry["token"] for entry in choice["logprobs"]["content"]) == text
            assert all(len(entry["top_logprobs"]) == 2 for entry in choice["logprobs"]["content"])


def test_logprobs_of_an_answer_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch, http: httpx2.Client) -> None:
    lengths: list[int] = []
    loads = json.loads

    def measured(data: Any, **options: Any) -> Any:
        lengths.append(len(data))
        return loads(data, **options)

    monkeypatch.setattr("tis.openai_api.wire.chat_writer.json.loads", measured)
    response = http.post(CHAT, json=said("word " * 40, logprobs=True, top_logprobs=20))
    assert len(response.content) > 150_000 and max(lengths) < 3000
