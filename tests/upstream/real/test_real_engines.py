"""Real engines of other people behind this server: what clients get, also when they leave or an engine dies."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.test_status import until
from tests.upstream.gateway import client_of, gateway
from tests.upstream.real.engines import MODEL, PROGRAMS, EngineProcess, EngineProgram
from tests.upstream.real.text_model import write_text_model
from tests.upstream.test_several_upstreams import Reading

pytestmark = pytest.mark.slow

QUIET = {"chat_template_kwargs": {"enable_thinking": False}}
GREEDY = {"temperature": 0, "max_tokens": 100, **QUIET}
ENDS = {"2028": -100, "2030": -100}  # tokens that end an answer of the demo model
ENDLESS = said("Tell me a long story.", temperature=0, max_tokens=500, logit_bias=ENDS, **QUIET)
SECONDS = {"connect": 5, "first_token": 120, "next_token": 60, "answer": 240, "probe": 0.5}
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": PLACE},
}
SHAPE = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "shape", "schema": SHAPE, "strict": True}}


@dataclass
class RealPair:
    client: httpx2.Client
    engines: list[EngineProcess]

    @property
    def of(self) -> EngineProgram:
        return self.engines[0].of

    def chat(self, **body: Any) -> Any:
        answer = self.client.post(CHAT, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def num_running(self) -> float:
        return sum(one.num_running for one in self.engines)


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda one: one.name)
def front(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPair]:
    of: EngineProgram = request.param
    of.require()
    folder = write_text_model(tmp_path_factory.mktemp(of.kind), num_idle_layers=of.num_idle_layers)
    engines = [EngineProcess(of, folder) for _ in range(2)]
    try:
        for one in engines:
            one.wait_until_ready()
        urls = [f"{one.url}/v1" for one in engines]
        fields: dict[str, Any] = {"upstream_kind": of.kind, "upstream_model": MODEL, "upstream_seconds": SECONDS}
        with gateway(tmp_path_factory.mktemp("front"), *urls, **fields) as server, client_of(server) as client:
            client.timeout = 240
            yield RealPair(client, engines)
    finally:
        for one in engines:
            one.kill()


def test_an_answer_and_its_usage_are_those_of_the_engine(front: RealPair) -> None:
    body = said("Who are you?", **GREEDY)
    here, there = front.chat(**body), front.engines[0].ask(CHAT, body)
    assert "demo model" in here["choices"][0]["message"]["content"]
    assert here["choices"][0]["message"]["content"] == there["choices"][0]["message"]["content"].strip()
    assert here["choices"][0]["finish_reason"] == there["choices"][0]["finish_reason"] == "stop"
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [here["usage"][name] for name in names] == [there["usage"][name] for name in names]


def test_a_stream_comes_in_numbered_pieces(front: RealPair) -> None:
    body = said("Tell me a short story.", **GREEDY)
    answer = front.client.post(CHAT, json={**body, "stream": True, "stream_options": {"include_usage": True}})
    blocks = blocks_of(answer.text)
    assert [block.index for block in blocks] == list(range(len(blocks))) and len(blocks) > 20
    assert text_of(blocks) == front.chat(**body)["choices"][0]["message"]["content"]
    assert blocks[-1].data == "[DONE]" and blocks[-2].chunk["usage"]["completion_tokens"] > 20


def test_reasoning_is_apart_from_the_answer(front: RealPair) -> None:
    message = front.chat(**said("Berapa 12 + 7?", temperature=0, max_tokens=100))["choices"][0]["message"]
    assert message["reasoning_content"] and message["content"].strip() == "12 + 7 = 19."
    message = front.chat(**said("Berapa 12 + 7?", **GREEDY))["choices"][0]["message"]
    assert message["content"].strip() == "12 + 7 = 19." and not message.get("reasoning_content")


def test_a_tool_is_called_and_its_result_is_read(front: RealPair) -> None:
    body = said("What is the weather in Jakarta?", **GREEDY, tools=[WEATHER])
    choice = front.chat(**body)["choices"][0]
    [call] = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls" and call["id"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("get_weather", {"city": "Jakarta"})
    streamed = blocks_of(front.client.post(CHAT, json={**body, "stream": True}).text)
    deltas = [
        one["function"].get("arguments", "")
        for block in streamed[:-1]
        for one in block.chunk["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert json.loads("".join(deltas)) == {"city": "Jakarta"}
    result = {"role": "tool", "tool_call_id": call["id"], "content": '{"temperature": 31}'}
    asked = {**body, "messages": [*body["messages"], choice["message"], result]}
    assert front.chat(**asked)["choices"][0]["message"]["content"]


def test_a_forced_call_is_made(front: RealPair) -> None:
    named = {"type": "function", "function": {"name": "get_time"}}
    time = {
        "type": "function",
        "function": {"name": "get_time", "description": "The time in a city.", "parameters": PLACE},
    }
    asked = said("What is the weather in Jakarta?", **GREEDY, tools=[WEATHER, time])
    for choice, name in (("required", "get_weather"), (named, "get_time")):
        [call] = front.chat(**asked, tool_choice=choice)["choices"][0]["message"]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (name, {"city": "Jakarta"})


def test_json_follows_the_schema(front: RealPair) -> None:
    content = front.chat(**said("Halo", **GREEDY, response_format=FORM))["choices"][0]["message"]["content"]
    made = json.loads(content)
    assert isinstance(made["a"], bool) and made["b"] in ("x", "y") and len(made) == 2


def test_other_grammars_hold_or_are_refused_by_name(front: RealPair) -> None:
    for form, pattern in (
        ({"regex": "[ab]{3}"}, "[ab]{3}"),
        ({"choice": ["yes", "no"]}, "yes|no"),
        ({"grammar": 'root ::= "x" | "y"'}, "x|y"),
    ):
        answer = front.client.post(CHAT, json=said("Halo", **GREEDY, structured_outputs=form))
        if front.of.kind == "llama.cpp":
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsupported_parameter")
        else:
            assert re.fullmatch(pattern, answer.json()["choices"][0]["message"]["content"]), answer.text


def test_log_probabilities_are_those_of_the_tokens(front: RealPair) -> None:
    choice = front.chat(**said("Halo", **GREEDY, logprobs=True, top_logprobs=2))["choices"][0]
    entries = choice["logprobs"]["content"]
    assert "".join(one["token"] for one in entries).startswith(choice["message"]["content"])
    assert all(len(one["top_logprobs"]) == 2 and one["logprob"] <= 0 for one in entries)
    assert entries[0]["top_logprobs"][0]["token"] == entries[0]["token"]


def test_several_choices_stops_and_limits(front: RealPair) -> None:
    choices = front.chat(**said("Halo", n=2, temperature=1.5, seed=3, max_tokens=20, **QUIET))["choices"]
    assert [one["index"] for one in choices] == [0, 1] and all(one["message"]["content"] for one in choices)
    stopped = front.chat(**said("Count to ten.", **GREEDY, stop="5"))["choices"][0]
    assert (stopped["message"]["content"].strip(), stopped["finish_reason"]) == ("1, 2, 3, 4,", "stop")
    cut = front.chat(**said("Count to ten.", temperature=0, max_tokens=3, **QUIET))
    assert (cut["choices"][0]["finish_reason"], cut["usage"]["completion_tokens"]) == ("length", 3)


def test_sampling_parameters_reach_the_engine(front: RealPair) -> None:
    only = {"top_k": 1, "temperature": 1.8, "max_tokens": 40, "seed": 1, **QUIET}
    greedy = front.chat(**said("Who are you?", temperature=0, max_tokens=40, **QUIET))["choices"][0]["message"][
        "content"
    ]
    assert front.chat(**said("Who are you?", **only))["choices"][0]["message"]["content"] == greedy
    for more in ({"min_p": 0.1}, {"repetition_penalty": 1.2}, {"presence_penalty": 0.5}, {"frequency_penalty": 0.5}):
        assert front.chat(**said("Halo", top_p=0.9, **more, max_tokens=8))["usage"]["completion_tokens"] > 0
    without_end: list[dict[str, Any]] = [{"logit_bias": ENDS}, {"ignore_eos": True}]
    for fields in without_end:
        endless = front.chat(**said("Halo", temperature=0, max_tokens=60, **fields))
        assert endless["choices"][0]["finish_reason"] == "length"


def test_an_answer_that_has_begun_is_continued(front: RealPair) -> None:
    begun = {"role": "assistant", "content": "1, 2, 3,"}
    asked = {**said("Count to ten.", **GREEDY), "continue_final_message": True, "add_generation_prompt": False}
    asked["messages"] = [*asked["messages"], begun]
    assert front.chat(**asked)["choices"][0]["message"]["content"].strip() == "4, 5, 6, 7, 8, 9, 10."


def test_completions_are_made_of_raw_prompts(front: RealPair) -> None:
    prompt = "<|im_start|>user\nCount to ten.<|im_end|>\n<|im_start|>assistant\n"
    body = {"prompt": [prompt, prompt + "1, 2,"], **GREEDY}
    answer = front.client.post("/v1/completions", json=body)
    assert answer.status_code == 200, answer.text
    first, second = (one["text"].strip() for one in answer.json()["choices"])
    assert first == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10." and second == "3, 4, 5, 6, 7, 8, 9, 10."
    scored = front.client.post("/v1/completions", json={**body, "prompt": prompt, "logprobs": 2}).json()
    lists = scored["choices"][0]["logprobs"]
    assert "".join(lists["tokens"]).startswith(scored["choices"][0]["text"])
    assert len(lists["tokens"]) == len(lists["token_logprobs"]) == len(lists["top_logprobs"])


def test_other_dialects_are_answered(front: RealPair) -> None:
    asked = {"input": "Who are you?", "max_output_tokens": 100, **QUIET}
    response = front.client.post("/v1/responses", json=asked).json()
    assert "demo model" in response["output"][-1]["content"][0]["text"]
    messages = [{"role": "user", "content": "Who are you?"}]
    asked = {"model": "far", "max_tokens": 100, "messages": messages, "thinking": {"type": "disabled"}}
    message = front.client.post("/v1/messages", json=asked).json()
    assert "demo model" in message["content"][-1]["text"] and message["stop_reason"] == "end_turn"
    asked = {"model": "far", "messages": messages, "stream": False, "think": False}
    told = front.client.post("/ollama/api/chat", json=asked).json()
    assert "demo model" in told["message"]["content"] and told["eval_count"] > 10


def test_what_the_engine_refuses_is_a_400_with_its_reason(front: RealPair) -> None:
    answer = front.client.post(CHAT, json=said("word " * 30_000, max_tokens=5))
    assert answer.status_code == 400, answer.text
    assert "context" in answer.json()["error"]["message"]
    wrong = said("Halo", response_format={**FORM, "json_schema": {"name": "a", "schema": {"type": "no such type"}}})
    assert front.client.post(CHAT, json=wrong).status_code == 400


def test_its_prompts_are_counted_or_estimated(front: RealPair) -> None:
    counted = front.client.post(f"{CHAT}/input_tokens", json=said("Who are you?", **QUIET)).json()
    prompt_tokens = front.chat(**said("Who are you?", **GREEDY))["usage"]["prompt_tokens"]
    if counted.get("is_estimate"):
        assert counted["input_tokens"] > 0
    else:
        assert counted["input_tokens"] == prompt_tokens


def test_its_context_is_known(front: RealPair) -> None:
    until(lambda: front.client.get("/v1/models").json()["data"][0].get("max_model_len") == 4096)


def test_who_leaves_or_cancels_ends_the_work_of_the_engine(front: RealPair) -> None:
    reading = Reading(front.client, {**ENDLESS, "session_id": "cancelled"})
    reading.until_blocks(5)
    assert front.num_running == 1
    assert front.client.post("/v1/cancel/cancelled").status_code == 200
    until(lambda: front.num_running == 0)
    last = blocks_of(reading.rest())[-2].chunk["choices"][0]
    assert last["finish_reason"] == "stop" and last["cancelled"]


def test_an_answer_goes_on_when_its_engine_is_killed(front: RealPair) -> None:
    whole = front.engines[0].ask(CHAT, ENDLESS)["choices"][0]["message"]
    reading = Reading(front.client, {**ENDLESS, "session_id": "killed"})
    reading.until_blocks(1)
    until(lambda: front.num_running == 1)  # vLLM counts a while behind its first token
    [serving] = [one for one in front.engines if one.num_running]
    reading.until_blocks(30)
    serving.kill()
    blocks = blocks_of(reading.rest())
    assert [block.index for block in blocks] == list(range(len(blocks))) and blocks[-1].data == "[DONE]"
    made = text_of(blocks)
    assert len(made) > 500 and made[:500] == whole["content"].strip()[:500]
    page = front.client.get("/metrics").text
    assert 'tis_upstream_continued_total{model_name="far"}' in page  # it is not there before the first one
    down = f'tis_upstream_up{{model_name="far",upstream="{front.engines.index(serving)}"}} 0.0'
    until(lambda: down in front.client.get("/metrics").text)
    assert "demo model" in front.chat(**said("Who are you?", **GREEDY))["choices"][0]["message"]["content"]
    [other] = [one for one in front.engines if one is not serving]
    other.kill()
    until(lambda: front.client.get("/ready").status_code == 503)
    assert front.client.post(CHAT, json=said("Halo")).status_code == 503
    serving.start()
    serving.wait_until_ready()
    until(lambda: front.client.get("/ready").status_code == 200)
    assert "demo model" in front.chat(**said("Who are you?", **GREEDY))["choices"][0]["message"]["content"]
