"""The chunks of an upstream's chat as pieces of an answer. Whatever it sends, they are well-formed, or it failed."""

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tis.engine.answer import AnswerDelta, FinishReason, Piece, ReportedUsage, TokenLogprob
from tis.upstream.bounded_json import parse_json
from tis.upstream.errors import UpstreamFault, failed
from tis.upstream.refusals import fault_of_event

_MAX_CALLS = 1024  # of one choice
_MAX_LOGPROBS = 64  # alternatives of a token
_MORE_PIECES = 64  # than tokens that were asked for: ends, roles, what a parser held back
_MAX_NAME_CHARS = 512
_MAX_TOKEN_CHARS = 512  # the longest ones are rows of blanks or signs
_UNLIKELY = -9999.0  # OpenAI's log probability of a token that is very unlikely
_FINISHES: Mapping[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}
_BROKEN_OFF = ("abort", "aborted", "error", "cancelled")


class ChoiceState:
    def __init__(self) -> None:
        self.num_pieces = 0
        self.num_chars = 0
        self.finish: Piece | None = None  # held until the usage is known
        self.skip = ""  # blanks that clients have, and that the upstream may write again
        self.call: int | None = None  # its name of the call that grows
        self.num_calls = 0


class ChunkReader:
    """Of one stream."""

    def __init__(self, num_choices: int, max_tokens: int, key: str = "", *, skip: str = "") -> None:
        self._choices = [ChoiceState() for _ in range(num_choices)]
        self._choices[0].skip = skip
        self._max_pieces = max_tokens + _MORE_PIECES
        self._key = key
        self.usage: ReportedUsage | None = None
        self.is_done = False

    def read(self, data: bytes) -> list[Piece]:
        """Raises UpstreamFault."""
        if data.strip() == b"[DONE]":
            self.is_done = True
            return []
        chunk = parse_json(data)
        if not isinstance(chunk, dict):
            raise failed("sent an event that is no chunk of a chat")
        if chunk.get("error"):
            raise fault_of_event(chunk["error"], self._key)
        self._read_usage(chunk.get("usage"))
        choices = chunk.get("choices") or []
        if not isinstance(choices, list) or len(choices) > len(self._choices):
            raise failed("sent choices that nobody asked for")
        return [piece for choice in choices for piece in self._pieces(choice)]

    @property
    def is_whole(self) -> bool:
        return all(choice.finish for choice in self._choices)

    def last_pieces(self) -> list[Piece]:
        """Raises UpstreamFault if the answer has not come to its end."""
        ends = [choice.finish for choice in self._choices]
        whole = [end for end in ends if end]
        if len(whole) < len(ends):
            raise failed("ended its answer in the middle")
        if self.usage:
            whole[-1] = replace(whole[-1], usage=self.usage)
        return whole

    def _pieces(self, given: Any) -> Iterable[Piece]:
        number = given.get("index", 0) if isinstance(given, dict) else None
        if type(number) is not int or not 0 <= number < len(self._choices):
            raise failed("sent a choice that nobody asked for")
        choice = self._choices[number]
        skip = choice.skip
        # A completion has its text beside the index, and log probabilities in lists.
        deltas = self._deltas(choice, {"content": given["text"]} if "text" in given else given.get("delta") or {})
        is_skipped = choice.skip != skip and not deltas  # clients have it, and its log probabilities
        logprobs = () if is_skipped else _logprobs(given.get("logprobs"))
        if deltas or logprobs:
            if choice.finish:
                raise failed("went on behind the end of its answer")
            choice.num_pieces += 1
            choice.num_chars += sum(len(delta.text) for delta in deltas)
            if choice.num_pieces > self._max_pieces or choice.num_chars > self._max_pieces * _MAX_TOKEN_CHARS:
                raise failed("sent more than was asked for")
            if [delta.kind for delta in deltas] in ([], ["text"]) and not choice.num_calls:
                yield Piece(number, "".join(delta.text for delta in deltas), (), logprobs)
            else:
                yield Piece(number, "", (), logprobs, deltas=tuple(deltas))
        finish = given.get("finish_reason")
        if finish is not None and not choice.finish:
            if not isinstance(finish, str) or finish in _BROKEN_OFF:
                raise failed("broke its answer off")
            stop = given.get("stop_reason") or given.get("matched_stop")  # as SGLang calls it
            choice.finish = Piece(
                number, "", (), finish=_FINISHES.get(finish, "stop"), stop=stop if isinstance(stop, str) else None
            )

    def _deltas(self, choice: ChoiceState, delta: Any) -> list[AnswerDelta]:
        if not isinstance(delta, dict):
            raise failed("sent a chunk without a delta")
        deltas = []
        reasoning = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        if reasoning:
            deltas.append(AnswerDelta("reasoning", reasoning))
        text = _text(delta.get("content")) + _text(delta.get("refusal"))
        if choice.skip and text:
            text = self._without_blanks(choice, text)
        if text:
            deltas.append(AnswerDelta("text", text))
            choice.call = None
        calls = delta.get("tool_calls") or ()
        if not isinstance(calls, list | tuple) or len(calls) > _MAX_CALLS:
            raise failed("sent tool calls that are no list")
        for call in calls:
            deltas += self._call(choice, call)
        return deltas

    def _without_blanks(self, choice: ChoiceState, text: str) -> str:
        """Templates drop the blanks at the end of a message that is to be continued; then they come once more."""
        skip, choice.skip = choice.skip, ""
        at = 0
        while at < min(len(skip), len(text)) and skip[at] == text[at]:
            at += 1
        if at == len(text):
            choice.skip = skip[at:]
        return text[at:]

    def _call(self, choice: ChoiceState, given: Any) -> Iterable[AnswerDelta]:
        function = given.get("function") or {} if isinstance(given, dict) else None
        if not isinstance(function, dict):
            raise failed("sent a tool call that is no object")
        names_one = given.get("id") or function.get("name")
        place = given.get("index", choice.num_calls if names_one or choice.call is None else choice.call)
        if type(place) is not int:
            raise failed("sent a tool call without a place")
        if place != choice.call:
            name = function.get("name")
            if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME_CHARS:
                raise failed("sent a tool call without a name, or pieces of several calls in no order")
            choice.call, choice.num_calls = place, choice.num_calls + 1
            if choice.num_calls > _MAX_CALLS:
                raise failed("sent too many tool calls")
            call_id = given.get("id")
            is_usable = isinstance(call_id, str) and 0 < len(call_id) <= _MAX_NAME_CHARS
            yield AnswerDelta(
                *("call", _text(name), choice.num_calls - 1), _text(call_id) if is_usable else _new_call_id()
            )
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments := _text(arguments):
            yield AnswerDelta("arguments", arguments, choice.num_calls - 1)

    def _read_usage(self, given: Any) -> None:
        if not isinstance(given, dict):
            return
        prompt, made = _count(given.get("prompt_tokens")), _count(given.get("completion_tokens"))
        if prompt is None or made is None:
            return
        # It is counted against the limits of a key: what is more than was asked for uses up nobody's day.
        self.usage = ReportedUsage(
            prompt,
            min(made, self._max_pieces * len(self._choices)),
            _detail(given, "prompt_tokens_details", "cached_tokens"),
            _detail(given, "completion_tokens_details", "reasoning_tokens"),
        )


