"""The tools of a request as those of a chat: tools of the client, and MCP servers, which this server calls."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tis.anthropic_api.wire.client_tools import CLIENT_TOOLS
from tis.anthropic_api.wire.messages_request import MessagesRequest, MessageTool, MessageToolChoice, UrlMcpServer
from tis.anthropic_api.wire.tool_changes import TOOLSET, PlacedTool, ToolsInEffect
from tis.errors import BadRequest
from tis.openai_api.wire.chat_request import FunctionTool, McpServerTool, Tool

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_SEARCHES = "tool_search_tool_"  # the model sees all tools, so there is nothing to search


@dataclass(frozen=True, slots=True)
class ChatTools:
    tools: list[Tool | McpServerTool]
    places: list[str]  # of each, in the request
    choice: Any
    parallel: bool | None
    has_search: bool  # one on Anthropic's servers, which is left out


def chat_tools_of(body: MessagesRequest, in_effect: ToolsInEffect) -> ChatTools:
    given = in_effect.tools
    toolsets = {one.tool.mcp_server_name or "": one for one in given if one.tool.type == TOOLSET}
    functions = [one for one in given if one.tool.type != TOOLSET]
    asked = [one for one in functions if not (one.tool.type or "").startswith(_SEARCHES)]
    tools: list[Tool | McpServerTool] = [_function(one.tool, one.place) for one in asked]
    places = [one.place for one in asked]
    servers = [one for one in body.mcp_servers or () if one.name not in in_effect.removed_servers]
    for name, toolset in toolsets.items():
        if name not in [server.name for server in body.mcp_servers or ()]:
            place = f"{toolset.place}.mcp_server_name"
            raise BadRequest(f"{place}: there is no MCP server {name[:64]!r} in mcp_servers.", param=place)
    for number, server in enumerate(body.mcp_servers or ()):
        if server not in servers:
            continue
        allowed = _allowed_tools(server, toolsets.get(server.name))
        if allowed is None or allowed:
            tools.append(_mcp_server(server, allowed))
            places.append(f"mcp_servers.{number}")
    choice = body.tool_choice
    parallel = not choice.disable_parallel_tool_use if choice and choice.disable_parallel_tool_use is not None else None
    return ChatTools(tools, places, _chosen(choice, tools), parallel, has_search=len(asked) < len(functions))


def _function(tool: MessageTool, where: str) -> Tool:
    """Made without validation: a chat's names have at most 64 characters, Anthropic's 128."""
    name, description, schema = tool.name, tool.description, tool.input_schema
    if tool.type not in (None, "custom"):
        if (known := CLIENT_TOOLS.get(tool.type)) is None:
            types = ", ".join(CLIENT_TOOLS)
            raise BadRequest(
                f"{where}.type: tools of type {tool.type[:40]!r} run on Anthropic's servers, or are not known here. "
                f"Supported are custom tools and {types}.",
                param=f"{where}.type",
                code="unsupported_value",
            )
        name, description, schema = tool.name or known[0], known[1], known[2]
    elif schema is None:
        place = f"{where}.input_schema"
        raise BadRequest(f"{place}: Field required", param=place, code="missing_required_parameter")
    if name is None or not _NAME.fullmatch(name):
        place = f"{where}.name"
        raise BadRequest(f"{place} must be 1 to 128 letters, digits, _ or -.", param=place)
    if tool.input_examples:
        examples = "\n".join(json.dumps(one, ensure_ascii=False) for one in tool.input_examples)
        description = f"{description or ''}\n\nExamples of its input:\n{examples}".strip()
    fields: dict[str, Any] = {"name": name, "description": description, "parameters": schema, "strict": tool.strict}
    function = FunctionTool.model_construct(**{key: value for key, value in fields.items() if value is not None})
    return Tool.model_construct(type="function", function=function)


def _mcp_server(server: UrlMcpServer, allowed: Sequence[str] | None) -> McpServerTool:
    fields: dict[str, Any] = {
        "type": "mcp",
        "server_label": server.name,
        "server_url": server.url,
        "authorization": server.authorization_token,
        "allowed_tools": allowed,
        "require_approval": "never",
    }
    return McpServerTool.model_validate({name: value for name, value in fields.items() if value is not None})


def _allowed_tools(server: UrlMcpServer, toolset: PlacedTool | None) -> list[str] | None:
    """The tools of a server that the model may call. None: all. Empty: none."""
    if toolset is None:
        given = server.tool_configuration
        return [] if given and given.enabled is False else given.allowed_tools if given else None
    configs = toolset.tool.configs or {}
    if toolset.tool.default_config and toolset.tool.default_config.enabled is False:
        return [name for name, config in configs.items() if config.enabled]
    for name, config in configs.items():
        if config.enabled is False:
            place = f"{toolset.place}.configs"
            raise BadRequest(
                f"{place}: to leave out {name[:64]!r}, set default_config.enabled to false and enable the others.",
                param=place,
                code="unsupported_value",
            )
    return None


def _chosen(choice: MessageToolChoice | None, tools: Sequence[Tool | McpServerTool]) -> Any:
    if choice is None or choice.type == "auto":
        return None
    if choice.type != "tool":
        return {"any": "required", "none": "none"}[choice.type]
    if choice.name is None:
        place = "tool_choice.name"
        raise BadRequest(f"{place}: Field required", param=place, code="missing_required_parameter")
    functions = [tool.function.name for tool in tools if isinstance(tool, Tool)]
    servers: list[Mapping[str, Any]] = [tool.model_dump() for tool in tools if isinstance(tool, McpServerTool)]
    if choice.name not in functions:
        if len(servers) == 1:
            return {"type": "mcp", "server_label": servers[0]["server_label"], "name": choice.name}
        place = "tool_choice.name"
        raise BadRequest(f"{place}: there is no tool named {choice.name[:64]!r} in tools.", param=place)
    return {"type": "function", "function": {"name": choice.name}}
