"""POST /api/chat and /api/generate: lines, whole answers, tools, thinking, sessions, and what is refused."""

import base64
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from scripts.demo_model.checks import GET_WEATHER
from tests.openai_api.media_requests import picture_file
from tests.openai_api.test_chat import said
from tests.openai_api.test_tools import CALL
from tests.serving import Served, served, settings_with
from tis.ollama_api.wire import chat_fields

CHAT, GENERATE = "/api/chat", "/api/generate"


def asking(text: str, **more: Any) -> dict[str, Any]:
    return said(text, model="echo", **more)


def lines_of(http: httpx2.Client, body: dict[str, Any], path: str = CHAT) -> list[dict[str, Any]]:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.text.endswith("\n") and "\n\n" not in answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def whole(http: httpx2.Client, body: dict[str, Any], path: str = CHAT) -> dict[str, Any]:
    answer = http.post(path, json={**body, "stream": False})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def error_of(answer: httpx2.Response, status: int = 400) -> str:
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    return str(answer.json()["error"])


def test_a_stream_is_a_line_for_each_piece_and_one_for_the_end(http: httpx2.Client) -> None:
    *pieces, last = lines_of(http, asking("Halo 你好"))
    assert "".join(line["message"]["content"] for line in pieces) == "Halo 你好"
    for line in pieces:
        assert set(line) == {"model", "created_at", "message", "done"} and line["done"] is False
        assert line["model"] == "echo" and line["message"]["role"] == "assistant"
    assert (last["done"], last["done_reason"], last["message"]["content"]) == (True, "stop", "")
    assert (last["prompt_eval_count"], last["eval_count"]) == (7, 7)
    parts = [last[f"{name}_duration"] for name in ("load", "prompt_eval", "eval")]
    assert all(isinstance(one, int) and one >= 0 for one in parts) and sum(parts) <= last["total_duration"]


def test_a_whole_answer_is_the_lines_folded(http: httpx2.Client) -> None:
    answer = whole(http, asking("Halo 你好"))
    assert answer["message"] == {"role": "assistant", "content": "Halo 你好"}
    assert answer["done"] is True and answer["done_reason"] == "stop" and answer["eval_count"] == 7


def test_a_header_that_is_wrong_is_named(http: httpx2.Client) -> None:
    for name in ("a b", "x" * 129):
        answer = http.post(CHAT, json=asking("Halo"), headers={"X-Session-Id": name})
        assert error_of(answer).startswith("X-Session-Id: ")


def test_generate_has_the_text_in_response(http: httpx2.Client) -> None:
    body = {"model": "echo", "prompt": "Halo", "system": "Be brief."}
    *pieces, last = lines_of(http, body, GENERATE)
    assert "".join(line["response"] for line in pieces) == "Halo" and "message" not in pieces[0]
    assert (last["response"], last["done_reason"], last["prompt_eval_count"]) == ("", "stop", 4)
    answer = whole(http, body, GENERATE)
    assert answer["response"] == "Halo" and answer["done"] is True


@pytest.mark.parametrize("path", [CHAT, "/ollama/api/chat", "/ollama/api/chat/", "/api/chat/"])
def test_the_paths_below_ollama_are_the_same(http: httpx2.Client, path: str) -> None:
    assert whole(http, asking("Halo"), path)["message"]["content"] == "Halo"


def test_options_are_followed_and_others_are_named(http: httpx2.Client) -> None:
    options = {"num_predict": 2, "stop": ["x"], "mirostat": 1, "num_ctx": 4096, "seed": -1, "top_k": 40.0}
    answer = http.post(CHAT, json=asking("Halo", options=options, keep_alive="5m", stream=False))
    assert answer.json()["message"]["content"] == "Ha" and answer.json()["done_reason"] == "length"
    assert answer.headers["x-ignored-parameters"] == "options.mirostat, keep_alive"
    assert whole(http, asking("one, two", options={"stop": ", t"}))["message"]["content"] == "one"
    assert whole(http, asking("Halo", options={"num_predict": -1}))["done_reason"] == "stop"
    assert whole(http, asking("Halo", options={"num_predict": 10**9}))["done_reason"] == "stop"
    many = [str(number) for number in range(16)]
    assert whole(http, asking("abc", options={"stop": many}))["message"]["content"] == "abc"


