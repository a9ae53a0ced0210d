"""The body of a chat for an upstream, of what the engine on this machine would make a prompt of."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tis.engine.grammar.grammar import Grammar
from tis.engine.prompt import ChatPrompt, Message
from tis.engine.sampling.params import SamplingParams
from tis.errors import BadRequest
from tis.upstream.kinds import UpstreamAbilities
from tis.upstream.media_parts import medium_part

# What these fields of SamplingParams are when they change nothing.
_NEUTRAL: Mapping[str, Any] = {
    "top_k": (0, -1),
    "min_p": (0,),
    "repetition_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "seed": (None,),
    "stop": ((),),
    "stop_token_ids": ((),),
    "min_tokens": (0,),
    "ignore_eos": (False,),
    "top_logprobs": (None,),
    "logprob_token_ids": ((),),
    "n": (1,),
    "thinking_budget": (None, 0),
    "thinking_share": (None,),
}
# Advice, which is in `reasoning_effort` and `chat_template_kwargs`, too.
_HINTS = ("thinking_share",)
_EFFORTS = ("reasoning_effort", "verbosity")
_NAMES_IN_REQUESTS = {"top_logprobs": "logprobs", "thinking_budget": "thinking_token_budget"}


def chat_body(
    model: str,
    prompt: ChatPrompt,
    params: SamplingParams,
    unset: Sequence[str],
    grammar: Grammar | None,
    abilities: UpstreamAbilities,
    cache_salt: str,
) -> dict[str, Any]:
    """Raises BadRequest for what the upstream lacks."""
    body: dict[str, Any] = {
        "model": model,
        "messages": chat_messages(prompt.messages, abilities),
        "stream": True,
        "stream_options": {"include_usage": True},
        **sampling_fields(params, unset, abilities),
    }
    if prompt.tools:
        body["tools"] = list(prompt.tools)
        if prompt.one_call or (grammar and grammar.one_call):
            body["parallel_tool_calls"] = False
    if grammar:
        body |= form_fields(grammar, prompt.tools, abilities)
    return {**body, **_template_fields(prompt, abilities), **salt_fields(cache_salt, abilities)}


def sampling_fields(params: SamplingParams, unset: Sequence[str], abilities: UpstreamAbilities) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in SamplingParams.__dataclass_fields__:
        value = getattr(params, name)
        if name in unset and name != "max_tokens" or value in _NEUTRAL.get(name, ()):
            continue
        theirs = abilities.sampling.get(name)
        if theirs is None and name not in _HINTS:
            raise lacking(_NAMES_IN_REQUESTS.get(name, name))
        if theirs:
            fields[theirs] = list(value) if isinstance(value, tuple) else value
    if "logit_bias" in fields:
        fields["logit_bias"] = {str(token): bias for token, bias in params.logit_bias.items()}
    if "top_logprobs" in fields:
        fields["logprobs"] = True
    return fields


def salt_fields(cache_salt: str, abilities: UpstreamAbilities) -> dict[str, Any]:
    """As a digest: whose prefixes are shared is no business of another machine."""
    if not (abilities.takes_salt and cache_salt):
        return {}
    return {"cache_salt": hashlib.sha256(cache_salt.encode("utf-8", "replace")).hexdigest()}


def form_fields(grammar: Grammar, tools: Sequence[Mapping[str, Any]], abilities: UpstreamAbilities) -> dict[str, Any]:
    match grammar.kind:
        case "marked_calls":
            return {}  # `strict` stands in the tools
        case "tool_calls" if grammar.value is None:
            return _forced_call(grammar, tools, abilities)
        case "tool_calls" | "json_schema" | "json_object" if not abilities.takes_formats:
            raise lacking(grammar.param)
        case "tool_calls" | "json_schema":
            schema = {"name": "answer", "schema": grammar.value, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case kind:
            name = abilities.grammars.get(kind)
            if name is None:
                raise lacking(grammar.param)
            if abilities.boxes_grammars:
                return {"structured_outputs": {name: grammar.value}}
            return {name: _rule_of(grammar.value) if kind == "choice" else grammar.value}


def _rule_of(choices: Sequence[str]) -> str:
    """A choice in EBNF, whose texts are written as in JSON."""
    return "root ::= " + " | ".join(json.dumps(one) for one in choices)


def continuing_fields(abilities: UpstreamAbilities) -> dict[str, Any]:
    fields: dict[str, Any] = {"continue_final_message": True}
    return {**fields, "add_generation_prompt": False} if abilities.may_open_no_turn else fields


def _forced_call(grammar: Grammar, tools: Sequence[Mapping[str, Any]], abilities: UpstreamAbilities) -> dict[str, Any]:
    if not abilities.forces_calls:
        raise lacking("tool_choice")
    is_named = len(grammar.tools) == 1 < len(tools)
    name = grammar.tools[0].name
    if is_named and abilities.forces_named_calls:
        return {"tool_choice": {"type": "function", "function": {"name": name}}}
    # It gets the one function alone: by a name it would not be forced at all, or call another.
    sent = [one for one in tools if one["function"]["name"] == name] if is_named else tools
    if abilities.forces_only_strict:
        sent = [{**one, "function": {**one["function"], "strict": True}} for one in sent]
    return {"tool_choice": "required", "tools": list(sent)}


def chat_messages(messages: Sequence[Message], abilities: UpstreamAbilities) -> list[dict[str, Any]]:
    """As chat templates take them, so arguments of calls are objects; the wire has JSON in a string."""
    return [_message(message, abilities) for message in messages]


def lacking(name: str) -> BadRequest:
    return BadRequest(
        f"{name} is not supported for this model: the engine that serves it has nothing like it.",
        param=name,
        code="unsupported_parameter",
    )


def _message(message: Message, abilities: UpstreamAbilities) -> dict[str, Any]:
    plain = dict(message)
    if "reasoning_content" in plain:
        plain[abilities.reasoning_name] = plain.pop("reasoning_content")
    if calls := plain.get("tool_calls"):
        plain["tool_calls"] = [_call(call) for call in calls]
    if isinstance(plain.get("content"), list):
        plain["content"] = [_part(part, abilities) for part in plain["content"]]
    return plain


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    if not isinstance(function.get("arguments"), str):
        function["arguments"] = json.dumps(function.get("arguments") or {}, ensure_ascii=False)
    return {**call, "type": "function", "function": function}


def _part(part: Mapping[str, Any], abilities: UpstreamAbilities) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    return medium_part(part[part["type"]], abilities)


def _template_fields(prompt: ChatPrompt, abilities: UpstreamAbilities) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    options = dict(prompt.template_options)
    for name in _EFFORTS:
        value = options.pop(name, None)
        if value is not None and abilities.takes_effort:
            fields[name] = value
    if options and abilities.takes_template_options:
        fields["chat_template_kwargs"] = options
    if prompt.continue_final_message:
        if not abilities.continues:
            raise lacking("continue_final_message")
        fields |= continuing_fields(abilities)
    elif not prompt.add_generation_prompt:
        if not (abilities.continues and abilities.may_open_no_turn):
            raise lacking("add_generation_prompt")
        fields["add_generation_prompt"] = False
    return fields
