"""Tools that Anthropic defines and the client runs: a request names only their type, and the model needs a schema."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_PATH: Schema = {"type": "string", "description": "Path of the file or folder"}
_VIEW_RANGE: Schema = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "For view: the first and the last line to show, counted from 1; -1 is the end of the file",
}


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _editor(*commands: str) -> Schema:
    properties: dict[str, Schema] = {
        "command": {"type": "string", "enum": list(commands)},
        "path": _PATH,
        "view_range": _VIEW_RANGE,
        "old_str": {**_TEXT, "description": "For str_replace: the text to replace, which must occur exactly once"},
        "new_str": {**_TEXT, "description": "For str_replace: the new text"},
        "file_text": {**_TEXT, "description": "For create: the content of the file"},
        "insert_line": {"type": "integer", "description": "For insert: the line behind which the text is put; 0: top"},
        "insert_text": {**_TEXT, "description": "For insert: the text"},
    }
    return _object(properties, "command", "path")


_EDITING = ("view", "create", "str_replace", "insert")
_BASH = (
    "bash",
    "Run a command in a bash session that stays open between calls.",
    _object(
        {
            "command": {**_TEXT, "description": "The command to run"},
            "restart": {"type": "boolean", "description": "true: start the session again"},
        }
    ),
)
_EDITOR_TEXT = "View, create and edit files: replace a text that occurs once, or insert text behind a line."
_NEW_EDITOR = ("str_replace_based_edit_tool", _EDITOR_TEXT, _editor(*_EDITING))
_OLD_EDITOR = ("str_replace_editor", _EDITOR_TEXT, _editor(*_EDITING, "undo_edit"))
_MEMORY = (
    "memory",
    "Store and read what is to be remembered in files below /memories. Look there first.",
    _object(
        {
            **_editor(*_EDITING, "delete", "rename")["properties"],
            "old_path": {**_TEXT, "description": "For rename: the path now"},
            "new_path": {**_TEXT, "description": "For rename: the new path"},
        },
        "command",
    ),
)
# By type: the name, the description and the schema of the input.
CLIENT_TOOLS: Mapping[str, tuple[str, str, Schema]] = {
    "bash_20241022": _BASH,
    "bash_20250124": _BASH,
    "text_editor_20241022": _OLD_EDITOR,
    "text_editor_20250124": _OLD_EDITOR,
    "text_editor_20250429": _NEW_EDITOR,
    "text_editor_20250728": _NEW_EDITOR,
    "memory_20250818": _MEMORY,
}
