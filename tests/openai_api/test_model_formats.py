"""Models that write calls as GLM, DeepSeek and gpt-oss do, from a folder to the official client.

Their weights are random, so what they write in the format of their family, the grammar made them write.
"""

import json
import re
import string
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import transformers
from openai import LengthFinishReasonError, OpenAI

from tests.engine.batching.tiny import new_model_of
from tests.engine.text.model_formats import FORMATS, plain_tokenizer
from tests.serving import Served, served, settings_with
from tis.engine.text.markers import CALL_MARKERS, ToolFormat

pytestmark = [pytest.mark.slow, pytest.mark.model]

BOOK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "class": {"enum": ["first", "second"]},
        "seats": {"type": "integer", "minimum": 1, "maximum": 99},
        "days": {"type": "array", "items": {"enum": [1, 2, 3]}, "maxItems": 3},
        "exact": {"type": "boolean"},
        "note": {"type": "string"},
    },
    "required": ["class", "seats", "days", "exact"],
    "additionalProperties": False,
}
TEXT_WITH_PATTERN: dict[str, Any] = {
    "type": "object",
    "properties": {"nik": {"type": "string", "pattern": "^[0-9]{4}$"}},
    "required": ["nik"],
    "additionalProperties": False,
}
SCHEMAS = {"book": BOOK, "check": TEXT_WITH_PATTERN, "now": {}}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()
]
PLATE = r"[A-Z]{1,2} \"[0-9]{4}\"\n"
MESSAGES: list[Any] = [{"role": "user", "content": "Halo"}]
# Random weights may reason or write a text until the end: every token of it is computed.
MAX_TOKENS = 200
ANSWER = {
    "type": "object",
    "properties": {"city": {"enum": ["Bandung", "Medan"]}, "days": {"enum": [1, 2]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", params=FORMATS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = make_folder(tmp_path_factory.mktemp(request.param), request.param)
    with served(settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)) as running:
        yield running


def make_folder(folder: Path, tool_format: ToolFormat) -> Path:
    tokenizer = plain_tokenizer(tool_format)
    tokenizer.save_pretrained(folder)
    eos_ids = [tokenizer.convert_tokens_to_ids(one) for one in FORMATS[tool_format].eos]
    model = new_model_of("Qwen3", head_dim=32, vocab_size=len(tokenizer), max_position_embeddings=4096)
    model.generation_config = transformers.GenerationConfig(pad_token_id=0, eos_token_id=eos_ids)
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=120, max_retries=0)


def asked(client: OpenAI, seed: int, **more: Any) -> Any:
    [model] = client.models.list().data
    stream = client.chat.completions.stream(
        model=model.id,
        messages=MESSAGES,
        seed=seed,
        max_tokens=2 * MAX_TOKENS,
        extra_body={"thinking_token_budget": 0},
        **more,
    )
    with stream as events:
        for _ in events:
            pass
        [choice] = events.get_final_completion().choices
    return choice


def for_seeds(num_seeds: int, ask: Callable[[int], Any]) -> list[Any]:
    """Asks with all seeds at once: the server computes their answers in one batch."""
    with ThreadPoolExecutor(num_seeds) as threads:
        return [*threads.map(ask, range(num_seeds))]


def check_call(call: Any) -> str:
    arguments = json.loads(call.function.arguments)
    jsonschema.validate(arguments, SCHEMAS[call.function.name])
    return str(call.function.name)


def test_forced_calls_are_calls_with_valid_arguments(client: OpenAI) -> None:
    def ask(seed: int) -> Any:
        try:
            return asked(client, seed, tools=TOOLS, tool_choice="required")
        except LengthFinishReasonError:
            return None

    names: set[str] = set()
    for choice in filter(None, for_seeds(5, ask)):
        assert choice.finish_reason == "tool_calls" and not choice.message.content
        names.update(map(check_call, choice.message.tool_calls))
    assert names


def test_a_named_tool_is_called_once(client: OpenAI) -> None:
    choice = asked(
        client, 3, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "check"}},
        parallel_tool_calls=False,
    )  # fmt: skip
    assert [check_call(one) for one in choice.message.tool_calls] == ["check"]


def plate_tool() -> Any:
    grammar = {"syntax": "regex", "definition": PLATE}
    return {"type": "custom", "custom": {"name": "plate", "format": {"type": "grammar", "grammar": grammar}}}


