"""The tools of a response: functions, custom tools, tools that the client runs in a fixed shape, and MCP servers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tis.errors import BadRequest
from tis.mcp_client.client import McpClient
from tis.openai_api.settings import HOSTED_TOOLS
from tis.openai_api.store.items import Item
from tis.openai_api.wire.client_tools import CLIENT_TOOLS
from tis.openai_api.wire.compacted_context import COMPACTION, tools_in
from tis.openai_api.wire.fields import MAX_TOOLS
from tis.openai_api.wire.namespaces import as_own_tool, name_in_namespace, with_members
from tis.openai_api.wire.tools import hosted_as_server, requested_servers

_CHOICES = ("none", "auto", "required")
_CHOICE_TYPES = ("function", "custom", "shell", "apply_patch")  # of one tool, beside MCP servers
# Other names of a tool that OpenAI runs itself: one server serves all of them.
_SAME = {"web_search_preview": "web_search", "computer_use": "computer", "computer_use_preview": "computer"}
_HOSTED = (*HOSTED_TOOLS, *_SAME)
HostedTools = Mapping[str, str]  # the URL of an MCP server for each kind


class ResponseTools:
    """The tools that the model calls, and the MCP servers."""

    def __init__(
        self, given: Sequence[Mapping[str, Any]], mcp_client: McpClient, hosted: HostedTools | None = None
    ) -> None:
        as_servers = [_as_server(tool, f"tools.{position}", hosted or {}) for position, tool in enumerate(given)]
        of_servers = requested_servers(as_servers, mcp_client)
        self.servers = [one.server for one in of_servers]
        servers = iter(of_servers)
        # As the response returns them.
        self.shown: list[Mapping[str, Any]] = []
        for position, (tool, server) in enumerate(zip(given, as_servers, strict=True)):
            shown = next(servers).shown if server.get("type") == "mcp" else _checked(tool, f"tools.{position}")
            self.shown.append(dict(tool) if tool.get("type") in _HOSTED else shown)
        searches = any(one["type"] == "tool_search" and one["execution"] == "client" for one in self.shown)
        self.found: Sequence[Mapping[str, Any]] = ()  # by searches of the client
        self.namespaces: dict[str, tuple[str, str]] = {}  # and the names in them, of tools as the model knows them
        self.functions = [
            one
            for position, tool in enumerate(self.shown)
            for own in self._alone(tool, f"tools.{position}")
            if not (searches and own.get("defer_loading")) and (one := _as_chat_tool(own)) is not None
        ]

    @property
    def calls(self) -> dict[str, str]:
        """The types of items that calls of these tools become, by the name of the function; others are functions."""
        return {name: kind for one in self.functions if (kind := _call_kind(one)) for name in [name_of(one)]}

    def _alone(self, tool: Mapping[str, Any], where: str) -> Iterator[Mapping[str, Any]]:
        """A tool that stands alone, or those of a namespace as such."""
        if tool["type"] != "namespace":
            yield tool
            return
        for position, member in enumerate(tool["tools"]):
            own = as_own_tool(tool, member, f"{where}.tools.{position}")
            self.namespaces[own["name"]] = tool["name"], member["name"]
            yield own

    def add_found(self, items: Iterable[tuple[str, Item]]) -> None:
        """Adds the tools that the client found in a search; the newest of each name counts."""
        shown: dict[tuple[str, Any], Mapping[str, Any]] = {}
        found: dict[str, dict[str, Any]] = {}
        for where, item in items:
            for position, given in enumerate(_tools_in(item)):
                place = f"{where}.tools.{position}"
                tool = _checked(given, place)
                identity = tool["type"], tool.get("name")
                shown.pop(identity, None)  # it goes to the end, where the newest are
                shown[identity] = tool
                for own in self._alone(tool, place):
                    if one := _as_chat_tool(own):
                        found[name_of(one)] = one
        self.found = list(shown.values())
        self.functions = [*(one for one in self.functions if name_of(one) not in found), *found.values()]
        if len(self.functions) > MAX_TOOLS:
            raise BadRequest(f"input: searches found more than {MAX_TOOLS} tools.", param="input")


def _tools_in(item: Item) -> Sequence[Mapping[str, Any]]:
    if item["type"] == COMPACTION:
        return tools_in(item).found
    tools: Sequence[Mapping[str, Any]] = item["tools"] if item["type"] == "tool_search_output" else ()
    return tools


def name_of(tool: Mapping[str, Any]) -> str:
    """Of a tool as chat has it."""
    return str(tool[tool["type"]]["name"])


def _call_kind(tool: Mapping[str, Any]) -> str | None:
    if tool["type"] == "custom":
        return "custom_tool_call"
    return tool["client_tool"].call if "client_tool" in tool else None


def chat_tools(tools: Sequence[Mapping[str, Any]], choice: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields of a chat request, of tools as chat has them."""
    chosen: Any = choice
    names: Sequence[str] = [name_of(tool) for tool in tools]
    if isinstance(choice, str) and choice not in _CHOICES:
        raise _refused_choice(f"tool_choice must be one of {', '.join(_CHOICES)}, or an object.")
    if isinstance(choice, Mapping):
        chosen, names = _chosen(choice, tools)
    shown = [{one: tool[one] for one in ("type", tool["type"])} for tool in tools if name_of(tool) in names]
    return {"tools": shown or None, "tool_choice": chosen}


def _as_server(tool: Mapping[str, Any], where: str, hosted: HostedTools) -> Mapping[str, Any]:
    """A tool that OpenAI runs itself, as the MCP server that the operator has named for it."""
    kind = tool.get("type")
    if kind not in _HOSTED:
        return tool
    label = _SAME.get(str(kind), str(kind))
    url = hosted.get(label)
    if url is None:
        raise BadRequest(
            f"{where}.type: this server has no {kind}. Add an MCP server with such tools, or have the operator "
            "name one in HOSTED_TOOLS.",
            param=f"{where}.type",
            code="unsupported_value",
        )
    return hosted_as_server(label, url)


