"""Converts a chat request to the prompt and the sampling parameters of the engine.

`chat_template_kwargs`, `reasoning_effort` and `verbosity` become variables of the chat template.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from tis.chat.mcp_calls import text_for_model
from tis.chat.media import MediumPlaceholder
from tis.engine.engine import Engine
from tis.engine.prompt import ChatPrompt, Detail, MediumKind
from tis.errors import BadRequest
from tis.media.media_types import MediaSource
from tis.openai_api.store.items import MEDIA_KINDS
from tis.openai_api.wire.chat_request import TEXT_TYPES, ChatMessage, ChatRequest, ContentPart, MediaRef
from tis.openai_api.wire.fields import MAX_TEXT_CHARS
from tis.openai_api.wire.tools import checked_tools

Encoding = Literal["url", "base64"]
# Settings of `generate()`, with our names.
_OF_GENERATE: Mapping[str, str] = {
    "max_new_tokens": "max_tokens",
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")},
}
_DETAILS: Collection[Detail] = ("low", "high", "auto")
# Accepted for every model, because clients send them to any; a template that does not use one ignores it.
COMMON_OPTIONS = frozenset({"enable_thinking", "thinking", "thinking_budget", "reasoning_effort", "add_vision_id"})
# Never set by a request, even if the template uses them. Transformers has parameters of these names, ...
_PARAMETERS = frozenset(
    {
        "messages", "conversation", "conversations", "tools", "chat_template", "add_generation_prompt",
        "continue_final_message", "tokenize", "padding", "truncation", "max_length", "return_tensors", "return_dict",
        "return_assistant_tokens_mask", "sanitize_control_tokens", "tokenizer_kwargs", "processor_kwargs",
        "load_audio_from_video",
    }
)  # fmt: skip
# ... or sets them itself: control tokens, which no request may write, and functions.
_SET_BY_SERVER = frozenset(
    {
        "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
        "additional_special_tokens", "raise_exception", "strftime_now",
    }
)  # fmt: skip
BLOCKED_OPTIONS = _PARAMETERS | _SET_BY_SERVER
MAX_CHARS = 64 * 1024  # of all names and values together
MAX_DEPTH = 16
_CHARS_OF_OTHERS = 8  # counted for a value that is not text
# Chat templates know no effort above "high", and some reject unknown values.
_EFFORT_OF_TEMPLATES = {"xhigh": "high", "max": "high"}
_PARAM = "chat_template_kwargs"
# The share of max_tokens that the model may use for reasoning.
_EFFORTS = {"none": 0.0, "minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.9, "max": 0.95}


def chat_prompt(body: ChatRequest) -> ChatPrompt:
    messages, tools = body.messages or [], tuple(checked_tools(body))
    continues = bool(body.continue_final_message)
    adds_prompt = not continues if body.add_generation_prompt is None else body.add_generation_prompt
    if continues and adds_prompt:
        raise BadRequest(
            "continue_final_message and add_generation_prompt exclude each other.", param="continue_final_message"
        )
    if continues and messages[-1].role != "assistant":
        raise BadRequest("Only a final assistant message can be continued.", param="continue_final_message")
    return ChatPrompt(
        messages=plain_messages(messages),
        tools=() if body.tool_choice == "none" else tools,
        template_options=template_options(body),
        add_generation_prompt=adds_prompt,
        continue_final_message=continues,
        prediction=body.prediction.text if body.prediction else "",
        one_call=body.parallel_tool_calls is False,
        emit_markers=True,
    )


def plain_messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """As chat templates take them. Pictures, videos and sounds are placeholders still."""
    return [one for position, message in enumerate(messages) for one in _messages(position, message)]


def requested_sampling(body: ChatRequest) -> dict[str, Any]:
    """The sampling parameters that the request sets; the engine adds the defaults."""
    requested = {**_generate_settings(body.generation_config), **body.sampling()}
    max_tokens = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    if max_tokens is not None:
        requested["max_tokens"] = max_tokens
    if body.n is not None:
        requested["n"] = body.n
    if body.logprobs:
        requested["top_logprobs"] = body.top_logprobs or 0
    elif body.top_logprobs:
        raise BadRequest("top_logprobs needs logprobs: true.", param="top_logprobs")
    if body.reasoning_effort:
        requested["thinking_share"] = _EFFORTS[body.reasoning_effort]
    elif any((body.chat_template_kwargs or {}).get(name) is False for name in ("enable_thinking", "thinking")):
        requested["thinking_share"] = 0.0
    return requested


def _generate_settings(text: str | None) -> dict[str, Any]:
    """What `transformers chat` sends: the flags of its user, beside settings that are nothing to this server."""
    if text is None:
        return {}
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        written = None
    if not isinstance(written, dict):
        raise BadRequest("generation_config must be a JSON object, as a string.", param="generation_config")
    settings: dict[str, Any] = {}
    for theirs, ours in _OF_GENERATE.items():
        value = written.get(theirs)
        if isinstance(value, int | float) and not isinstance(value, bool):
            settings[ours] = value
    if written.get("do_sample") is False:
        settings["temperature"] = 0.0
    return settings


def _messages(position: int, message: ChatMessage) -> list[dict[str, Any]]:
    """An answer with MCP calls is several messages to the model: the calls, their results, the rest."""
    if not message.mcp_calls or message.role != "assistant":
        return [_message(position, message)]
    given = [call.model_dump() for call in message.mcp_calls]
    calls = [{"id": one["id"], "function": {name: one[name] for name in ("name", "arguments")}} for one in given]
    results = [
        {
            "role": "tool",
            "tool_call_id": one["id"],
            "content": text_for_model(one["output"], one["error"])[:MAX_TEXT_CHARS],
        }
        for one in given
    ]
    calls_and_results = [
        ChatMessage.model_validate(one) for one in ({"role": "assistant", "tool_calls": calls}, *results)
    ]
    rest = [message] if message.content or message.tool_calls else []
    return [_message(position, one) for one in (*calls_and_results, *rest)]


def _message(position: int, message: ChatMessage) -> dict[str, Any]:
    plain = message.model_dump(exclude_none=True, exclude={"content", "reasoning", "tool_calls", "mcp_calls"})
    plain["content"] = _content(position, message)
    if message.tool_calls:
        plain["tool_calls"] = [call.for_template() for call in message.tool_calls]
    if message.reasoning and not message.reasoning_content:
        plain["reasoning_content"] = message.reasoning
    return plain


def _content(position: int, message: ChatMessage) -> str | list[dict[str, Any]]:
    """Every chat template accepts a string, so content is a list of parts only if it has media."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    parts = [_part(f"messages.{position}.content.{number}", part) for number, part in enumerate(message.content)]
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(where: str, part: ContentPart) -> dict[str, Any]:
    if part.type == "refusal":
        return {"type": "text", "text": part.refusal or ""}
    if part.type in TEXT_TYPES:
        if part.text is None:
            raise BadRequest(f"{where}: a text part needs `text`.", param=f"{where}.text")
        return {"type": "text", "text": part.text}
    if part.type in MEDIA_KINDS:
        return {"type": MEDIA_KINDS[part.type], MEDIA_KINDS[part.type]: medium_placeholder(part, where)}
    raise BadRequest(f"{where}: unknown part type {part.type[:40]!r}.", param=f"{where}.type")