def test_the_input_of_a_custom_tool_follows_its_grammar(client: OpenAI) -> None:
    [model] = client.models.list().data
    forced: Any = {"type": "custom", "custom": {"name": "plate"}}

    def ask(seed: int) -> Any:
        [choice] = client.chat.completions.create(
            model=model.id, messages=MESSAGES, seed=seed, max_tokens=MAX_TOKENS, tools=[plate_tool()],
            tool_choice=forced, extra_body={"thinking_token_budget": 0},
        ).choices  # fmt: skip
        return choice if choice.finish_reason == "tool_calls" else None

    inputs = [choice.message.tool_calls[0].custom.input for choice in filter(None, for_seeds(3, ask))]
    assert inputs and all(re.fullmatch(PLATE, one) for one in inputs)


def test_the_grammar_holds_where_the_model_chooses_to_call(client: OpenAI) -> None:
    """Random weights call nothing, so the token that opens a call is made likely; of gpt-oss, it opens any message."""
    [model] = client.models.list().data
    tool_format = max((name for name in FORMATS if name in model.id), key=len)
    opening = plain_tokenizer(tool_format).convert_tokens_to_ids(CALL_MARKERS[tool_format][0])

    def ask(seed: int) -> Any:
        [choice] = client.chat.completions.create(
            model=model.id, messages=MESSAGES, seed=seed, max_tokens=MAX_TOKENS, tools=[plate_tool()],
            logit_bias={str(opening): 100}, extra_body={"thinking_token_budget": 0},
        ).choices  # fmt: skip
        return choice.message.tool_calls or []

    found = for_seeds(2, ask)
    assert any(found) or tool_format == "harmony"
    for *whole, last in filter(None, found):  # the last one may be cut
        assert all(re.fullmatch(PLATE, call.custom.input) for call in whole)
        assert last.custom.input[:1] in ("", *string.ascii_uppercase), last


@pytest.mark.parametrize("format_of", ["json_schema", "json_object"])
def test_structured_output_is_content_without_any_marker(client: OpenAI, format_of: str) -> None:
    wanted: Any = {"type": format_of}
    if format_of == "json_schema":
        wanted["json_schema"] = {"name": "answer", "schema": ANSWER}
    [model] = client.models.list().data

    def ask(seed: int) -> Any:
        [choice] = client.chat.completions.create(
            model=model.id, messages=MESSAGES, seed=seed, max_tokens=MAX_TOKENS, response_format=wanted
        ).choices
        return choice

    seen = 0
    for choice in for_seeds(5, ask):
        if choice.finish_reason == "stop":
            answer = json.loads(choice.message.content or "")
            assert isinstance(answer, dict) and (format_of == "json_object" or answer["city"] in ("Bandung", "Medan"))
            seen += 1
    assert seen


@pytest.mark.parametrize(
    "wanted", [{"guided_choice": ["merah", "biru"]}, {"guided_regex": "[ab]{2}"}, {"guided_grammar": 'start: "ya"'}]
)
def test_other_constraints_hold_in_the_content(client: OpenAI, wanted: dict[str, Any]) -> None:
    [model] = client.models.list().data
    [choice] = client.chat.completions.create(
        model=model.id, messages=MESSAGES, seed=2, max_tokens=MAX_TOKENS, extra_body=wanted
    ).choices
    assert choice.finish_reason == "stop"
    assert choice.message.content in ("merah", "biru", "ya", "aa", "ab", "ba", "bb")


def test_a_conversation_with_calls_goes_on(client: OpenAI) -> None:
    calls: list[Any] = [
        {"id": f"call_{number}", "type": "function", "function": {"name": "now", "arguments": '{"a": 1}'}}
        for number in range(2)
    ]
    results: list[Any] = [{"role": "tool", "tool_call_id": call["id"], "content": "12:00"} for call in calls]
    spoken: Any = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": calls}
    [model] = client.models.list().data
    answer = client.chat.completions.create(
        model=model.id, messages=[*MESSAGES, spoken, *results], tools=TOOLS, max_tokens=5
    )
    assert answer.usage and answer.usage.completion_tokens <= 5
    tools: list[Any] = [{"type": "function", **TOOLS[1]["function"], "strict": False}]
    response = client.responses.create(
        model=model.id,
        input="Halo",
        tools=tools,
        tool_choice="required",
        reasoning={"effort": "none"},
        max_output_tokens=2000,
        extra_body={"seed": 1},  # with another, random weights of gpt-oss may reason up to the maximum
    )
    assert {item.type for item in response.output} - {"reasoning"} == {"function_call"}
