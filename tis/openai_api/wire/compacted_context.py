"""What a compaction item holds: the messages that take the place of a longer conversation, and how they are chosen.

They are the messages of the system, those of the user as far as there is room, the summary as the answer to these, and
what the model has not answered yet. So roles alternate, as many chat templates demand. The tools that searches of the
client have found lie beside them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tis.engine.prompt import MediumKind
from tis.errors import BadRequest, ServiceError
from tis.http.json_scan import JsonScanner
from tis.openai_api.store.items import MEDIA_KINDS, Item, input_id
from tis.openai_api.wire.sealed_text import sealed, unsealed

COMPACTION = "compaction"
COMPACTION_TRIGGER = "compaction_trigger"
REQUEST_OF_SUMMARY = (
    "Summarise our conversation so far, in its language, so that you can go on from the summary alone. Keep what I"
    " asked for, names, numbers, paths, decisions and results word for word; say what is done and what is still open."
    " Write the summary and nothing else."
)
_GO_ON = "Go on."
_NO_SUMMARY = "(There is no summary.)"
_WORDS: Mapping[MediumKind, str] = {"image": "[picture]", "video": "[video]", "audio": "[sound]"}
_SYSTEM_ROLES = ("system", "developer")
_ROLES = (*_SYSTEM_ROLES, "user", "assistant", "tool")
_FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id", "reasoning_content", "name"})
_NOT_FOR_THE_MODEL = ("mcp_list_tools", "mcp_approval_request")  # the server needs them still
_MAX_BYTES = 16 * 2**20  # of one item
_MAX_VALUES = 30_000  # a body may have many items
# Of the tools in it.
_MAX_TOOL_BYTES, _MAX_TOOL_VALUES = 2**18, 10_000
_REPLACING = '{"compaction":1,"replaces":true,"'
_START_CHARS = len(sealed(_REPLACING))
Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the next request needs to know of tools, beside the messages."""

    found: Sequence[Mapping[str, Any]] = ()  # by searches of the client, as these have them
    call_ids: Mapping[str, str] = field(default_factory=dict)  # by the id of the item, which outputs may name instead

    def to_seal(self, messages: Sequence[Message]) -> dict[str, Any]:
        open_calls = {call["id"] for message in messages for call in message.get("tool_calls") or ()}
        call_ids = {name: call_id for name, call_id in self.call_ids.items() if call_id in open_calls}
        more = {"tools": _newest_tools(self.found), "call_ids": call_ids}
        return {name: given for name, given in more.items() if given}


@dataclass(frozen=True, slots=True)
class ContextSplit:
    """Positions of messages."""

    system: Sequence[int]  # they stay
    head: Sequence[int]  # what is summarised
    tail: Sequence[int]  # what the model has not answered yet: it stays

    @classmethod
    def before_answer(cls, messages: Sequence[Message]) -> "ContextSplit":
        start = _open_calls_start(messages)
        if start == len(messages):
            while start and messages[start - 1]["role"] in ("user", *_SYSTEM_ROLES):
                start -= 1
            if start == len(messages):
                start -= 1  # an answer that is to go on
        return cls._at(messages, start)

    @classmethod
    def of_everything(cls, messages: Sequence[Message]) -> "ContextSplit":
        """No answer follows. But a call stays with its outputs, of which the client may send more."""
        return cls._at(messages, _open_calls_start(messages))

    @classmethod
    def _at(cls, messages: Sequence[Message], start: int) -> "ContextSplit":
        positions = range(start)
        system = [at for at in positions if messages[at]["role"] in _SYSTEM_ROLES]
        tail = list(range(start, len(messages)))
        return cls(system, [at for at in positions if messages[at]["role"] not in _SYSTEM_ROLES], tail)

    def compacted(self, messages: Sequence[Message] | Mapping[int, Message], said: Sequence[str]) -> list[Message]:
        """The messages that take the place of all. The summary is still missing: see `summary_at`."""
        tail = [messages[at] for at in self.tail]
        between = [{"role": "user", "content": _GO_ON}] if tail and tail[0]["role"] == "assistant" else []
        asked = "\n\n".join([*said, REQUEST_OF_SUMMARY])
        summary = {"role": "assistant", "content": _NO_SUMMARY}
        return [*(messages[at] for at in self.system), {"role": "user", "content": asked}, summary, *between, *tail]

    @property
    def summary_at(self) -> int:
        """Its place in `compacted`."""
        return len(self.system) + 1

    def said(self, messages: Sequence[Message]) -> list[str]:
        """What the user said in the head. Of an earlier compaction, without the request to summarise."""
        texts = [plain_text(without_media(messages[at])) for at in self.head if messages[at]["role"] == "user"]
        texts = [text.removesuffix(REQUEST_OF_SUMMARY).rstrip() for text in texts]
        return [text for text in texts if text and text != _GO_ON]


def asking_for_summary(head: Sequence[Message]) -> list[Message]:
    """`head`: messages without media."""
    asked, before = REQUEST_OF_SUMMARY, list(head)
    if before and before[-1]["role"] == "user":
        asked = f"{plain_text(before.pop())}\n\n{asked}"
    return [*before, {"role": "user", "content": asked}]


def _open_calls_start(messages: Sequence[Message]) -> int:
    """Where the calls begin whose outputs end the conversation, or are still to come; else its end."""
    start = len(messages)
    while start and messages[start - 1]["role"] == "tool":
        start -= 1
    if start and messages[start - 1].get("tool_calls"):
        return start - 1
    return len(messages)


def plain_text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content or ())