def medium_placeholder(part: ContentPart, where: str) -> MediumPlaceholder:
    kind = MEDIA_KINDS[part.type]
    value, encoding = _said(part, kind)
    if not value:
        needed = "input_audio.data" if part.type == "input_audio" else f"{kind}_url"
        raise BadRequest(f"{where}: a part of type {part.type} needs {needed}.", param=f"{where}.{needed}")
    return MediumPlaceholder(MediaSource(kind, value, where, encoding), _detail(part, where))


def _said(part: ContentPart, kind: MediumKind) -> tuple[str | None, Encoding]:
    """The medium, and whether it may be a URL or is base64."""
    for value in (getattr(part, f"{kind}_url"), getattr(part, kind), part.url):
        if given := value.url if isinstance(value, MediaRef) else value:
            return given, "url"
    given = part.b64_json or part.data or (part.input_audio and part.input_audio.data)
    return given or next((ref.b64_json or ref.data for ref in _refs(part)), None), "base64"


def _detail(part: ContentPart, where: str) -> Detail:
    said = part.detail or next((ref.detail for ref in _refs(part)), None) or "auto"
    for detail in _DETAILS:
        if said == detail:
            return detail
    raise BadRequest(f"{where}: detail must be low, high or auto, got {said[:40]!r}.", param=f"{where}.detail")


def _refs(part: ContentPart) -> Iterator[MediaRef]:
    for value in (part.image_url, part.image, part.video_url, part.video, part.audio_url, part.audio):
        if isinstance(value, MediaRef):
            yield value


def template_options(body: ChatRequest) -> dict[str, Any]:
    """The variables to set; what depends on the model is checked by `require_template_options`."""
    given = body.chat_template_kwargs or {}
    for name in given:
        if name in BLOCKED_OPTIONS:
            raise BadRequest(
                f"{_PARAM}.{name} cannot be set: the server sets it for the chat template.", param=f"{_PARAM}.{name}"
            )
    _check_size(given)
    verbosity = {"verbosity": body.verbosity} if body.verbosity else {}
    return {**_effort_options(body.reasoning_effort), **verbosity, **given}


async def require_template_options(body: ChatRequest, engine: Engine, model_id: str) -> None:
    """Rejects options that the model's chat template does not use. Waits until the model is loaded."""
    names = [name for name in body.chat_template_kwargs or () if name not in COMMON_OPTIONS]
    if not names:
        return
    variables = await engine.template_variables(model_id) - BLOCKED_OPTIONS
    for name in names:
        if name not in variables:
            used = ", ".join(sorted(variables)) or "no option"
            raise BadRequest(
                f"{_PARAM}: the chat template of this model does not use {name[:40]!r}. It uses: {used}."[:900],
                param=f"{_PARAM}.{name[:40]}",
            )


def _effort_options(effort: str | None) -> dict[str, Any]:
    """Chat templates ignore options that they do not know."""
    if effort is None:
        return {}
    if effort == "none":
        return {"enable_thinking": False}
    return {"reasoning_effort": _EFFORT_OF_TEMPLATES.get(effort, effort)}


def _check_size(options: Mapping[str, Any]) -> None:
    num_chars = 0
    pending: list[tuple[Any, int]] = [(options, 0)]
    while pending:
        value, depth = pending.pop()
        num_chars += len(value) if isinstance(value, str) else _CHARS_OF_OTHERS
        if isinstance(value, Mapping):
            num_chars += sum(map(len, value))
            pending += [(inner, depth + 1) for inner in value.values()]
        elif isinstance(value, list):
            pending += [(inner, depth + 1) for inner in value]
        if num_chars > MAX_CHARS:
            raise BadRequest(f"{_PARAM}: at most {MAX_CHARS:,} characters.", param=_PARAM)
        if depth > MAX_DEPTH:
            raise BadRequest(f"{_PARAM}: nested more than {MAX_DEPTH} levels deep.", param=_PARAM)
