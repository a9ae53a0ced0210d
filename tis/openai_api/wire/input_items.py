"""Validates input items and gives them ids; MCP items among them become function calls for the model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from tis.chat.mcp_calls import text_for_model
from tis.errors import BadRequest
from tis.http.error_handlers import bad_request_from
from tis.mcp_client.requested_server import RequestedServer
from tis.mcp_client.tool_types import McpTool
from tis.mcp_client.toolbox import tool_from_json, tool_to_json
from tis.openai_api.store.items import MEDIA_KINDS, Item, input_id, lists_tools_of
from tis.openai_api.wire.chat_request import ContentPart
from tis.openai_api.wire.client_items import CLIENT_KINDS, checked_client_item
from tis.openai_api.wire.compacted_context import COMPACTION, COMPACTION_TRIGGER, checked_compaction
from tis.openai_api.wire.namespaces import namespace_of
from tis.openai_api.wire.response_request import require_text
from tis.openai_api.wire.sealed_text import unsealed

_MAX_TOOLS = 128  # of one server
MCP_KINDS = ("mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response")
PlacedItem = tuple[str, Item]  # an item and its place in the request
_ROLES = ("user", "assistant", "system", "developer")
_MAX_PARTS = 4096
_TEXTS = ("input_text", "output_text", "text", "refusal")


def checked_items(given: str | Sequence[Item], owner_id: str, param: str, first_number: int = 0) -> list[Item]:
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    items = []
    for position, item in enumerate(given):
        where = f"{param}.{position}"
        checked = _checked(item, where)
        if not (isinstance(checked.get("id"), str) and 0 < len(checked["id"]) <= 128):
            checked = {**checked, "id": input_id(owner_id, checked["type"], first_number + position)}
        items.append(checked)
    return items


def _checked(item: Mapping[str, Any], where: str) -> Item:
    kind = item.get("type") or ("message" if "role" in item else None)
    if kind == "message":
        return _message(item, where)
    if kind == "function_call":
        texts = {name: require_text(item, name, where) for name in ("call_id", "name", "arguments")}
        return _identified(item) | {"type": kind, **texts, **namespace_of(item), "status": "completed"}
    if kind in CLIENT_KINDS:
        return _identified(item) | checked_client_item(item, where)
    if kind in ("function_call_output", "custom_tool_call_output"):
        call_id, output = require_text(item, "call_id", where), item.get("output")
        output = output if isinstance(output, str) else _parts(output, f"{where}.output", "input_text")
        return _identified(item) | {"type": kind, "call_id": call_id, "output": output, "status": "completed"}
    if kind == "reasoning":
        sealed = unsealed(item.get("encrypted_content"))
        thought = _texts(item.get("content")) or ([sealed] if sealed else [])
        content = [{"type": "reasoning_text", "text": text} for text in thought]
        summary = [{"type": "summary_text", "text": text} for text in _texts(item.get("summary"))]
        reasoning = {"summary": summary, "content": content, "encrypted_content": None, "status": "completed"}
        return _identified(item) | {"type": kind, **reasoning}
    if kind in MCP_KINDS:
        return _identified(item) | checked_mcp_item(item, where)
    if kind == COMPACTION:
        return _identified(item) | checked_compaction(dict(item), where)
    if kind == COMPACTION_TRIGGER:
        message = f"{where}: a {COMPACTION_TRIGGER} must be the last item of the input of a response."
        raise BadRequest(message, param=f"{where}.type", code="unsupported_value")
    if kind == "item_reference":
        return {"type": kind, "id": require_text(item, "id", where)}
    raise BadRequest(
        f"{where}: items of type {str(kind)[:40]!r} are not supported.", param=f"{where}.type", code="unsupported_value"
    )


def _message(item: Mapping[str, Any], where: str) -> Item:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        raise BadRequest(f"{where}.role must be one of {', '.join(_ROLES)}.", param=f"{where}.role")
    text_type = "output_text" if role == "assistant" else "input_text"
    parts = [_text(content, text_type)] if isinstance(content, str) else _parts(content, f"{where}.content", text_type)
    return _identified(item) | {"type": "message", "role": role, "content": parts, "status": "completed"}


def _parts(given: Any, where: str, text_type: str) -> list[Item]:
    if not isinstance(given, list):
        raise BadRequest(f"{where} must be a string or a list of parts.", param=where, code="invalid_type")
    if len(given) > _MAX_PARTS:
        raise BadRequest(f"{where} has more than {_MAX_PARTS} parts.", param=where)
    return [_part(part, f"{where}.{position}", text_type) for position, part in enumerate(given)]


def _part(given: Any, where: str, text_type: str) -> Item:
    try:
        part = ContentPart.model_validate(given)
    except ValidationError as error:
        refused = bad_request_from([{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()])
        param = f"{where}.{refused.param}" if refused.param else where
        raise BadRequest(f"{where}: {refused.message}", param=param, code=refused.code) from None
    if part.type in _TEXTS:
        text = part.refusal if part.type == "refusal" else part.text
        if text is None:
            raise BadRequest(f"{where}: a text part needs `text`.", param=f"{where}.text")
        return {"type": "refusal", "refusal": text} if part.type == "refusal" else _text(text, text_type)
    if part.type in MEDIA_KINDS and text_type == "input_text":
        if "file_id" in given and given["file_id"] and not part.image_url:
            raise BadRequest(
                f"{where}: the server has no uploaded files. Send a URL or data.",
                param=f"{where}.file_id",
                code="unsupported_value",
            )
        return part.model_dump(exclude_none=True)
    raise BadRequest(
        f"{where}: parts of type {part.type[:40]!r} are not supported here.",
        param=f"{where}.type",
        code="unsupported_content",
    )


def _text(text: str, text_type: str) -> Item:
    more: Item = {"annotations": [], "logprobs": []} if text_type == "output_text" else {}
    return {"type": text_type, "text": text, **more}


def _texts(given: Any) -> list[str]:
    parts = given if isinstance(given, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str)]


def _identified(item: Mapping[str, Any]) -> Item:
    return {"id": item["id"]} if item.get("id") else {}


def checked_mcp_item(item: Mapping[str, Any], where: str) -> Item:
    kind = item["type"]
    if kind == "mcp_approval_response":
        if not isinstance(item.get("approve"), bool):
            raise BadRequest(f"{where}.approve must be true or false.", param=f"{where}.approve", code="invalid_type")
        answered = require_text(item, "approval_request_id", where)
        reason = item["reason"] if isinstance(item.get("reason"), str) else None
        return {"type": kind, "approval_request_id": answered, "approve": item["approve"], "reason": reason}
    label = require_text(item, "server_label", where)
    if kind == "mcp_list_tools":
        return {"type": kind, "server_label": label, "tools": _tools(item, where), "error": None}
    texts = {name: require_text(item, name, where) for name in ("name", "arguments")}
    if kind == "mcp_approval_request":
        require_text(item, "id", where)
        return {"type": kind, "server_label": label, **texts}
    output, error, request_id = item.get("output"), item.get("error"), item.get("approval_request_id")
    return {
        "type": kind,
        "status": "failed" if error else "completed",
        "approval_request_id": request_id if isinstance(request_id, str) else None,
        "server_label": label,
        **texts,
        "output": output if isinstance(output, str) else None,
        "error": error if isinstance(error, str | dict) else None,
    }


def as_functions(items: Iterable[PlacedItem]) -> list[PlacedItem]:
    """MCP calls as function calls with outputs. A rejected approval becomes a call whose output says so."""
    plain: list[PlacedItem] = []
    outputs: list[PlacedItem] = []
    requests: dict[str, Item] = {}
    for where, item in items:
        if item["type"] not in MCP_KINDS:
            plain += [*outputs, (where, item)]
            outputs = []
        elif item["type"] == "mcp_approval_request":
            requests[item["id"]] = item
        elif item["type"] == "mcp_call":
            plain.append((where, _call(item)))
            outputs.append((where, _output(item, text_for_model(item["output"], item["error"]))))
        elif item["type"] == "mcp_approval_response" and not item["approve"]:
            if request := requests.get(item["approval_request_id"]):
                reason = f": {item['reason']}" if item["reason"] else "."
                plain.append((where, _call(request)))
                outputs.append((where, _output(request, f"The user did not approve this call{reason}")))
    return plain + outputs


def approved_requests(own: Sequence[PlacedItem], everything: Sequence[PlacedItem], labels: Iterable[str]) -> list[Item]:
    """The approval requests that this input approves and whose calls were not made yet."""
    requests = {item["id"]: item for _, item in everything if item["type"] == "mcp_approval_request"}
    made = {item["approval_request_id"] for _, item in everything if item["type"] == "mcp_call"}
    found: dict[str, Item] = {}
    for where, item in own:
        if item["type"] != "mcp_approval_response":
            continue
        request_id = item["approval_request_id"]
        if request_id not in requests:
            param = f"{where}.approval_request_id"
            raise BadRequest(
                f"{param}: there is no approval request {request_id[:80]!r} in this conversation.", param=param
            )
        if item["approve"] and request_id not in made:
            if requests[request_id]["server_label"] not in labels:
                raise BadRequest(f"{where} approves a call of an MCP server that is not in tools.", param="tools")
            found[request_id] = requests[request_id]
    return list(found.values())


def listed_before(items: Iterable[PlacedItem], server: RequestedServer) -> list[McpTool] | None:
    """The tools of the newest item that lists those of this server, by label and URL: they need no new list."""
    lists = [item for _, item in items if item["type"] == "mcp_list_tools" and not item["error"]]
    for item in reversed(lists):
        if item["server_label"] == server.label and lists_tools_of(item["id"], server.server.url):
            return [tool_from_json(tool) for tool in item["tools"]]
    return None


def _tools(item: Mapping[str, Any], where: str) -> list[Item]:
    given = item.get("tools")
    tools = given if isinstance(given, list) else []
    if len(tools) > _MAX_TOOLS:
        raise BadRequest(f"{where}.tools has more than {_MAX_TOOLS} tools.", param=f"{where}.tools")
    checked = []
    for position, tool in enumerate(tools):
        schema = tool.get("input_schema") if isinstance(tool, dict) else None
        if not isinstance(schema, dict) or not isinstance(tool.get("name"), str):
            param = f"{where}.tools.{position}"
            raise BadRequest(f"{param} needs a name and an input_schema.", param=param)
        description, annotations = tool.get("description"), tool.get("annotations")
        listed = McpTool(
            tool["name"],
            description if isinstance(description, str) else None,
            schema,
            annotations if isinstance(annotations, dict) else None,
        )
        checked.append(tool_to_json(listed))
    return checked


def _call(item: Item) -> Item:
    return {"type": "function_call", "call_id": item["id"], "name": item["name"], "arguments": item["arguments"]}


def _output(item: Item, text: str) -> Item:
    return {"type": "function_call_output", "call_id": item["id"], "output": text}