def test_logprobs_have_an_entry_for_every_token(http: httpx2.Client) -> None:
    body = asking("ab", logprobs=True, top_logprobs=2)
    entries = [entry for line in lines_of(http, body) for entry in line.get("logprobs", ())]
    assert [entry["token"] for entry in entries] == ["a", "b"]
    assert len(entries[0]["top_logprobs"]) == 2 and entries[0]["bytes"] == [97]
    assert whole(http, body)["logprobs"] == entries
    assert whole(http, {"model": "echo", "prompt": "ab", "logprobs": True}, GENERATE)["logprobs"][1]["token"] == "b"


def test_thinking_is_a_field_of_its_own(hermes: httpx2.Client) -> None:
    text = "<think>Hm.</think>\n\nSo."
    lines = lines_of(hermes, asking(text))
    assert "".join(line["message"].get("thinking", "") for line in lines) == "Hm."
    assert "".join(line["message"]["content"] for line in lines) == "So."
    message = whole(hermes, asking(text, think=True))["message"]
    assert message == {"role": "assistant", "content": "So.", "thinking": "Hm."}
    assert whole(hermes, asking(text, think="high"))["message"]["thinking"] == "Hm."
    answer = whole(hermes, {"model": "echo", "prompt": text}, GENERATE)
    assert (answer["response"], answer["thinking"]) == ("So.", "Hm.")


def test_thinking_that_is_not_wanted_is_not_sent(hermes: httpx2.Client) -> None:
    answer = whole(hermes, asking("<think>Hm.</think>So.", think=False))
    assert "thinking" not in answer["message"]


def test_a_raw_prompt_is_answered_as_it_is(hermes: httpx2.Client) -> None:
    """No part of it is reasoning or a call. Its own session is not that of the prompt with the template."""
    text = f"<think>Hm.</think>\n\n{CALL}"
    body = {"model": "echo", "prompt": text, "raw": True, "think": True, "options": {"stop": ["</tool"]}}
    *pieces, last = lines_of(hermes, body, GENERATE)
    said_back = text.partition("</tool")[0]
    assert "".join(line["response"] for line in pieces) == said_back and not any("thinking" in line for line in pieces)
    assert (last["done_reason"], last["prompt_eval_count"]) == ("stop", len(text))
    answer = hermes.post(GENERATE, json={**body, "stream": False}, headers={"X-Session-Id": "raw"})
    assert answer.json()["response"] == said_back and answer.headers["x-ignored-parameters"] == "think"
    parsed = hermes.post(GENERATE, json={**body, "raw": False, "stream": False}, headers={"X-Session-Id": "raw"})
    assert parsed.json()["thinking"] == "Hm."


def test_a_model_that_does_not_think_is_not_asked_to(http: httpx2.Client) -> None:
    assert error_of(http.post(CHAT, json=asking("Halo", think=True))) == '"echo" does not support thinking'
    assert whole(http, asking("Halo", think=False))["message"]["content"] == "Halo"
    assert "think must be" in error_of(http.post(CHAT, json=asking("Halo", think="loudly")))


def test_a_call_comes_whole_in_one_line(hermes: httpx2.Client) -> None:
    lines = lines_of(hermes, asking(f"So.\n{CALL}\n{CALL}", tools=[GET_WEATHER]))
    called = [line for line in lines if line["message"].get("tool_calls")]
    assert len(called) == 2
    for number, line in enumerate(called):
        [call] = line["message"]["tool_calls"]
        assert call["id"].startswith("call_") and not line["done"]
        assert call["function"] == {"index": number, "name": "get_weather", "arguments": {"city": "Bandung"}}
    assert lines[-1]["done_reason"] == "stop"
    message = whole(hermes, asking(f"So.\n{CALL}\n{CALL}", tools=[GET_WEATHER]))["message"]
    assert [call["function"]["index"] for call in message["tool_calls"]] == [0, 1]


