"""`context` of /api/generate: the conversation so far as a list of numbers, which clients send with the next prompt.

Ollama's are the tokens of the prompt and the answer. No client reads them, so ours are the messages, three bytes in a
number: the chat template prints them anew, also that of another model. A picture is not in it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tis.errors import BadRequest

MAX_CONTEXT = 2**15  # numbers: 96 KiB
_BYTES = 3  # of a number, so that it fits into 32 bits
_MARK = b"tis"
_PICTURE = "[picture]"
_ROLES = ("system", "user", "assistant")
TextMessage = Mapping[str, str]


def context_of(messages: Sequence[TextMessage]) -> list[int] | None:
    """None if the conversation is too long for one."""
    told = [{"role": one["role"], "content": one["content"]} for one in messages]
    data = _MARK + json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if len(data) > MAX_CONTEXT * _BYTES:
        return None
    data += b" " * (-len(data) % _BYTES)
    return [int.from_bytes(data[at : at + _BYTES], "big") for at in range(0, len(data), _BYTES)]


def max_answer_chars(messages: Sequence[TextMessage]) -> int:
    """An answer with more of them makes the conversation too long for a context. Below zero: it is too long already."""
    return MAX_CONTEXT * _BYTES - sum(len(one["content"]) for one in messages)


def messages_of_context(context: Sequence[int]) -> list[TextMessage]:
    try:
        data = b"".join(number.to_bytes(_BYTES, "big") for number in context)
        return list(_messages(json.loads(data.removeprefix(_MARK)) if data.startswith(_MARK) else None))
    except (OverflowError, ValueError, RecursionError):
        raise BadRequest(
            "context: this server did not make it. Leave it out, or send the conversation to /api/chat.",
            param="context",
            code="invalid_value",
        ) from None


def question(prompt: str, *, has_images: bool) -> TextMessage:
    return {"role": "user", "content": prompt or (_PICTURE if has_images else "")}


def _messages(given: Any) -> Iterator[TextMessage]:
    if not isinstance(given, list):
        raise ValueError("no messages")
    for message in given:
        match message:
            case {"role": str(role), "content": str(content)} if role in _ROLES:
                content.encode()  # fails at half a surrogate pair
                yield {"role": role, "content": content}
            case _:
                raise ValueError("no message")