def without_media(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": "".join(map(_text_of, content))}


def _text_of(part: Mapping[str, Any]) -> str:
    if "text" in part or "refusal" in part:
        return str(part.get("text") or part.get("refusal") or "")
    return _WORDS[MEDIA_KINDS.get(part["type"], "image")]


def context_to_seal(
    messages: Sequence[Message], summary_at: int, tools: ToolContext, *, replaces: bool
) -> dict[str, Any]:
    """`replaces`: the item takes the place of all that lies before it; else it goes on behind that."""
    kept = [dict(without_media(one)) for one in messages]
    return {"messages": kept, "summary_at": summary_at, "replaces": replaces, "beside": tools.to_seal(kept)}


def _newest_tools(tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    kept: list[Mapping[str, Any]] = []
    num_bytes = num_values = 0
    for tool in reversed(tools):
        scanner = JsonScanner(_MAX_BYTES)
        scanner.add(json.dumps(tool, ensure_ascii=False).encode(), is_last=True)
        num_bytes += scanner.body.num_bytes
        num_values += scanner.body.num_values
        if num_bytes > _MAX_TOOL_BYTES or num_values > _MAX_TOOL_VALUES:
            break
        kept.append(tool)
    return kept[::-1]


def sealed_context(context: Mapping[str, Any], summary: str) -> str:
    messages, at = list(context["messages"]), context["summary_at"]
    messages[at] = {**messages[at], "content": summary or _NO_SUMMARY}
    form = {"compaction": 1, "replaces": context["replaces"], "messages": messages}  # in this order: see `_REPLACING`
    form |= context.get("beside", {})
    return sealed(json.dumps(form, ensure_ascii=False, separators=(",", ":")))


def compaction_item(item_id: str, encrypted_content: str) -> Item:
    return {"id": item_id, "type": COMPACTION, "encrypted_content": encrypted_content}


def checked_compaction(item: Item, where: str) -> Item:
    """What another server has compacted cannot be read, and to leave it out would be to forget in silence."""
    context = _context_in(item.get("encrypted_content"))
    if context is None:
        param = f"{where}.encrypted_content"
        raise BadRequest(
            f"{param}: this server did not make this compaction. Send the items that it stands for.",
            param=param,
            code="invalid_encrypted_content",
        )
    return {"type": COMPACTION, "encrypted_content": item["encrypted_content"]}


def messages_in(item: Item) -> list[dict[str, Any]]:
    context = _context_in(item["encrypted_content"])
    return context["messages"] if context else []


def tools_in(item: Item) -> ToolContext:
    context = _context_in(item["encrypted_content"]) or {}
    return ToolContext(context.get("tools", ()), context.get("call_ids", {}))


def replaces_earlier(item: Item) -> bool:
    """Looks at the beginning only: of a checked item, or of one that the server made."""
    return item["type"] == COMPACTION and unsealed(item["encrypted_content"][:_START_CHARS]) == _REPLACING


def said_in(items: Sequence[Item], owner_id: str) -> list[Item]:
    """The messages that are not the assistant's, also those that an earlier compaction has kept."""
    found: list[Item] = []
    for item in items:
        if item["type"] == "message" and item["role"] != "assistant":
            found.append(item)
        elif replaces_earlier(item):
            for message in messages_in(item):
                text = plain_text(message).removesuffix(REQUEST_OF_SUMMARY).rstrip()
                if message["role"] in ("user", *_SYSTEM_ROLES) and text not in ("", _GO_ON):
                    content = [{"type": "input_text", "text": text}]
                    item_id = input_id(owner_id, "message", len(found))
                    said = {"id": item_id, "type": "message", "role": message["role"], "content": content}
                    found.append({**said, "status": "completed"})
    return found


def awaits_approval(items: Sequence[Item]) -> bool:
    """Whoever answers may name the response before alone, whose items end at a compaction."""
    answered = {item["approval_request_id"] for item in items if item["type"] == "mcp_approval_response"}
    return any(item["type"] == "mcp_approval_request" and item["id"] not in answered for item in items)


def places_in_context(items: Sequence[Item]) -> list[int]:
    """The positions of the items that count: not those whose place the newest compaction takes."""
    start = next((at for at in reversed(range(len(items))) if replaces_earlier(items[at])), 0)
    return [at for at in range(len(items)) if at >= start or items[at]["type"] in _NOT_FOR_THE_MODEL]


def _context_in(encrypted_content: Any) -> dict[str, Any] | None:
    text = unsealed(encrypted_content)
    if text is None:
        return None
    try:
        data = text.encode()
        scanner = JsonScanner(_MAX_BYTES)
        scanner.add(data, is_last=True)
        if scanner.body.num_values > _MAX_VALUES:
            return None
        context = json.loads(data, parse_constant=_no_number)
        json.dumps(context, ensure_ascii=False).encode()  # fails at half a surrogate pair
    except (ValueError, RecursionError, ServiceError):
        return None
    if not isinstance(context, dict) or context.get("compaction") != 1:
        return None
    messages, tools, call_ids = context.get("messages"), context.get("tools", []), context.get("call_ids", {})
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return None
    if not isinstance(call_ids, dict) or not all(isinstance(one, str) for one in call_ids.values()):
        return None
    return context if isinstance(messages, list) and messages and all(map(_is_message, messages)) else None


def _is_message(given: Any) -> bool:
    """As `sealed_context` writes them; the rest is checked with all other messages."""
    if not isinstance(given, dict) or not _FIELDS.issuperset(given) or given.get("role") not in _ROLES:
        return False
    calls = given.get("tool_calls", [])
    if not isinstance(calls, list) or not all(
        isinstance(one, dict) and isinstance(one.get("id"), str) for one in calls
    ):
        return False
    return isinstance(given.get("content", ""), str)


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