@pytest.mark.parametrize(
    ("written", "sent"),
    [(r'{"city": "a\ud83d é"}', {"city": "a\ud83d é"}), ('{"city": 1e999}', {"city": "1e999"})],
)
def test_arguments_that_not_every_encoding_has_are_sent(hermes: httpx2.Client, written: str, sent: Any) -> None:
    text = f'<tool_call>\n{{"name": "now", "arguments": {written}}}\n</tool_call>'
    now = {"type": "function", "function": {"name": "now"}}
    [call] = whole(hermes, asking(text, tools=[now]))["message"]["tool_calls"]
    assert call["function"]["arguments"] == sent
    [line, *_] = [one for one in lines_of(hermes, asking(text, tools=[now])) if one["message"].get("tool_calls")]
    assert line["message"]["tool_calls"][0]["function"]["arguments"] == sent


@pytest.mark.parametrize("name", ["weather.now", "n" * 128])
def test_names_of_tools_may_have_dots_and_be_long(hermes: httpx2.Client, name: str) -> None:
    tool = {"type": "function", "function": {"name": name, "_fields_set": ["x"], "parameters": {"type": "object"}}}
    text = f'<tool_call>\n{{"name": "{name}", "arguments": {{"a": 1}}}}\n</tool_call>'
    [call] = whole(hermes, asking(text, tools=[tool]))["message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == (name, {"a": 1})


@pytest.mark.parametrize("name", ["", "a b", "n" * 129, "wetter/é"])
def test_other_names_are_refused_by_their_place(hermes: httpx2.Client, name: str) -> None:
    tools = [{"type": "function", "function": {"name": one}} for one in ("f", name)]
    assert error_of(hermes.post(CHAT, json=asking("Halo", tools=tools))).startswith("tools.1.function.name must be ")


def test_many_calls_and_images_are_validated_in_slices(http: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}] * 500}
    validated: list[int] = []
    validate = chat_fields._MESSAGES.validate_python

    def measured(some: list[Any]) -> Any:
        validated.append(len(some))
        return validate(some)

    monkeypatch.setattr(chat_fields, "_MESSAGES", SimpleNamespace(validate_python=measured))
    body = {"model": "echo", "messages": [message] * 11 + [{"role": "user", "content": "Halo"}]}
    assert whole(http, body)["message"]["content"] == "Halo"
    assert validated == [5, 5, 2]


def test_a_call_that_is_cut_is_not_sent(hermes: httpx2.Client) -> None:
    answer = whole(hermes, asking(CALL, tools=[GET_WEATHER], options={"num_predict": 60}))
    assert answer["done_reason"] == "length" and "tool_calls" not in answer["message"]


def test_results_of_calls_find_their_calls(http: httpx2.Client) -> None:
    call = {"function": {"name": "get_weather", "arguments": {"city": "Bandung"}}}
    history = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "get_weather", "content": "rain"},
    ]
    answer = whole(http, {"model": "echo", "messages": history})
    assert answer["message"]["content"] == "rain"


def test_an_empty_prompt_loads_and_unloads(http: httpx2.Client) -> None:
    loaded = http.post(CHAT, json={"model": "echo", "messages": []}).json()
    assert (loaded["done"], loaded["done_reason"], loaded["message"]["content"]) == (True, "load", "")
    assert [one["model"] for one in http.get("/api/ps").json()["models"]] == ["echo:latest"]
    unloaded = http.post(GENERATE, json={"model": "echo", "keep_alive": 0}).json()
    assert (unloaded["done_reason"], unloaded["response"]) == ("unload", "")
    assert http.get("/api/ps").json() == {"models": []}


