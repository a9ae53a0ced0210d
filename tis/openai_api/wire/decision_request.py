"""The body of POST /v1/decisions, in the shape of openai-python 3: an input, and typed questions about it."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictStr, ValidationError

from tis.bounds import MaxItems
from tis.errors import BadRequest
from tis.http.error_handlers import bad_request_from
from tis.openai_api.store.items import Item
from tis.openai_api.wire.as_chat import messages_of, with_response_params
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.decision_examples import DECISION_REQUESTS
from tis.openai_api.wire.fields import MAX_ITEMS, CacheSalt, HintText, JsonObject, Name, RequestModel, Text
from tis.openai_api.wire.input_items import checked_items

MAX_QUESTIONS = 400
MAX_OPTIONS = 255
_MAX_INSTRUCTION_PARTS = 256
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_KINDS = ("message", "reasoning", *_CALLS, *_OUTPUTS)
_Label = Annotated[StrictStr, Field(min_length=1, max_length=4096)]
_Description = Annotated[StrictStr, Field(max_length=16_384)]


class InstructionPart(RequestModel):
    type: Literal["input_text", "input_json"]
    text: Text | None = None
    data: Any = None


class Question(RequestModel):
    type: str
    name: Name | None = None
    instructions: Text | Annotated[list[InstructionPart], MaxItems(_MAX_INSTRUCTION_PARTS)]

    @property
    def text(self) -> str:
        if isinstance(self.instructions, str):
            return self.instructions
        return "\n".join(_json_text(part.data) if part.text is None else part.text for part in self.instructions)


class PredicateQuestion(Question):
    type: Literal["predicate"]


class Choice(RequestModel):
    value: StrictBool | _Label
    description: _Description | None = None

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else str(self.value).lower()


class ChoiceQuestion(Question):
    type: Literal["choice"]
    choices: Annotated[list[Choice], MaxItems(MAX_OPTIONS)] = Field(min_length=2)


class Level(RequestModel):
    label: _Label
    description: _Description | None = None


class ScoreQuestion(Question):
    type: Literal["score"]
    levels: Annotated[list[Level], MaxItems(MAX_OPTIONS)] = Field(min_length=2)


AnyQuestion = Annotated[PredicateQuestion | ChoiceQuestion | ScoreQuestion, Field(discriminator="type")]


class DecisionRequest(RequestModel):
    model: Name | None = None
    input: Text | Annotated[list[JsonObject], MaxItems(MAX_ITEMS)] = Field(
        description="a text, or messages, calls and their outputs"
    )
    questions: Annotated[list[AnyQuestion], MaxItems(MAX_QUESTIONS)] = Field(min_length=1)
    cache_salt: CacheSalt | None = None

    # Validated, without any effect.
    prompt_cache_key: HintText = None
    prompt_cache_options: Any = None
    safety_identifier: HintText = None

    model_config = ConfigDict(json_schema_extra={"examples": DECISION_REQUESTS})

    def check(self) -> None:
        if not self.input:
            raise BadRequest("input: there is nothing in it.", param="input")
        for number, question in enumerate(self.questions):
            where = f"questions.{number}"
            if not question.text.strip():
                raise BadRequest(f"{where}.instructions: there is no text in it.", param=f"{where}.instructions")
            if isinstance(question, ChoiceQuestion):
                values = [(type(one.value), one.value) for one in question.choices]
                if len(set(values)) < len(values):
                    raise BadRequest(f"{where}.choices: each value may be there once.", param=f"{where}.choices")

    def as_chat(self) -> ChatRequest:
        """The input alone."""
        given = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input
        _require_kinds(given)
        _require_calls(given)
        items = checked_items(list(map(_plain_item, given)), "decision", "input")
        messages, origins = messages_of([(f"input.{number}", item) for number, item in enumerate(items)], {})
        try:
            return ChatRequest.model_validate({"messages": messages, "reasoning_effort": "none"})
        except ValidationError as error:
            problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
            raise with_response_params(bad_request_from(problems), origins) from None


def _require_kinds(items: Sequence[Mapping[str, Any]]) -> None:
    for number, item in enumerate(items):
        if (kind := item.get("type")) and kind not in _KINDS:
            message = f"input.{number}: items of type {str(kind)[:40]!r} are not supported."
            raise BadRequest(message, param=f"input.{number}.type", code="unsupported_value")


def _require_calls(items: Sequence[Mapping[str, Any]]) -> None:
    known: set[Any] = set()
    for number, item in enumerate(items):
        kind, call_id = item.get("type"), item.get("call_id")
        if kind in _CALLS and isinstance(call_id, str):
            known.add(call_id)
        elif kind in _OUTPUTS and isinstance(call_id, str):
            if call_id not in known:
                param = f"input.{number}.call_id"
                raise BadRequest(f"{param}: there is no call {call_id[:64]!r} before it.", param=param)


def _plain_item(item: Mapping[str, Any]) -> Item:
    """As the items of responses are: calls of custom tools are calls with one argument, and JSON is text."""
    kind = item.get("type")
    if kind == "custom_tool_call":
        called = {"arguments": json.dumps({"input": item.get("input")}, ensure_ascii=False)}
        return {**item, "type": "function_call", **called}
    plain = {**item, "type": "function_call_output"} if kind == "custom_tool_call_output" else dict(item)
    for name in ("content", "output"):
        if isinstance(plain.get(name), list):
            plain[name] = list(map(_plain_part, plain[name]))
    return plain


def _plain_part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") == "input_json":
        return {"type": "input_text", "text": _json_text(part.get("data"))}
    return part


def _json_text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
