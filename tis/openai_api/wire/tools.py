"""The tools of a request: functions, and MCP servers, whose tools this server calls."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StrictStr, ValidationError

from tis.chat.parse.config import ToolSchemas
from tis.chat.run_spec import ForcedCall
from tis.errors import BadRequest
from tis.http.error_handlers import bad_request_from
from tis.mcp_client.client import McpClient
from tis.mcp_client.requested_server import Approval, Approvals, RequestedServer, ToolFilter, ToolNames
from tis.mcp_client.tool_types import McpServer
from tis.openai_api.wire.chat_request import ChatRequest, McpServerTool, Tool
from tis.openai_api.wire.custom_tools import CustomTool
from tis.openai_api.wire.fields import MAX_TOOLS, RequestModel, Text, Url

WEB_SEARCH = "web_search"  # the label of the MCP server behind `web_search_options`
_MAX_SERVERS = 16
_MAX_HEADERS = 32
_MAX_HEADER_CHARS = 16384
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
# Headers that the transport sets, and headers that could make one request look like two (request smuggling).
_RESERVED_HEADERS = {
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
}
_RESERVED_HEADERS |= {"accept", "accept-encoding", "expect", "keep-alive", "proxy-connection", "last-event-id"}
_Label = Annotated[StrictStr, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class _McpTool(RequestModel):
    server_label: _Label
    server_url: Url | None = None
    server_description: Text | None = None
    allowed_tools: ToolNames | ToolFilter | None = None
    require_approval: Approval | Approvals | None = None


@dataclass(frozen=True, slots=True)
class ServerTool:
    server: RequestedServer
    shown: Mapping[str, Any]  # as the response returns it, without secrets


def tools_offered(body: ChatRequest) -> ToolSchemas:
    """The parameter schemas of the functions by name; empty if the model must not call any."""
    if body.tool_choice == "none":
        return {}
    return {tool.name: tool.parameters for _, tool in _functions(body)}


def custom_names(body: ChatRequest) -> list[str]:
    return [tool.name for _, tool in _functions(body) if isinstance(tool, CustomTool)]


def with_custom_choice(body: ChatRequest) -> ChatRequest:
    """Replaces a tool_choice of type custom by that of the function that the tool is to the model."""
    choice = body.tool_choice
    if not (isinstance(choice, dict) and choice.get("type") == "custom"):
        return body
    custom = choice.get("custom")
    name = custom.get("name") if isinstance(custom, dict) else None
    if name not in custom_names(body):
        param = "tool_choice.custom.name"
        raise BadRequest(f"{param}: there is no custom tool {str(name)[:64]!r}.", param=param)
    return body.model_copy(update={"tool_choice": {"type": "function", "function": {"name": name}}})


def with_allowed_tools(body: ChatRequest) -> ChatRequest:
    """Replaces a tool_choice of type allowed_tools by the same request with only those tools.

    With MCP servers it stays as it is, and `forced_mcp_call` rejects it.
    """
    choice = body.tool_choice
    tools = body.tools or ()
    is_of_functions = all(isinstance(tool, Tool | CustomTool) for tool in tools)
    if not (isinstance(choice, dict) and choice.get("type") == "allowed_tools" and is_of_functions):
        return body
    param = "tool_choice.allowed_tools"
    allowed = choice.get("allowed_tools")
    if not isinstance(allowed, dict):
        raise BadRequest(f"{param}: Field required", param=param, code="missing_required_parameter")
    mode, references = allowed.get("mode"), allowed.get("tools")
    if mode not in ("auto", "required"):
        raise BadRequest(f"{param}.mode must be auto or required.", param=f"{param}.mode", code="unsupported_value")
    if not isinstance(references, list) or not 0 < len(references) <= MAX_TOOLS:
        raise BadRequest(f"{param}.tools must be a list of 1 to {MAX_TOOLS} tools.", param=f"{param}.tools")
    known = {tool.name for _, tool in _functions(body)}
    names = [_allowed_name(reference) for reference in references]
    for position, name in enumerate(names):
        if name not in known:
            where = f"{param}.tools.{position}"
            message = f'{where} must name one of the tools: {{"type": "function", "function": {{"name": ...}}}}.'
            raise BadRequest(message, param=where)
    chosen = [tool for _, tool in _functions(body) if tool.name in names]
    return body.model_copy(update={"tools": chosen, "tool_choice": mode})


def _allowed_name(reference: Any) -> str | None:
    """Chat has the name within `function` or `custom`, Responses beside the type."""
    if not isinstance(reference, dict):
        return None
    function = reference.get("custom" if reference.get("type") == "custom" else "function")
    name = function.get("name") if isinstance(function, dict) else reference.get("name")
    return name if isinstance(name, str) else None


def checked_tools(body: ChatRequest) -> list[dict[str, Any]]:
    """The tools as chat templates take them."""
    names: set[str] = set()
    for position, tool in _functions(body):
        if tool.name in names:
            param = f"tools.{position}.{tool.type}.name"
            raise BadRequest(f"{param}: two tools are named {tool.name!r}.", param=param)
        names.add(tool.name)
        if isinstance(tool, CustomTool):
            tool.require_grammar(position)
    return [tool.for_template() for _, tool in _functions(body)]


def _functions(body: ChatRequest) -> Iterator[tuple[int, Tool | CustomTool]]:
    """The functions and custom tools among the tools, each with its position."""
    return ((position, tool) for position, tool in enumerate(body.tools or ()) if isinstance(tool, Tool | CustomTool))


def forced_mcp_call(servers: Sequence[RequestedServer], given: Any) -> ForcedCall:
    """The forced MCP call, if any. `requested_grammar` handles a forced function."""
    if given == "required":
        return {}
    if isinstance(given, dict) and given.get("type") == "mcp":
        label, name = given.get("server_label"), given.get("name")
        if label not in [server.label for server in servers] or not isinstance(name, str | None):
            raise BadRequest("tool_choice: there is no such MCP server.", param="tool_choice")
        return {"server_label": label, "name": name}
    if isinstance(given, dict) and given.get("type") == "allowed_tools":
        message = "tool_choice: choose the tools of MCP servers with their allowed_tools."
        raise BadRequest(message, param="tool_choice", code="unsupported_value")
    return None


def hosted_as_server(label: str, url: str) -> dict[str, Any]:
    """A tool that OpenAI runs itself, as the MCP server that the operator has named for it."""
    return {"type": "mcp", "server_label": label, "server_url": url, "require_approval": "never"}


def with_web_search(body: ChatRequest, hosted: Mapping[str, str]) -> ChatRequest:
    """Replaces `web_search_options` by the MCP server that searches the web. Without one, `check` refuses it."""
    given, url = body.web_search_options, hosted.get(WEB_SEARCH)
    if given in (None, []) or url is None:
        return body
    if not isinstance(given, dict):
        param = "web_search_options"
        raise BadRequest(f"{param} must be an object.", param=param, code="invalid_type")
    server = McpServerTool.model_validate(hosted_as_server(WEB_SEARCH, url))
    return body.model_copy(update={"tools": [*(body.tools or ()), server], "web_search_options": None})


def web_search_hints(body: ChatRequest) -> list[str]:
    """What `web_search_options` says that no MCP server hears of."""
    given = body.web_search_options
    return [f"web_search_options.{name}" for name in given] if isinstance(given, dict) else []


def _read_server(given: Mapping[str, Any], where: str, mcp_client: McpClient) -> ServerTool:
    try:
        tool = _McpTool.model_validate({name: given.get(name) for name in _McpTool.model_fields})
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        refused = bad_request_from(problems)
        raise _refused(refused.message, f"{where}.{refused.param}", refused.code) from None
    if tool.server_url is None:
        raise _refused("an MCP server needs a server_url.", f"{where}.server_url", "unsupported_value")
    try:
        allowed = mcp_client.check(tool.server_url)
    except BadRequest as error:
        raise _refused(error.message, f"{where}.server_url", error.code) from None
    headers = _headers(given, where)
    # OpenAI redacts the path, too, because it may be as secret as a header. `to_json` stores the whole URL.
    url = f"{allowed.url.scheme}://{allowed.url.authority}/<redacted>"
    shown = {
        "type": "mcp",
        **tool.model_dump(exclude_none=True),
        "server_url": url,
        "headers": None,
        "require_approval": given.get("require_approval") or "always",
    }
    names, approvals = tool.allowed_tools, tool.require_approval
    server = RequestedServer(
        tool.server_label,
        McpServer(tool.server_url, headers),
        ToolFilter(tool_names=names) if isinstance(names, list) else names or ToolFilter(),
        approvals if approvals is not None else "always",
        bool(headers),
    )
    return ServerTool(server, shown)


def requested_servers(tools: Sequence[Mapping[str, Any]], mcp_client: McpClient) -> list[ServerTool]:
    """The MCP servers among the tools of a request."""
    servers: list[ServerTool] = []
    for position, tool in enumerate(tools):
        if tool.get("type") != "mcp":
            continue
        one, param = _read_server(tool, f"tools.{position}", mcp_client), f"tools.{position}.server_label"
        if any(one.server.label == other.server.label for other in servers):
            raise _refused(f"two servers have the label {one.server.label!r}.", param)
        if len(servers) == _MAX_SERVERS:
            raise _refused(f"a request may name at most {_MAX_SERVERS} MCP servers.", param)
        servers.append(one)
    return servers


def _headers(given: Mapping[str, Any], where: str) -> dict[str, str]:
    headers = given.get("headers") or {}
    param = f"{where}.headers"
    if not isinstance(headers, dict) or len(headers) > _MAX_HEADERS:
        raise _refused(f"headers must be an object of at most {_MAX_HEADERS}.", param)
    headers = dict(headers)
    if (token := given.get("authorization")) is not None:
        if any(name.lower() == "authorization" for name in headers):
            raise _refused("set authorization as a field or in headers, not both.", f"{where}.authorization")
        headers["Authorization"] = f"Bearer {token}" if isinstance(token, str) else token
    for name, value in headers.items():
        # Messages do not repeat header values, because they may be secrets.
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED_HEADERS or name.lower().startswith("mcp-"):
            raise _refused(f"{name[:64]!r} is a header that clients cannot set.", param)
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise _refused(f"the value of {name!r} must be a string of printable ASCII.", param)
    if sum(len(name) + len(value) for name, value in headers.items()) > _MAX_HEADER_CHARS:
        raise _refused("headers are too large.", param)
    return headers


def _refused(message: str, param: str, code: str | None = None) -> BadRequest:
    return BadRequest(f"{param}: {message}", param=param, code=code)