def test_a_session_gives_the_same_answer_again(http: httpx2.Client) -> None:
    named = {"X-Session-Id": "ollama-again"}
    first = http.post(CHAT, json=asking("Halo"), headers=named)
    again = http.post(CHAT, json=asking("Halo"), headers=named)
    assert first.headers["x-session-id"] == "ollama-again" and again.content == first.content
    followed = http.get("/v1/stream/ollama-again")
    data = [line.removeprefix("data: ") for line in followed.text.splitlines() if line.startswith("data: ")]
    assert data == first.text.splitlines()
    rest = http.get("/v1/stream/ollama-again", headers={"Last-Event-ID": "ollama-again:1"})
    assert f"data: {data[1]}" not in rest.text and f"data: {data[2]}" in rest.text
    message = http.post(CHAT, json=asking("Halo", stream=False), headers=named).json()["message"]
    assert message["content"] == "Halo"
    other = http.post(CHAT, json=asking("Ada"), headers=named)
    assert json.loads(other.text.splitlines()[-1])["eval_count"] == 3


def test_a_stream_is_cancelled(slow_http: httpx2.Client) -> None:
    with slow_http.stream("POST", CHAT, json=asking("Halo " * 40)) as answer:
        lines = answer.iter_lines()
        next(lines)
        session_id = answer.headers["x-session-id"]
        assert slow_http.post(f"/v1/cancel/{session_id}").json()["status"] == "cancelled"
        *_, last = (json.loads(line) for line in lines)
    assert (last["done"], last["done_reason"], last["cancelled"]) == (True, "stop", True)


def test_a_failure_is_a_line_or_a_status() -> None:
    settings = settings_with(model_repo_id="echo?fail_after=3")
    with served(settings) as server, httpx2.Client(base_url=server.url, timeout=30) as http:
        lines = lines_of(http, asking("Halo Ada"))
        assert list(lines[-1]) == ["error"] and "fails here" in lines[-1]["error"]
        assert "fails here" in error_of(http.post(CHAT, json=asking("Halo Ada", stream=False)), 500)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (CHAT, {"messages": []}, 400, "model is required"),
        (CHAT, asking("Halo", options={"temperature": 9}), 400, "options.temperature must be at least 0"),
        (CHAT, asking("Halo", options={"num_predict": "x"}), 400, "options.num_predict: "),
        (CHAT, asking("Halo", options={"repeat_penalty": 99}), 400, "options.repeat_penalty must be"),
        (CHAT, asking("Halo", format="yaml"), 400, "format: 'yaml' is neither"),
        (CHAT, asking("Halo", stream="yes"), 400, "stream: "),
        (CHAT, {"model": "echo", "messages": [{"role": "robot", "content": "x"}]}, 400, "messages.0.role: "),
        (CHAT, asking("Halo", tools=[{"type": "function", "function": {"name": "a b"}}]), 400, "tools.0.function.name"),
        (GENERATE, {"model": "echo", "prompt": "x", "suffix": "y"}, 400, "suffix is not supported"),
        (GENERATE, {"model": "echo", "prompt": "x", "template": "y"}, 400, "template is not supported"),
        (
            GENERATE,
            {"model": "echo", "prompt": "x", "raw": True, "system": "y"},
            400,
            "system is not supported with raw",
        ),
        (GENERATE, {"model": "echo", "prompt": "x", "raw": True, "images": ["aGFsbw=="]}, 400, "images is not support"),
        (GENERATE, {"model": "echo", "prompt": "x", "images": ["aGFsbw=="]}, 400, "images.0: model does not accept"),
    ],
)
def test_a_refusal_names_the_field_of_ollama(
    http: httpx2.Client, path: str, body: dict[str, Any], status: int, message: str
) -> None:
    assert error_of(http.post(path, json=body), status).startswith(message)


def test_a_body_without_a_type_is_json_unless_a_page_sends_it(http: httpx2.Client) -> None:
    """`curl -d` names the type of a form."""
    body, form = json.dumps(asking("Halo", stream=False)), "application/x-www-form-urlencoded"
    assert http.post(CHAT, content=body, headers={"Content-Type": form}).json()["message"]["content"] == "Halo"
    page = {"Content-Type": "text/plain", "Origin": "https://evil.example"}
    error_of(http.post(CHAT, content=body, headers=page))


