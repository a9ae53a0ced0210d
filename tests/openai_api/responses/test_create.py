"""POST /v1/responses, answered whole and streamed."""

from typing import Any

import httpx2
import pytest

from tests.openai_api.responses.event_order import check_events
from tests.openai_api.responses.response_requests import RESPONSES, create, refused, stream, text_of
from tests.serving import served, settings_with

# openresponses-types marks every one as required.
FIELDS = """id object created_at completed_at status incomplete_details model previous_response_id instructions output
error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs
temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier
prompt_cache_key""".split()


def comparable(response: dict[str, Any]) -> str:
    """Without what differs between two answers to one request."""
    plain = {name: value for name, value in response.items() if name not in ("created_at", "completed_at")}
    return str(plain).replace(response["id"].removeprefix("resp_"), "")


def test_every_field_is_there(http: httpx2.Client) -> None:
    response = create(http, "Halo", metadata={"a": "b"}, user="me", max_output_tokens=50, temperature=0.5)
    assert set(FIELDS) <= set(response)
    assert response["id"].startswith("resp_") and response["object"] == "response"
    assert isinstance(response["created_at"], int) and isinstance(response["completed_at"], int)
    assert (response["status"], response["model"], response["store"]) == ("completed", "echo", True)
    assert (response["metadata"], response["user"], response["max_output_tokens"]) == ({"a": "b"}, "me", 50)
    assert response["temperature"] == 0.5
    [item] = response["output"]
    assert item["id"].startswith("msg_") and item["role"] == "assistant" and item["status"] == "completed"
    assert item["content"] == [{"type": "output_text", "text": "Halo", "annotations": [], "logprobs": []}]
    assert response["usage"] == {
        "input_tokens": 4,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    }


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"max_output_tokens": 3},
        {"include": ["message.output_text.logprobs"], "top_logprobs": 2, "stop": [" tiga"]},
        {"instructions": "Jawab singkat.", "metadata": {"a": "b"}, "reasoning": {"effort": "low"}},
    ],
    ids=str,
)
def test_streamed_and_whole_are_the_same_object(http: httpx2.Client, more: dict[str, Any]) -> None:
    streamed = check_events(stream(http, "satu 😀 dua 你好 tiga\u2028.", **more))
    assert comparable(streamed) == comparable(create(http, "satu 😀 dua 你好 tiga\u2028.", **more))


def test_the_stream_of_an_answer_without_a_word_has_an_empty_message(http: httpx2.Client) -> None:
    response = check_events(stream(http, "zzz", stop=["z"]))
    assert text_of(response) == "" and response["status"] == "completed"


def test_a_response_that_reaches_max_tokens_is_incomplete(http: httpx2.Client) -> None:
    response = check_events(stream(http, "Halo", max_output_tokens=2))
    assert (response["status"], text_of(response), response["completed_at"]) == ("incomplete", "Ha", None)
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"


def test_logprobs_are_in_each_delta_and_in_the_item(http: httpx2.Client) -> None:
    response = check_events(stream(http, "ab", include=["message.output_text.logprobs"]))
    [part] = response["output"][0]["content"]
    assert [one["token"] for one in part["logprobs"]] == ["a", "b"]
    assert part["logprobs"][0] == {"token": "a", "logprob": 0.0, "bytes": [97], "top_logprobs": []}


def test_items_of_every_kind_are_input(http: httpx2.Client) -> None:
    items = [
        {"role": "system", "content": "Be kind."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is it like?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": None, "status": None},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "id": "fc_1", "status": None},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {"id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}]},
        {"role": "developer", "content": "Shorter."},
        {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "input_text", "text": "now?"}]},
    ]
    assert text_of(create(http, items)) == "And now?"
    assert text_of(create(http, items[:5])) == "sunny"


def test_null_is_absent_and_unknown_fields_are_ignored(http: httpx2.Client) -> None:
    nothing = dict.fromkeys(
        "instructions previous_response_id conversation store background stream include metadata tools tool_choice "
        "text reasoning truncation max_output_tokens temperature top_p top_logprobs user prompt".split()
    )
    assert text_of(create(http, "Halo", **nothing, made_up={"by": "us"})) == "Halo"


