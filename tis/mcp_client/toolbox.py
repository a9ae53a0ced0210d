"""The tools of all MCP servers of an answer, under the names by which the model calls them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tis.mcp_client.requested_server import RequestedServer
from tis.mcp_client.tool_types import McpTool

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_CHARS = 64


@dataclass(frozen=True, slots=True)
class OfferedTool:
    server: RequestedServer
    tool: McpTool

    @property
    def needs_approval(self) -> bool:
        return self.server.needs_approval(self.tool)


class Toolbox:
    def __init__(self, servers: Iterable[RequestedServer], taken: Iterable[str]) -> None:
        self.servers = {server.label: server for server in servers}
        self._taken = frozenset(taken)  # names of functions
        self._listed: dict[str, list[McpTool]] = {}
        self._offered: dict[str, OfferedTool] = {}

    @property
    def unlisted(self) -> Sequence[RequestedServer]:
        return [server for label, server in self.servers.items() if label not in self._listed]

    def put(self, label: str, tools: Iterable[McpTool]) -> None:
        self._listed[label] = [tool for tool in tools if self.servers[label].wants(tool)]
        if not self.unlisted:
            self._offered = self._named()

    def found(self, name: str) -> OfferedTool | None:
        return self._offered.get(name)

    def knows(self, label: str, name: str) -> bool:
        return any(tool.name == name for tool in self._listed.get(label, ()))

    def name_of(self, label: str, name: str) -> str:
        """How the model calls it."""
        for offered, one in self._offered.items():
            if (one.server.label, one.tool.name) == (label, name):
                return offered
        return name

    @property
    def functions(self) -> list[dict[str, Any]]:
        """As templates take them."""
        return [_function(name, one.tool) for name, one in sorted(self._offered.items())]

    def functions_of(self, label: str, name: str | None = None) -> list[dict[str, Any]]:
        return [
            _function(offered, one.tool)
            for offered, one in sorted(self._offered.items())
            if one.server.label == label and name in (None, one.tool.name)
        ]

    def _named(self) -> dict[str, OfferedTool]:
        """A name that several have gets the label of its server in front: none may pass for another one."""
        wanted = Counter(self._taken)
        wanted.update(_plain(tool.name) for tools in self._listed.values() for tool in tools)
        offered: dict[str, OfferedTool] = {}
        for label in self.servers:
            for tool in self._listed[label]:
                plain = _plain(tool.name)
                name = first = plain if wanted[plain] == 1 else f"{label}__{plain}"[:_MAX_NAME_CHARS]
                number = 2
                while name in offered or name in self._taken or (name != plain and wanted[name]):
                    name, number = f"{first[: _MAX_NAME_CHARS - 5]}_{number}", number + 1
                offered[name] = OfferedTool(self.servers[label], tool)
        return offered


def _plain(name: str) -> str:
    """Markers of templates have no place in a name."""
    return _NOT_IN_A_NAME.sub("_", name)[:_MAX_NAME_CHARS]


def _function(name: str, tool: McpTool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": name, **described, "parameters": tool.input_schema}}


def tool_from_json(given: Mapping[str, Any]) -> McpTool:
    return McpTool(given["name"], given["description"], given["input_schema"], given["annotations"])


def tool_to_json(tool: McpTool) -> dict[str, Any]:
    """As clients get it, and as runs store it."""
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "annotations": tool.annotations,
    }