def _checked(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    match tool.get("type"):
        case "function":
            return _function(tool, where)
        case "custom":
            return _custom(tool, where)
        case "tool_search":
            return _tool_search(tool, where)
        case "namespace":
            return _namespace(tool, where)
        case str(kind) if kind in CLIENT_TOOLS:
            return {"type": kind}
    raise BadRequest(
        f"{where}: tools of type {str(tool.get('type'))[:40]!r} are not supported.",
        param=f"{where}.type",
        code="unsupported_value",
    )


def _function(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    function = tool["function"] if isinstance(tool.get("function"), dict) else tool  # as chat has it
    name, parameters = _name(function, where, "function"), function.get("parameters")
    if not isinstance(parameters, dict | None):
        raise BadRequest(f"{where}.parameters must be a JSON schema.", param=f"{where}.parameters", code="invalid_type")
    more = {"description": function.get("description"), "parameters": parameters, "strict": function.get("strict")}
    deferred = {"defer_loading": True} if function.get("defer_loading") is True else {}
    return {"type": "function", "name": name, **more, **deferred}


def _custom(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    custom = tool["custom"] if isinstance(tool.get("custom"), dict) else tool
    given = custom.get("format") or {"type": "text"}
    if not isinstance(given, dict):
        raise BadRequest(f"{where}.format must be an object.", param=f"{where}.format", code="invalid_type")
    form: dict[str, Any] = {"type": given.get("type", "text")}
    if form["type"] == "grammar":
        grammar = given["grammar"] if isinstance(given.get("grammar"), dict) else given  # as chat has it
        for name in ("syntax", "definition"):
            if name not in grammar:
                param = f"{where}.format.{name}"
                raise BadRequest(f"{param}: Field required", param=param, code="missing_required_parameter")
            form[name] = grammar[name]
    deferred = {"defer_loading": True} if custom.get("defer_loading") is True else {}
    named = {"name": _name(custom, where, "custom tool"), "description": custom.get("description"), "format": form}
    return {"type": "custom", **named, **deferred}


def _namespace(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    name, description = _name(tool, where, "namespace"), tool.get("description")
    members = [_checked(one, place) for place, one in with_members(tool, where)]
    shown = description if isinstance(description, str) else ""
    return {"type": "namespace", "name": name, "description": shown, "tools": members}


def _name(given: Mapping[str, Any], where: str, kind: str) -> str:
    name = given.get("name")
    if not (isinstance(name, str) and 0 < len(name) <= 256):
        raise BadRequest(f"{where}: a {kind} needs a name.", param=f"{where}.name")
    return name


def _tool_search(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    """On the server there is nothing to search: the model sees all tools that the request has."""
    execution, parameters = tool.get("execution") or "server", tool.get("parameters")
    if execution not in ("server", "client"):
        param = f"{where}.execution"
        raise BadRequest(f"{param} must be server or client.", param=param, code="unsupported_value")
    if not isinstance(parameters, dict | None):
        raise BadRequest(f"{where}.parameters must be a JSON schema.", param=f"{where}.parameters", code="invalid_type")
    return {
        "type": "tool_search",
        "execution": execution,
        "description": tool.get("description"),
        "parameters": parameters,
    }


def _as_chat_tool(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """None: the model does not call it."""
    match tool["type"]:
        case "function":
            return {"type": "function", "function": _given(tool, "name", "description", "parameters", "strict")}
        case "custom":
            form = tool["format"]
            if form["type"] == "grammar":
                form = {"type": "grammar", "grammar": _given(form, "syntax", "definition")}
            return {"type": "custom", "custom": {**_given(tool, "name", "description"), "format": form}}
        case "tool_search" if tool["execution"] == "server":
            return None
        case kind if kind in CLIENT_TOOLS:
            client_tool = CLIENT_TOOLS[kind]
            function = _given(client_tool.function(tool), "name", "description", "parameters", "strict")
            return {"type": "function", "function": function, "client_tool": client_tool}
    return None


def _given(tool: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: tool[name] for name in names if tool.get(name) is not None}


def _chosen(choice: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> tuple[Any, Sequence[str]]:
    names = [name_of(tool) for tool in tools]
    if choice.get("type") == "allowed_tools" and choice.get("mode") in ("auto", "required"):
        given = choice.get("tools")
        allowed = (
            [_name_chosen(one, tools) for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
        )
        if not allowed or None in allowed:
            raise _refused_choice("tool_choice.tools must be some of the tools.")
        return choice["mode"], [one for one in allowed if one]
    if choice.get("type") not in _CHOICE_TYPES:
        raise _refused_choice(f"tool_choice of type {str(choice.get('type'))[:40]!r} is not supported.")
    name = _name_chosen(choice, tools)
    if name is None:
        raise _refused_choice(f"tool_choice: there is no tool {str(choice.get('name') or choice['type'])[:64]!r}.")
    return {"type": "function", "function": {"name": name}}, names


def _name_chosen(choice: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> str | None:
    """None if there is no such tool of this type."""
    kind = str(choice.get("type", "function"))
    name = kind if kind in CLIENT_TOOLS else choice.get("name")
    if choice.get("namespace"):
        name = name_in_namespace(str(choice["namespace"]), str(name))
    for tool in tools:
        own_kind = tool["client_tool"].type if "client_tool" in tool else tool["type"]
        if name_of(tool) == name and own_kind == kind:
            return name
    return None


def _refused_choice(message: str) -> BadRequest:
    return BadRequest(message, param="tool_choice", code="unsupported_value")
