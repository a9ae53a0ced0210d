"""Writes the chunks of a streamed text completion, and folds the whole answer from them.

The text is what the model writes: nothing is parsed in it. With `echo`, it begins with the prompt.
"""

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from json.encoder import encode_basestring
from typing import Any

from tis.chat.parts import CallEvent, ChoiceEnd, Events, PromptScores, RunPart, RunUsage, TextDelta
from tis.engine.answer import FinishReason, TokenLogprob
from tis.errors import error_with_code
from tis.openai_api.wire.chat_writer import DONE, chat_usage, error_event

DIALECT = "completion"
_TEXT = "\0text\0"  # stands for the text while a chunk is made into a template; no name of a model has it
_AT_INDEX = b'"choices":[{"index":%d,'
_LEAST = -9999.0  # as OpenAI writes what is next to impossible; JSON has no infinity
_LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def completion_writer_state(
    model: str,
    *,
    n: int,
    with_usage: bool,
    echoes: Sequence[Mapping[str, Any]] = (),
    prompt_only: bool = False,
) -> dict[str, Any]:
    """`echoes`: of each prompt its text, and where its tokens begin in it if their log probabilities are wanted."""
    return {
        "model": model,
        "id": f"cmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "n": n,
        "with_usage": with_usage,
        "echoes": list(echoes),
        "prompt_only": prompt_only,
    }