def test_a_function_is_returned_with_all_its_fields(http: httpx2.Client) -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [{"type": "function", "name": "look", "parameters": parameters}]
    response = create(http, "Halo", tools=tools, tool_choice="auto", parallel_tool_calls=False)
    assert response["tools"] == [
        {"type": "function", "name": "look", "description": None, "parameters": parameters, "strict": None}
    ]
    assert (response["tool_choice"], response["parallel_tool_calls"]) == ("auto", False)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input.0.role"),
        ({"input": [{"type": "hologram"}]}, "input.0.type"),
        ({"input": [{"role": "user"}]}, "input.0.content"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input.0.content.0.type"),
        ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input.0.content.0.input_audio.data"),
        ({"input": [{"role": "user", "content": [{"type": "hologram"}]}]}, "input.0.content.0.type"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input.0.content.0.text"),
        ({"input": [{"role": "user", "content": [{"text": "x"}]}]}, "input.0.content.0.type"),
        ({"input": [{"role": "user", "content": ["bare"]}]}, "input.0.content.0"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input.0.content.0"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input.0.content.0"),
        ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input.0.call_id"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input.0.call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input.0.output"),
        ({"temperature": 3}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": 32769}, "max_output_tokens"),
        ({"include": ["everything"]}, "include"),
        ({"metadata": {"k" * 65: "v"}}, "metadata"),
        ({"metadata": {"k": "v" * 513}}, "metadata"),
        ({"metadata": {str(number): "v" for number in range(17)}}, "metadata"),
        ({"metadata": {"k": 1}}, "metadata"),
        ({"truncation": "some"}, "truncation"),
        ({"background": True, "store": False}, "background"),
        ({"previous_response_id": "resp_" + "0" * 32, "conversation": "conv_" + "0" * 32}, "previous_response_id"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "tools.0.server_url"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [{"type": "function"}]}, "tools.0.name"),
        ({"tools": [{"type": "function", "name": "no spaces please"}]}, "tools.0.name"),
        ({"tools": [{"type": "function", "name": "f"}] * 2}, "tools.1.name"),
        ({"tools": [{"type": "function", "name": "f", "parameters": 5}]}, "tools.0.parameters"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),  # echo cannot be held to a grammar
        ({"tool_choice": "required"}, "tool_choice"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"stream": "yes"}, "stream"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
    ],
    ids=str,
)
def test_an_invalid_field_is_a_400_that_names_it(http: httpx2.Client, change: dict[str, Any], param: str) -> None:
    error = refused(http, {"model": "m", "input": "Halo", **change})
    assert error["type"] == "invalid_request_error" and error["message"]
    assert str(error["param"]).startswith(param), error


def test_error_params_do_not_name_fields_of_chat(http: httpx2.Client) -> None:
    picture = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,eA=="}]}]
    error = refused(http, {"input": [{"role": "user", "content": "Halo"}, *picture], "instructions": "x"})
    assert error["param"] == "input.1.content.0"
    assert error["message"] == "input.1.content.0: model does not accept images."


def test_a_prompt_over_the_context_names_the_input(http: httpx2.Client) -> None:
    error = refused(http, {"input": "x" * 32768, "stream": True})
    assert (error["code"], error["param"]) == ("context_length_exceeded", "input")
    assert error["message"].startswith("This model's maximum context length is 32768 tokens. However, you requested")


def test_truncation_drops_the_oldest_items(http: httpx2.Client) -> None:
    items = [{"role": "user", "content": "x" * 20_000} for _ in range(3)] + [{"role": "user", "content": "Halo"}]
    assert refused(http, {"input": [*items[:2], {"role": "user", "content": "x" * 33_000}]})["param"] == "input"
    response = create(http, items, truncation="auto")
    assert (text_of(response), response["truncation"]) == ("Halo", "auto")


def test_half_a_surrogate_pair_is_a_400(http: httpx2.Client) -> None:
    for body in (b'{"input":"\\ud800"}', b'{"input":"x","metadata":{"a":"\\udc00"}}'):
        answer = http.post(RESPONSES, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
    assert text_of(create(http, "\U0001f600")) == "\U0001f600"


def nested(depth: int) -> bytes:
    """A request whose tool has parameters so deep."""
    head = b'{"input":"x","tools":[{"type":"function","name":"f","parameters":{"a":'
    return head + b"[" * depth + b"]" * depth + b"}}]}"


def test_deep_nesting_is_accepted_and_returned(http: httpx2.Client) -> None:
    answer = http.post(RESPONSES, content=nested(150), headers={"Content-Type": "application/json"})
    assert (answer.status_code, text_of(answer.json())) == (200, "x")
    assert http.get(f"{RESPONSES}/{answer.json()['id']}").json() == answer.json()


def test_nesting_deeper_than_the_limit_is_refused(http: httpx2.Client) -> None:
    answer = http.post(RESPONSES, content=nested(900), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "nested_too_deep")


def test_an_unknown_model_is_a_404(http: httpx2.Client) -> None:
    with served(settings_with(strict_model="1")) as strict, httpx2.Client(base_url=strict.url) as client:
        assert refused(client, {"model": "gpt-9", "input": "Halo"}, 404)["code"] == "model_not_found"


def test_every_reader_gets_a_failure_in_the_middle() -> None:
    with (
        served(settings_with(model_repo_id="echo?fail_after=3")) as failing,
        httpx2.Client(base_url=failing.url, timeout=30) as client,
    ):
        response = check_events(stream(client, "Halo"))
        assert response["status"] == "failed" and "fails here" in response["error"]["message"]
        assert (response["error"]["code"], response["completed_at"]) == ("server_error", None)
        assert (text_of(response), response["output"][0]["status"]) == ("Hal", "incomplete")
        assert client.get(f"{RESPONSES}/{response['id']}").json() == response
        assert refused(client, {"input": "Halo"}, 500)["code"] == "generation_failed"
