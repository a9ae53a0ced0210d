"""Validates the items of tools that the client runs: custom tools, and those of `CLIENT_TOOLS`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tis.errors import BadRequest
from tis.openai_api.store.items import Item
from tis.openai_api.wire.client_tools import MAX_COMMANDS, OF_CALLS, OF_OUTPUTS, call_as_function, output_as_function
from tis.openai_api.wire.compacted_context import COMPACTION, tools_in
from tis.openai_api.wire.fields import MAX_TOOLS
from tis.openai_api.wire.namespaces import namespace_of
from tis.openai_api.wire.response_request import require_text

CLIENT_KINDS = ("custom_tool_call", *OF_CALLS, *OF_OUTPUTS)
_CALLS = ("custom_tool_call", *OF_CALLS)
_OUTPUTS = ("custom_tool_call_output", *OF_OUTPUTS)


def checked_client_item(item: Mapping[str, Any], where: str) -> Item:
    """All but `custom_tool_call_output`, which has the output of a function."""
    kind = item["type"]
    if kind == "custom_tool_call":
        texts = {name: require_text(item, name, where) for name in ("call_id", "name", "input")}
        return {"type": kind, **texts, **namespace_of(item), "status": "completed"}
    call_id = _call_id(item, where)
    if tool := OF_CALLS.get(kind):
        given = item.get(tool.field)
        if not isinstance(given, dict):
            raise _wrong(f"{where}.{tool.field}", "must be an object.")
        more = {"execution": "client"} if kind == "tool_search_call" else {}
        return {"type": kind, "call_id": call_id, tool.field: tool.of_arguments(given), **more, "status": "completed"}
    match kind:
        case "shell_call_output":
            output: Any = _command_outputs(item.get("output"), f"{where}.output")
        case "local_shell_call_output":
            output = require_text(item, "output", where)
        case "tool_search_output":
            return {
                "type": kind,
                "call_id": call_id,
                "execution": "client",
                "tools": _tools(item, where),
                "status": "completed",
            }
        case _:
            output = item["output"] if isinstance(item.get("output"), str) else None
    status = "failed" if item.get("status") == "failed" else "completed"
    return {"type": kind, "call_id": call_id, "output": output, "status": status}


def as_function_items(items: Sequence[tuple[str, Item]]) -> list[tuple[str, Item]]:
    plain: list[tuple[str, Item]] = []
    call_ids: dict[str, str] = {}  # ids may repeat: an output belongs to the call before it
    for where, item in items:
        call_ids |= call_ids_in([item])
        if item["type"] in _CALLS:
            item = call_as_function(item)
        elif item["type"] in _OUTPUTS:
            item = output_as_function({**item, "call_id": call_ids.get(item["call_id"], item["call_id"])})
        plain.append((where, item))
    return plain


def call_ids_in(items: Iterable[Item]) -> dict[str, str]:
    """By the id of the item, which the output of a local shell names where others name the `call_id`."""
    call_ids: dict[str, str] = {}
    for item in items:
        if item["type"] == COMPACTION:
            call_ids |= tools_in(item).call_ids
        elif item["type"] in _CALLS and "id" in item:
            call_ids[item["id"]] = item["call_id"]
    return call_ids


def _call_id(item: Mapping[str, Any], where: str) -> str:
    name = "id" if item["type"] == "local_shell_call_output" and item.get("call_id") is None else "call_id"
    return require_text(item, name, where)


def _command_outputs(given: Any, where: str) -> list[Item]:
    if not isinstance(given, list) or len(given) > MAX_COMMANDS:
        raise _wrong(where, f"must be a list of at most {MAX_COMMANDS} outputs.")
    checked = []
    for position, one in enumerate(given):
        place = f"{where}.{position}"
        if not isinstance(one, dict):
            raise _wrong(place, "must be an object.")
        texts = {name: require_text(one, name, place) for name in ("stdout", "stderr")}
        checked.append({**texts, "outcome": _outcome(one.get("outcome"), f"{place}.outcome")})
    return checked


def _outcome(given: Any, where: str) -> Item:
    match given:
        case {"type": "timeout"}:
            return {"type": "timeout"}
        case {"type": "exit", "exit_code": int(code)}:
            return {"type": "exit", "exit_code": code}
    raise _wrong(where, "must be an exit with an exit_code, or a timeout.")


def _tools(item: Mapping[str, Any], where: str) -> list[Item]:
    given = item.get("tools")
    if not isinstance(given, list) or len(given) > MAX_TOOLS or not all(isinstance(one, dict) for one in given):
        raise _wrong(f"{where}.tools", f"must be a list of at most {MAX_TOOLS} tools.")
    return given


def _wrong(where: str, message: str) -> BadRequest:
    return BadRequest(f"{where} {message}", param=where, code="invalid_type")
