"""The output items of one response, and the events about them as they grow."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any

from tis.chat.parts import ServerCall
from tis.openai_api.store.items import Item, output_id, tool_list_id
from tis.openai_api.wire.citations import ReturnedUrls
from tis.openai_api.wire.client_tools import OF_CALLS
from tis.openai_api.wire.compacted_context import compaction_item
from tis.openai_api.wire.custom_tools import CustomInput
from tis.openai_api.wire.encoded_json import EncodedList, encode_json
from tis.openai_api.wire.sealed_text import sealed

# What the events of a growing call are called, and the field of its item that grows.
_CALLS = {
    "function_call": ("function_call_arguments", "arguments"),
    "mcp_call": ("mcp_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}


@dataclass(frozen=True, slots=True)
class _PartShape:
    """The names in the events of the one part that an item grows by."""

    type: str
    text: str  # what its events are called
    part: str = "content_part"
    among: str = "content"  # of the item
    index: str = "content_index"


_TEXT = _PartShape("output_text", "output_text")
_REASONING = _PartShape("reasoning_text", "reasoning_text")
# The reasoning itself, where OpenAI has a summary of it: many clients look for nothing else.
_SUMMARY = _PartShape("summary_text", "reasoning_summary_text", "reasoning_summary_part", "summary", "summary_index")


@dataclass(slots=True)
class NumberedEvents:
    """Encodes events, numbered without holes."""

    next_number: int = 0

    def event(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        body = {"type": kind, **fields, "sequence_number": self.next_number}
        self.next_number += 1
        return encode_json(body)

    def delta(self, around: tuple[bytes, bytes], text: str) -> bytes:
        """What `event` makes of it; but only text and number are written anew, as this is the path of every token."""
        number = self.next_number
        self.next_number += 1
        return b"%s%s%s%d}" % (around[0], encode_basestring(text).encode(), around[1], number)


@dataclass(slots=True)
class _OpenItem:
    """The item that grows."""

    item: Item
    kind: str
    shape: _PartShape | None  # None: it is a call, which grows by its arguments
    around: tuple[bytes, bytes] | None  # of its deltas; None: it has no deltas
    text: list[str] = field(default_factory=list)
    logprobs: EncodedList = field(default_factory=EncodedList)


class OutputItems:
    def __init__(
        self,
        response_id: str,
        numbered: NumberedEvents,
        *,
        summarises: bool = False,
        seals_reasoning: bool = False,
        calls: Mapping[str, str] | None = None,
        namespaces: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`calls`: the types of the items that calls of some tools become, by the names that the model has for them.

        `namespaces`: those of some tools, and the names that they have there.
        """
        self._response_id = response_id
        self._numbered = numbered
        self._shapes = {"message": _TEXT, "reasoning": _SUMMARY if summarises else _REASONING}
        self._seals_reasoning = seals_reasoning
        self._calls = calls or {}
        self._namespaces = namespaces or {}
        self._input = CustomInput()  # of the call of a custom tool that grows
        self._done: list[Item] = []
        self._open: _OpenItem | None = None
        self._early_logprobs: list[Any] = []  # of tokens without text, before a message that may come
        self._asking: ServerCall | None = None  # a call that needs an approval: an item once it is whole
        self._is_compacting = False
        self._call_items: dict[int, int] = {}  # the place of each call of an MCP server
        self._with_arguments_done: set[int] = set()
        self._returned_urls = ReturnedUrls()

    @property
    def is_empty(self) -> bool:
        return not (self._done or self._open or self._is_compacting)

    def items(self, *, is_over: bool = False) -> list[Item]:
        """As they are now."""
        status = "incomplete" if is_over else "in_progress"
        return [*self._done, *([self._whole(self._open, status)] if self._open else [])]

    def text(self, text: str, logprobs: Sequence[Any] = ()) -> list[bytes]:
        """Tokens without text make no message: those behind a call may be all that comes."""
        if not text and (self._open is None or self._open.kind != "message"):
            self._early_logprobs += logprobs
            return []
        return self._message(text, logprobs)

    def empty_message(self) -> list[bytes]:
        return self._message("", ())

    def reasoning(self, text: str) -> list[bytes]:
        return self._grow("reasoning", text)

    def start_call(self, name: str, call_id: str) -> list[bytes]:
        """Of a tool that the client runs."""
        events, kind = self.close(), self._calls.get(name, "function_call")
        if tool := OF_CALLS.get(kind):
            return events + self._add(kind, {"call_id": call_id, **tool.begun()})
        self._input = CustomInput()
        _, grows = _CALLS[kind]
        named = {"name": name}
        if place := self._namespaces.get(name):
            named = {"namespace": place[0], "name": place[1]}
        return events + self._add(kind, {"call_id": call_id, **named, grows: ""})

    def call_arguments(self, text: str) -> list[bytes]:
        kind = self._open.kind if self._open else "function_call"
        if kind == "custom_tool_call":
            text = self._input.add(text)
        return self._grow(kind, text) if text else []

    def start_server_call(self, call: ServerCall, *, needs_approval: bool = False) -> list[bytes]:
        events = self.close()
        if needs_approval:
            self._asking = call
            return events
        self._call_items[call.number] = len(self._done)
        approval = {"approval_request_id": call.approval_request_id}
        named = {"server_label": call.label, "name": call.name, "arguments": ""}
        events += self._add("mcp_call", {**approval, **named, "output": None, "error": None})
        assert self._open
        return [*events, self._event("response.mcp_call.in_progress", self._place(self._open.item))]

    def server_call_arguments(self, text: str) -> list[bytes]:
        return [] if self._asking else self._grow("mcp_call", text)

    def approved_call(self, call: ServerCall) -> list[bytes]:
        return self.start_server_call(call) + self._grow("mcp_call", call.arguments) + self.close()

    def begin_server_call(self, call: ServerCall) -> list[bytes]:
        """The event that ends the arguments has the record that the call begins: the store has it before the call."""
        number = self._call_items[call.number]
        self._with_arguments_done.add(number)
        item = self._done[number]
        place = {"item_id": item["id"], "output_index": number}
        return [self._event("response.mcp_call_arguments.done", {**place, "arguments": item["arguments"]})]

    def end_server_call(self, call: ServerCall) -> list[bytes]:
        number = self._call_items[call.number]
        events = [] if number in self._with_arguments_done else self.begin_server_call(call)
        status = "failed" if call.error else "completed"
        self._done[number] |= {"status": status, "output": call.output, "error": call.error}
        self._returned_urls.add(call.output)
        return [*events, self._about(number, f"mcp_call.{status}"), self._item_done(number)]

    def drop_server_call(self, call: ServerCall) -> list[bytes]:
        """Nobody will make it any more."""
        events = self.close("incomplete")
        number = self._call_items[call.number]
        if self._done[number]["status"] != "in_progress":
            return events
        if number not in self._with_arguments_done:
            events += self.begin_server_call(call)
        self._done[number] |= {"status": "incomplete"}
        return [*events, self._item_done(number)]

    def start_compaction(self) -> list[bytes]:
        """No list has it before it is done: what is empty must not take the place of a conversation."""
        number, self._is_compacting = len(self._done), True
        item = compaction_item(output_id(self._response_id, "compaction", number), "")
        place = {"item_id": item["id"], "output_index": number}
        return [
            self._event("response.output_item.added", {"output_index": number, "item": item}),
            self._event("response.compaction.compacting", place),
        ]

    def end_compaction(self, encrypted_content: str) -> list[bytes]:
        number, self._is_compacting = len(self._done), False
        self._done.append(compaction_item(output_id(self._response_id, "compaction", number), encrypted_content))
        return [self._item_done(number)]

    def start_tool_list(self, label: str, server_url: str) -> list[bytes]:
        number = len(self._done)
        item: Item = {"id": tool_list_id(self._response_id, number, server_url), "type": "mcp_list_tools"}
        item |= {"server_label": label, "tools": [], "error": None}
        events = [*self.close(), self._event("response.output_item.added", {"output_index": number, "item": item})]
        self._done.append(item)
        return [*events, self._about(number, "mcp_list_tools.in_progress")]

    def end_tool_list(self, tools: Sequence[Mapping[str, Any]], error: str | None) -> list[bytes]:
        number = len(self._done) - 1
        self._done[number] |= {"tools": list(tools), "error": error}
        return [self._about(number, f"mcp_list_tools.{'failed' if error else 'completed'}"), self._item_done(number)]

    def close(self, status: str = "completed") -> list[bytes]:
        """Ends the item that grows, if there is one."""
        self._early_logprobs = []
        if self._asking:
            return self._close_request(status)
        if self._open is None:
            return []
        events = self._rest_of_input()
        grown, self._open = self._open, None
        item, place, text = self._whole(grown, status), self._place(grown.item), "".join(grown.text)
        number = len(self._done)
        if grown.kind == "mcp_call":
            self._done.append({**item, "status": "in_progress"})  # until a server has answered
            return []
        if grown.kind in OF_CALLS:
            events = self._shell_commands(item) if grown.kind == "shell_call" else []
        elif (shape := grown.shape) is None:
            name, grows = _CALLS[grown.kind]
            named = {"name": item["name"]} if grown.kind == "function_call" else {}
            events.append(self._event(f"response.{name}.done", {**place, **named, grows: text}))
        else:
            part, within = item[shape.among][0], {**place, shape.index: 0}
            whole = {"text": text, **({"logprobs": grown.logprobs} if grown.kind == "message" else {})}
            events = [
                *(self._cited(part, within) if shape is _TEXT else ()),
                self._event(f"response.{shape.text}.done", {**within, **whole}),
                self._event(f"response.{shape.part}.done", {**within, "part": part}),
            ]
        self._done.append(item)
        return [*events, self._item_done(number)]

    def _cited(self, part: Item, within: Mapping[str, Any]) -> list[bytes]:
        """Adds the citations to a part whose text is complete."""
        part["annotations"] = [one.of_response() for one in self._returned_urls.cited_in(part["text"])]
        return [
            self._event(
                "response.output_text.annotation.added", {**within, "annotation_index": number, "annotation": one}
            )
            for number, one in enumerate(part["annotations"])
        ]

    def _rest_of_input(self) -> list[bytes]:
        rest = self._input.end() if self._open and self._open.kind == "custom_tool_call" else ""
        return self._grow("custom_tool_call", rest) if rest else []

    def _shell_commands(self, item: Item) -> list[bytes]:
        """A command is certain once all arguments are there."""
        events = []
        for number, command in enumerate(item["action"]["commands"]):
            place = {"output_index": len(self._done), "command_index": number}
            events += [
                self._event("response.shell_call_command.added", {**place, "command": ""}),
                self._event("response.shell_call_command.delta", {**place, "delta": command}),
                self._event("response.shell_call_command.done", {**place, "command": command}),
            ]
        return events

    def _close_request(self, status: str) -> list[bytes]:
        assert self._asking
        call, self._asking = self._asking, None
        if status != "completed":
            return []  # nobody can approve half a call
        number = len(self._done)
        named = {"server_label": call.label, "name": call.name, "arguments": call.arguments}
        kind = "mcp_approval_request"
        item: Item = {"id": output_id(self._response_id, kind, number), "type": kind, **named}
        self._done.append(item)
        return [
            self._event("response.output_item.added", {"output_index": number, "item": item}),
            self._item_done(number),
        ]

    def _message(self, text: str, logprobs: Sequence[Any]) -> list[bytes]:
        early, self._early_logprobs = self._early_logprobs, []
        return self._grow("message", text, [*early, *logprobs])

    def _grow(self, kind: str, text: str, logprobs: Sequence[Any] = ()) -> list[bytes]:
        events: list[bytes] = []
        if self._open is None or self._open.kind != kind:
            events = self.close() + self._add(kind, {})
        assert self._open
        self._open.text.append(text)
        if logprobs:
            self._open.logprobs.extend(logprobs)
            within = {**self._place(self._open.item), "content_index": 0}
            delta = {**within, "delta": text, "logprobs": list(logprobs)}
            events.append(self._event("response.output_text.delta", delta))
        elif text and self._open.around:
            events.append(self._numbered.delta(self._open.around, text))
        return events

    def _add(self, kind: str, more: Mapping[str, Any]) -> list[bytes]:
        number = len(self._done)
        item: Item = {"id": output_id(self._response_id, kind, number), "type": kind, "status": "in_progress"}
        item |= more
        if kind == "message":
            item |= {"role": "assistant", "content": []}
        elif kind == "reasoning":
            item |= {"summary": [], "content": [], "encrypted_content": None}
        place, shape = self._place(item), self._shapes.get(kind)
        self._open = _OpenItem(item, kind, shape, None if kind in OF_CALLS else _around(place, kind, shape))
        events = [self._event("response.output_item.added", {"output_index": number, "item": item})]
        if shape:
            part = {**place, shape.index: 0, "part": _part(shape, "", EncodedList())}
            events.append(self._event(f"response.{shape.part}.added", part))
        return events

    def _whole(self, grown: _OpenItem, status: str) -> Item:
        item, text = {**grown.item, "status": status}, "".join(grown.text)
        if tool := OF_CALLS.get(grown.kind):
            whole = tool.whole(text)
            return item | (whole or {}) | {"status": tool.status(status, is_whole=whole is not None)}
        if grown.shape is None:
            _, grows = _CALLS[grown.kind]
            return item | {grows: text}
        if grown.kind == "reasoning" and self._seals_reasoning and status != "in_progress":
            item["encrypted_content"] = sealed(text)
        return item | {grown.shape.among: [_part(grown.shape, text, grown.logprobs)]}

    def _place(self, item: Item) -> dict[str, Any]:
        return {"item_id": item["id"], "output_index": len(self._done)}

    def _about(self, number: int, kind: str) -> bytes:
        return self._event(f"response.{kind}", {"item_id": self._done[number]["id"], "output_index": number})

    def _item_done(self, number: int) -> bytes:
        return self._event("response.output_item.done", {"output_index": number, "item": self._done[number]})

    def _event(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        return self._numbered.event(kind, fields)


def _part(shape: _PartShape, text: str, logprobs: EncodedList) -> Item:
    part: Item = {"type": shape.type, "text": text}
    return part | ({"annotations": [], "logprobs": logprobs} if shape is _TEXT else {})


def _around(place: Mapping[str, Any], kind: str, shape: _PartShape | None) -> tuple[bytes, bytes]:
    name, index = (shape.text, {shape.index: 0}) if shape else (_CALLS[kind][0], {})
    before = {"type": f"response.{name}.delta", **place, **index}
    start = json.dumps(before, separators=(",", ":")).encode()[:-1] + b',"delta":'
    return start, (b',"logprobs":[]' if shape is _TEXT else b"") + b',"sequence_number":'