class CompletionWriter:
    def __init__(self, state: Mapping[str, Any]) -> None:
        self._head = {
            "id": state["id"],
            "object": "text_completion",
            "created": state["created"],
            "model": state["model"],
            "system_fingerprint": None,
        }
        self._n: int = state["n"]
        self._with_usage: bool = state["with_usage"]
        self._echoes: Sequence[Mapping[str, Any]] = state["echoes"]
        self._prompt_only: bool = state["prompt_only"]
        self._num_scored = [0] * len(self._echoes)  # tokens of each prompt
        self._lengths: dict[int, int] = {}  # of the text of each choice so far
        self._around_text: dict[int, list[bytes]] = {}

    def begun(self, num_choices: int) -> Events:
        if not self._echoes:
            return []
        for choice in range(num_choices):
            self._lengths[choice] = len(self._echo_of(choice)["text"])
        # With log probabilities, the prompt comes with those.
        plain = [choice for choice in range(num_choices) if self._echo_of(choice)["offsets"] is None]
        return [self._chunk(choice, self._echo_of(choice)["text"]) for choice in plain if self._lengths[choice]]

    def part(self, choice: int, part: RunPart) -> Events:
        match part:
            case TextDelta(text, _, logprobs, offsets) if not self._prompt_only:
                if logprobs:
                    return [self._with_logprobs(choice, text, logprobs, offsets)]
                return [self._text_chunk(choice, text)] if text else []
            case PromptScores(logprobs):
                return self._echoed(choice // self._n, logprobs)
            case ChoiceEnd(finish):
                return [self._end(choice, finish)]
        return []

    def call(self, event: CallEvent) -> Events:
        return []

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events:
        return [*([self._usage_chunk(usage)] if self._with_usage else []), DONE]

    def failed(self, error: Exception) -> bytes:
        return error_event(error)

    def summary(self, usage: RunUsage) -> bytes:
        """For the folded answer, and for `UsageView`, as of a chat."""
        usage_chunk = None if self._with_usage else self._usage_chunk(usage).decode()
        return json.dumps({"usage": self._usage(usage), "usage_chunk": usage_chunk}).encode()

    def _echo_of(self, choice: int) -> Mapping[str, Any]:
        return self._echoes[choice // self._n]

    def _echoed(self, prompt: int, logprobs: Sequence[TokenLogprob]) -> Events:
        """The next tokens of a prompt, for each of its choices."""
        text, offsets = self._echoes[prompt]["text"], self._echoes[prompt]["offsets"]
        first, stop = self._num_scored[prompt], self._num_scored[prompt] + len(logprobs)
        self._num_scored[prompt] = stop
        begin, end = offsets[first], offsets[stop] if stop < len(offsets) else len(text)
        lists = _logprob_lists(logprobs, offsets[first:stop])
        if first == 0:  # nothing is before it
            lists["token_logprobs"][0] = lists["top_logprobs"][0] = None
        chosen = prompt * self._n
        before, _, after = self._chunk(chosen, text[begin:end], lists).partition(_AT_INDEX % chosen)
        # Encoded once for all: it may be a hundred kilobytes.
        return [before + _AT_INDEX % choice + after for choice in range(chosen, chosen + self._n)]

    def _with_logprobs(self, choice: int, text: str, logprobs: Sequence[TokenLogprob], offsets: Sequence[int]) -> bytes:
        begin = self._lengths.get(choice, 0)
        self._lengths[choice] = begin + len(text)
        places = [begin + at for at in offsets or [0] * len(logprobs)]
        return self._chunk(choice, text, _logprob_lists(logprobs, places))

    def _text_chunk(self, choice: int, text: str) -> bytes:
        """What `_chunk` makes of it; but all except the text is written once, as this is the path of every token."""
        around = self._around_text.get(choice)
        if around is None:
            chunk = self._chunk(choice, _TEXT)
            around = self._around_text[choice] = chunk.split(encode_basestring(_TEXT).encode())
        return encode_basestring(text).encode().join(around)

    def _end(self, choice: int, finish: FinishReason) -> bytes:
        if finish == "cancelled":
            # OpenAI has no word for it: clients see an ordinary stop, and whoever looks sees why.
            return self._chunk(choice, "", finish="stop", cancelled=True)
        return self._chunk(choice, "", finish="length" if self._prompt_only else finish)

    def _usage(self, usage: RunUsage) -> dict[str, Any]:
        return chat_usage(replace(usage, num_made=0) if self._prompt_only else usage)

    def _usage_chunk(self, usage: RunUsage) -> bytes:
        return self._dump([], {"usage": self._usage(usage)})

    def _chunk(
        self,
        choice: int,
        text: str,
        logprobs: Mapping[str, Any] | None = None,
        *,
        finish: str | None = None,
        cancelled: bool = False,
    ) -> bytes:
        body: dict[str, Any] = {"index": choice, "text": text, "logprobs": logprobs, "finish_reason": finish}
        if cancelled:
            body["cancelled"] = True
        return self._dump([body], {"usage": None} if self._with_usage else {})

    def _dump(self, choices: list[dict[str, Any]], more: Mapping[str, Any]) -> bytes:
        return _encoded({**self._head, "choices": choices, **more})


def _logprob_lists(logprobs: Sequence[TokenLogprob], offsets: Sequence[int]) -> dict[str, list[Any]]:
    """The legacy shape: four lists of one length, in the order of `_LISTS`."""
    return {
        "tokens": [_shown(one) for one in logprobs],
        "token_logprobs": [max(one.logprob, _LEAST) for one in logprobs],
        "top_logprobs": [{_shown(each): max(each.logprob, _LEAST) for each in (*one.top, one)} for one in logprobs],
        "text_offset": list(offsets),
    }


def _shown(one: TokenLogprob) -> str:
    """A part of a character has no text: OpenAI writes its bytes, which are all different."""
    try:
        one.bytes.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in one.bytes)
    return one.text


def fold_completion(events: Iterable[bytes], summary: bytes) -> bytes:
    """The answer as one object; a recorded error is raised as what it was.

    Log probabilities are joined as they are: parsed, those of a long answer are millions of objects.
    """
    head: dict[str, Any] = {}
    texts: dict[int, list[str]] = {}
    ends: dict[int, dict[str, Any]] = {}
    logprobs: dict[int, list[Sequence[bytes]]] = {}
    for event in events:
        if event == DONE:
            continue
        chunk, lists = _without_logprobs(event)
        if error := chunk.get("error"):
            raise error_with_code(
                error["message"], error["type"], error["code"], error["param"], chunk.get("retry_after")
            )
        head = head or {name: value for name, value in chunk.items() if name not in ("choices", "usage")}
        for part in chunk["choices"]:
            index = part["index"]
            texts.setdefault(index, []).append(part["text"])
            if lists:
                logprobs.setdefault(index, []).append(lists)
            if part["finish_reason"]:
                ends[index] = {name: part[name] for name in ("finish_reason", "cancelled") if name in part}
    choices = [
        b'%b,"logprobs":%b,%b'
        % (
            _encoded({"index": index, "text": "".join(pieces)})[:-1],
            _joined(logprobs[index]) if index in logprobs else b"null",
            _encoded(ends[index])[1:],
        )
        for index, pieces in sorted(texts.items())
    ]
    usage = _encoded({"usage": json.loads(summary)["usage"]})
    return b'%b,"choices":[%b],%b' % (_encoded(head)[:-1], b",".join(choices), usage[1:])


def _without_logprobs(event: bytes) -> tuple[dict[str, Any], Sequence[bytes]]:
    """A chunk, and its four lists as JSON. In a JSON string the quotes of what is searched are escaped."""
    before, found, rest = event.partition(b'"logprobs":{"tokens":[')
    if not found:
        chunk: dict[str, Any] = json.loads(event)
        return chunk, ()
    lists: list[bytes] = []
    for mark in (*(b'],"%b":[' % name.encode() for name in _LISTS[1:]), b']},"finish_reason":'):
        entries, _, rest = rest.partition(mark)
        lists.append(entries)
    chunk = json.loads(before + b'"logprobs":null,"finish_reason":' + rest)
    return chunk, lists


def _joined(pieces: Sequence[Sequence[bytes]]) -> bytes:
    lists = (
        b'"%b":[%b]' % (name.encode(), b",".join(lists[number] for lists in pieces))
        for number, name in enumerate(_LISTS)
    )
    return b"{%b}" % b",".join(lists)


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