class TestOllamaOnTheDemoModel:
    pytestmark = pytest.mark.model

    @pytest.fixture
    def demo(self, demo_server: Served) -> Iterator[httpx2.Client]:
        with httpx2.Client(base_url=demo_server.url, timeout=120) as client:
            yield client

    def test_the_text_is_that_of_the_other_api(self, demo: httpx2.Client) -> None:
        mine = {"temperature": 0, "num_predict": 24}
        answer = whole(demo, said("Tell me a short story.", model="demo", options=mine))
        other = demo.post(
            "/v1/chat/completions", json=said("Tell me a short story.", temperature=0, max_tokens=24)
        ).json()
        assert answer["message"]["content"] == other["choices"][0]["message"]["content"]
        assert answer["prompt_eval_count"] == other["usage"]["prompt_tokens"]
        assert answer["eval_count"] == other["usage"]["completion_tokens"]

    def test_a_raw_answer_is_that_of_completions(self, demo: httpx2.Client) -> None:
        prompt = "<|im_start|>user\nHalo!<|im_end|>\n<|im_start|>assistant\n"
        body = {"model": "demo", "prompt": prompt, "raw": True, "options": {"temperature": 0, "num_predict": 24}}
        answer = whole(demo, body, GENERATE)
        other = demo.post("/v1/completions", json={"prompt": prompt, "temperature": 0, "max_tokens": 24}).json()
        assert answer["response"] == other["choices"][0]["text"]
        assert answer["eval_count"] == other["usage"]["completion_tokens"] > 8
        assert answer["prompt_eval_count"] == other["usage"]["prompt_tokens"] < len(prompt) / 2
        held = whole(demo, {**body, "format": {"enum": ["ya", "tidak"]}}, GENERATE)
        assert held["response"] in ('"ya"', '"tidak"')

    @pytest.mark.parametrize("path", [CHAT, GENERATE])
    def test_a_format_is_enforced(self, demo: httpx2.Client, path: str) -> None:
        schema = {
            "type": "object",
            "properties": {"age": {"type": "integer"}, "free": {"type": "boolean"}},
            "required": ["age", "free"],
            "additionalProperties": False,
        }
        asked = said("Sari is 22 and free.") if path == CHAT else {"prompt": "Sari is 22 and free."}
        options = {"temperature": 1, "seed": 5, "num_predict": 200}
        answer = whole(demo, {"model": "demo", **asked, "format": schema, "options": options}, path)
        text = answer["message"]["content"] if path == CHAT else answer["response"]
        found = json.loads(text)
        assert isinstance(found["age"], int) and isinstance(found["free"], bool) and len(found) == 2
        loose = whole(demo, {"model": "demo", **asked, "format": "json", "options": options}, path)
        text = loose["message"]["content"] if path == CHAT else loose["response"]
        assert loose["done_reason"] == "length" or isinstance(json.loads(text), dict)

    def test_pictures_are_seen(self, demo: httpx2.Client) -> None:
        """128 x 128 pixels are 4 x 4 tokens, with one before and one behind them. Large ones are no text."""
        large = picture_file("red", (1024, 1024), "BMP")
        small = [base64.b64encode(picture_file(colour)).decode() for colour in ("red", "blue")]
        without = whole(demo, said("What is this?", model="demo", options={"num_predict": 1}))["prompt_eval_count"]
        for images, num_tokens in ((small[:1], 18), (small, 36)):
            message = {"role": "user", "content": "What is this?", "images": images}
            answer = whole(demo, {"model": "demo", "messages": [message], "options": {"num_predict": 1}})
            assert answer["prompt_eval_count"] == without + num_tokens
        many = [base64.b64encode(large).decode()] * 3
        answer = whole(demo, {"model": "demo", "prompt": "?", "images": many, "options": {"num_predict": 1}}, GENERATE)
        assert answer["prompt_eval_count"] > without
        broken = {"role": "user", "content": "x", "images": [small[0], "%%%"]}
        refused = demo.post(CHAT, json={"model": "demo", "messages": [broken]})
        assert error_of(refused).startswith("messages.0.images.1")