def _new_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise failed("sent something else where a text belongs")
    # JSON can have half a surrogate pair, which no encoding has.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**40 else None


def _detail(usage: Mapping[str, Any], group: str, name: str) -> int:
    details = usage.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, dict) else 0


def _logprobs(given: Any) -> tuple[TokenLogprob, ...]:
    if isinstance(given, dict) and given.get("tokens"):
        return _listed_logprobs(given)
    content = given.get("content") if isinstance(given, dict) else None
    if not content:
        return ()
    if not isinstance(content, list):
        raise _no_logprobs()
    return tuple(_logprob(one, one.get("top_logprobs") if isinstance(one, dict) else None) for one in content)


def _listed_logprobs(given: Mapping[str, Any]) -> tuple[TokenLogprob, ...]:
    tokens, values = given["tokens"], given.get("token_logprobs")
    tops = given.get("top_logprobs") or [{}] * (len(tokens) if isinstance(tokens, list) else 0)
    lists = [one for one in (tokens, values, tops) if isinstance(one, list)]
    if len({len(one) for one in lists}) != 1 or len(lists) < 3:
        raise _no_logprobs()
    return tuple(
        _logprob(
            {"token": token, "logprob": value},
            [{"token": other, "logprob": least} for other, least in top.items()] if isinstance(top, dict) else [],
        )
        for token, value, top in zip(tokens, values or (), tops, strict=True)
    )


def _logprob(given: Any, top: Any = None) -> TokenLogprob:
    if not isinstance(given, dict) or not isinstance(top or [], list):
        raise _no_logprobs()
    text, value = _text(given.get("token")), given.get("logprob")
    data: Any = given.get("bytes")
    if not isinstance(value, int | float):
        raise _no_logprobs()
    raw = bytes(data) if _is_bytes(data) else text.encode()
    number = float(value) if -_UNLIKELY > value > _UNLIKELY else _UNLIKELY  # also of what is not finite
    return TokenLogprob(-1, text, raw, number, tuple(_logprob(one) for one in (top or [])[:_MAX_LOGPROBS]))


def _is_bytes(data: Any) -> bool:
    return (
        isinstance(data, list)
        and len(data) < _MAX_NAME_CHARS
        and all(type(one) is int and 0 <= one < 256 for one in data)
    )


def _no_logprobs() -> UpstreamFault:
    return failed("sent log probabilities of another shape")
