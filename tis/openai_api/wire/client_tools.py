"""Tools of the Responses API whose shape OpenAI has fixed and which the client runs: shells, patches, tool search.

To the model each is a function; its call and what came of it are items of their own.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tis.openai_api.store.items import Item
from tis.openai_api.wire.namespaces import name_for_model

_STRING = {"type": "string"}
_WHOLE = {"type": "integer"}
MAX_COMMANDS = 256


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class ClientTool:
    type: str  # of the tool; to the model, the name of a function
    description: str
    parameters: Mapping[str, Any]
    call: str  # the type of the item that calls it
    output: str  # the type of the item with what came of it
    field: str  # of the call's item, that has the arguments
    of_arguments: Callable[[Mapping[str, Any]], dict[str, Any]]
    to_arguments: Callable[[Mapping[str, Any]], dict[str, Any]]

    def function(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """As a tool of the Responses API."""
        return {
            "type": "function",
            "name": self.type,
            "description": given.get("description") or self.description,
            "parameters": given.get("parameters") or dict(self.parameters),
            "strict": True,
        }

    def begun(self) -> dict[str, Any]:
        """What the item has before its arguments are there."""
        return {self.field: self.of_arguments({}), **self._more}

    def whole(self, arguments: str) -> dict[str, Any] | None:
        """None if the arguments are none: nothing holds every model to them."""
        try:
            given = json.loads(arguments)
            json.dumps(given, ensure_ascii=False, allow_nan=False).encode()  # no half of a character, no NaN
        except (ValueError, RecursionError):
            return None
        return {self.field: self.of_arguments(given), **self._more} if isinstance(given, dict) else None

    def status(self, status: str, *, is_whole: bool) -> str:
        """Of the item. A patch has no status for one that was cut, so it stays in progress."""
        if status == "completed" and not is_whole:
            status = "incomplete"
        return "in_progress" if status == "incomplete" and self.type == "apply_patch" else status

    @property
    def _more(self) -> dict[str, Any]:
        return {"execution": "client"} if self.type == "tool_search" else {}


def _texts(given: Any) -> list[str]:
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def _whole_number(given: Any) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _local_action(given: Mapping[str, Any]) -> dict[str, Any]:
    folder = given.get("working_directory")
    return {
        "type": "exec",
        "command": _texts(given.get("command")),
        "env": {},
        "timeout_ms": _whole_number(given.get("timeout_ms")),
        "user": None,
        "working_directory": folder if isinstance(folder, str) else None,
    }


def _shell_action(given: Mapping[str, Any]) -> dict[str, Any]:
    limits = {name: _whole_number(given.get(name)) for name in ("timeout_ms", "max_output_length")}
    return {"commands": _texts(given.get("commands")), **limits}


def _operation(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = given.get("type") if given.get("type") in ("create_file", "update_file", "delete_file") else "update_file"
    texts = {name: given[name] if isinstance(given.get(name), str) else "" for name in ("path", "diff")}
    return {"type": kind, **({"path": texts["path"]} if kind == "delete_file" else texts)}


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


LOCAL_SHELL = ClientTool(
    "local_shell",
    "Run a command on the user's machine, and return its output.",
    _object(
        {
            "command": {"type": "array", "items": _STRING, "description": "The program and its arguments."},
            "working_directory": _STRING,
            "timeout_ms": _WHOLE,
        },
        ["command"],
    ),
    "local_shell_call",
    "local_shell_call_output",
    "action",
    _local_action,
    lambda action: _without_none({name: action.get(name) for name in ("command", "working_directory", "timeout_ms")}),
)
SHELL = ClientTool(
    "shell",
    "Run shell commands, and return the output of each.",
    _object(
        {
            "commands": {"type": "array", "items": _STRING, "minItems": 1, "maxItems": MAX_COMMANDS},
            "timeout_ms": _WHOLE,
            "max_output_length": {**_WHOLE, "description": "In characters, of each command."},
        },
        ["commands"],
    ),
    "shell_call",
    "shell_call_output",
    "action",
    _shell_action,
    _without_none,
)
APPLY_PATCH = ClientTool(
    "apply_patch",
    "Create, update or delete a file. A file is created or updated by a diff in the V4A format.",
    _object(
        {"type": {"enum": ["create_file", "update_file", "delete_file"]}, "path": _STRING, "diff": _STRING},
        ["type", "path"],
    ),
    "apply_patch_call",
    "apply_patch_call_output",
    "operation",
    _operation,
    _without_none,
)
TOOL_SEARCH = ClientTool(
    "tool_search",
    "Search for tools that are not listed here. Those that are found can be called afterwards.",
    _object({"query": _STRING}, ["query"]),
    "tool_search_call",
    "tool_search_output",
    "arguments",
    dict,
    dict,
)
CLIENT_TOOLS: Mapping[str, ClientTool] = {one.type: one for one in (LOCAL_SHELL, SHELL, APPLY_PATCH, TOOL_SEARCH)}
OF_CALLS: Mapping[str, ClientTool] = {one.call: one for one in CLIENT_TOOLS.values()}
OF_OUTPUTS: Mapping[str, ClientTool] = {one.output: one for one in CLIENT_TOOLS.values()}


def call_as_function(item: Item) -> Item:
    """The call of a client tool or a custom tool, as the call of the function that the tool is to the model."""
    if item["type"] == "custom_tool_call":
        name, arguments = name_for_model(item), {"input": item["input"]}
    else:
        tool = OF_CALLS[item["type"]]
        name, arguments = tool.type, tool.to_arguments(item[tool.field])
    written = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function_call", "call_id": item["call_id"], "name": name, "arguments": written}


def output_as_function(item: Item) -> Item:
    """What the model reads of the output of such a call."""
    return {"type": "function_call_output", "call_id": item["call_id"], "output": _text_of(item)}


def _text_of(item: Item) -> str | list[Item]:
    match item["type"]:
        case "shell_call_output":
            return "\n".join(_text_of_command(one) for one in item["output"])
        case "apply_patch_call_output":
            return item["output"] or (
                "The patch was applied." if item["status"] == "completed" else "The patch failed."
            )
        case "tool_search_output":
            names = [str(tool.get("name") or tool.get("type")) for tool in item["tools"]]
            return f"Found: {', '.join(names)}." if names else "No tool was found."
    output: str | list[Item] = item["output"]
    return output


def _text_of_command(one: Mapping[str, Any]) -> str:
    outcome = one["outcome"]
    end = "It timed out." if outcome["type"] == "timeout" else f"Exit code {outcome['exit_code']}."
    return "\n".join(text for text in (one["stdout"], one["stderr"], end) if text)
