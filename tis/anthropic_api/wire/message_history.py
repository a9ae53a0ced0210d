"""The conversation of a request as chat messages, and where each stands in the request.

A tool result is a block of the user for Anthropic, and a message of its own for chat templates. Messages of one role
in a row are one, because many templates want the roles to alternate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tis.anthropic_api.wire.message_blocks import (
    OF_USERS,
    PlacedPart,
    chat_content,
    parts_of,
    parts_of_block,
    refused,
    required_text,
    text_of_blocks,
)
from tis.anthropic_api.wire.messages_request import InputMessage, MessageBlock
from tis.anthropic_api.wire.thinking_signature import signed_thinking
from tis.anthropic_api.wire.tool_changes import ADDITION, REMOVAL, ToolsInEffect
from tis.errors import BadRequest

# Claude Code puts it before its system prompt. It is for the bill of Anthropic, and differs from request to request: no
# prefix of a prompt would ever be found in the cache.
_BILLING = "x-anthropic-billing-header:"


@dataclass(slots=True)
class HistoryMessage:
    """A chat message that grows while blocks are added to it."""

    role: str
    place: str
    parts: list[PlacedPart] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # of an assistant
    reasoning: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (any(self.texts) or self.calls or any(self.reasoning))

    def as_chat(self) -> tuple[dict[str, Any], list[str]]:
        """The message, and the places of its parts."""
        message: dict[str, Any] = {"role": self.role, **self.more}
        if self.role != "assistant":
            message["content"], places = chat_content(self.parts)
            return message, places
        message["content"] = "".join(self.texts)
        if self.reasoning:
            message["reasoning_content"] = "\n\n".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return message, []


class MessageHistory:
    def __init__(self, tools: ToolsInEffect) -> None:
        self.tools = tools
        self.ignored: dict[str, None] = {}  # the paths of what was dropped
        self._messages: list[HistoryMessage] = []
        self._names: dict[str, str] = {}  # of the tools that were called, by the ids of the calls
        self._waiting: dict[str, str] = {}  # the places of calls without a result, by their ids

    def add_system(self, content: str | Sequence[MessageBlock] | None, where: str) -> None:
        if isinstance(content, list):
            for number, block in enumerate(content):
                if block.type in (ADDITION, REMOVAL):
                    self.tools.change(block, f"{where}.{number}")
            said = [one for one in content if one.type not in (ADDITION, REMOVAL)]
            content = [one for one in said if not (one.text or "").startswith(_BILLING)]
        if text := text_of_blocks(content, where):
            self._grow("system", where).parts.append(PlacedPart(where, {"type": "text", "text": text}))

    def add(self, message: InputMessage, where: str) -> None:
        content = f"{where}.content"
        if message.content is None:
            if message.role != "system" or message.output_config is None:
                raise BadRequest(f"{content}: Field required", param=content, code="missing_required_parameter")
        elif message.role == "system":
            self.add_system(message.content, content)
        elif message.role == "user":
            self._add_of_user(message.content, content)
        elif isinstance(message.content, str):
            self._grow("assistant", where).texts.append(message.content)
        else:
            self._grow("assistant", where)
            for number, block in enumerate(message.content):
                self._add_of_assistant(block, f"{content}.{number}")

    def end(self) -> bool:
        """Returns whether the last message is one to continue."""
        self._drop_empty()
        last = self._messages[-1] if self._messages else None
        if last is None or last.role != "assistant":
            return False
        if last.calls:
            place = self._waiting.get(last.calls[-1]["id"], last.place)
            raise BadRequest(f"{place}: the call needs a tool_result in a message of the user behind it.", param=place)
        if not any(last.texts):
            self._messages.pop()
            return False
        return True

    def _drop_empty(self) -> None:
        """What stood before and behind an answer of which nothing is left is one message."""
        given, self._messages = self._messages, []
        for one in given:
            last = self._messages[-1] if self._messages else None
            if last and last.role == one.role and one.role in ("user", "system"):
                last.parts += one.parts
            elif one.role != "assistant" or not one.is_empty:
                self._messages.append(one)

    def as_chat(self) -> tuple[list[dict[str, Any]], list[tuple[str, list[str]]]]:
        """The messages; for each its place, and those of its parts."""
        made = [(one.place, *one.as_chat()) for one in self._messages]
        return [message for _, message, _ in made], [(place, places) for place, _, places in made]

    def _grow(self, role: str, where: str) -> HistoryMessage:
        if not self._messages or self._messages[-1].role != role:
            self._messages.append(HistoryMessage(role, where))
        return self._messages[-1]

    def _add_of_user(self, content: str | Sequence[MessageBlock], where: str) -> None:
        if isinstance(content, str):
            self._grow("user", where).parts += parts_of(content, where)
            return
        for number, block in enumerate(content):
            place = f"{where}.{number}"
            self._note_citations(block)
            if block.type == "tool_result":
                self._add_result(block, place)
            else:
                self._grow("user", place).parts += parts_of_block(block, place)

    def _add_result(self, block: MessageBlock, where: str) -> None:
        call_id = required_text(block.tool_use_id, f"{where}.tool_use_id")
        self._waiting.pop(call_id, None)
        parts = parts_of(block.content, f"{where}.content")
        if block.is_error:
            parts = _as_error(parts, where)
        name = self._names.get(call_id)
        more = {"tool_call_id": call_id, **({"name": name} if name else {})}
        self._messages.append(HistoryMessage("tool", where, parts, more=more))

    def _add_of_assistant(self, block: MessageBlock, where: str) -> None:
        match block.type:
            case "text":
                text = required_text(block.text, f"{where}.text")
                self._grow("assistant", where).texts.append(text)
            case "thinking" | "redacted_thinking":
                self._add_thinking(block, where)
            case "tool_use" | "mcp_tool_use":
                self._add_call(block, where)
            case "mcp_tool_result":
                self._add_result(block, where)
            case "compaction":
                self._compact(block, where)
            case other if other in OF_USERS or other == "tool_result":
                raise refused(f"{where}.type", f"blocks of type {other[:40]!r} are not supported in this role.")
            case other:  # of tools that run on Anthropic's servers: a conversation that began there goes on
                self.ignored[f"messages.content.{other}"] = None

    def _compact(self, block: MessageBlock, where: str) -> None:
        """A summary takes the place of all before it, which clients may leave out. A failed one has no content."""
        text = text_of_blocks(block.content, f"{where}.content")
        if not text:
            if block.encrypted_content:
                raise refused(f"{where}.encrypted_content", "this server cannot read a compaction without its content.")
            self.ignored["messages.content.compaction"] = None
            return
        self._messages = [one for one in self._messages if one.place == "system"]
        self._waiting.clear()
        summary = {"type": "text", "text": f"<summary>\n{text}\n</summary>"}
        self._grow("user", where).parts.append(PlacedPart(where, summary))
        for number, change in enumerate(block.tool_changes or ()):
            self.tools.change(change, f"{where}.tool_changes.{number}")

    def _add_thinking(self, block: MessageBlock, where: str) -> None:
        if block.type == "thinking":
            text = required_text(block.thinking, f"{where}.thinking")
            found = signed_thinking(text, block.signature or "")
        else:
            found = signed_thinking("", block.data or "")
        if found is None:
            self.ignored[f"messages.content.{block.type}"] = None
        elif found:
            self._grow("assistant", where).reasoning.append(found)

    def _add_call(self, block: MessageBlock, where: str) -> None:
        call_id, name = required_text(block.id, f"{where}.id"), required_text(block.name, f"{where}.name")
        self._names[call_id], self._waiting[call_id] = name, where
        function = {"name": name, "arguments": block.input or {}}
        self._grow("assistant", where).calls.append({"id": call_id, "type": "function", "function": function})

    def _note_citations(self, block: MessageBlock) -> None:
        if isinstance(block.citations, dict) and block.citations.get("enabled"):
            self.ignored["messages.content.citations"] = None


def _as_error(parts: list[PlacedPart], where: str) -> list[PlacedPart]:
    """Chat templates have no field for it."""
    first = parts[0].text if parts else ""
    if first is None:
        return [PlacedPart(where, {"type": "text", "text": "Error:"}), *parts]
    if first[:5].lower() == "error":
        return parts
    return [PlacedPart(where, {"type": "text", "text": f"Error: {first}".rstrip()}), *parts[1:]]
