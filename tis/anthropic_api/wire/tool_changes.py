"""The tools of a request as its conversation has changed them: messages of the system add tools and take them away."""

from collections.abc import Sequence
from dataclasses import dataclass

from tis.anthropic_api.wire.messages_request import (
    MAX_MESSAGE_TOOLS,
    MessageBlock,
    MessageTool,
    ToolChange,
    ToolChangeBlock,
)
from tis.errors import BadRequest

ADDITION, REMOVAL = "tool_addition", "tool_removal"
TOOLSET = "mcp_toolset"


@dataclass(frozen=True, slots=True)
class PlacedTool:
    place: str  # in the request
    tool: MessageTool


class ToolsInEffect:
    def __init__(self, given: Sequence[MessageTool]) -> None:
        self.removed_servers: set[str] = set()
        self._given = [PlacedTool(f"tools.{number}", one) for number, one in enumerate(given)]
        self._defined: dict[tuple[bool, str], PlacedTool] = {}  # in messages; each in place of any other of its name
        self._removed: set[str] = set()

    @property
    def tools(self) -> list[PlacedTool]:
        defined = self._defined
        every = [*(one for one in self._given if _identity(one.tool) not in defined), *defined.values()]
        kept = [one for one in every if not (_is_function(one.tool) and one.tool.name in self._removed)]
        if len(kept) > MAX_MESSAGE_TOOLS:
            place = kept[MAX_MESSAGE_TOOLS].place
            raise BadRequest(f"{place}: a conversation has at most {MAX_MESSAGE_TOOLS} tools.", param=place)
        return kept

    def change(self, block: MessageBlock | ToolChangeBlock, where: str) -> None:
        """By a block of type `tool_addition` or `tool_removal`."""
        place = f"{where}.tool"
        if block.tool is None:
            raise BadRequest(f"{place}: Field required", param=place, code="missing_required_parameter")
        name = _required_name(block.tool, place)
        adds = block.type == ADDITION
        match block.tool.type:
            case "tool_reference":
                (self._removed.discard if adds else self._removed.add)(name)
            case "mcp_toolset_reference":
                (self.removed_servers.discard if adds else self.removed_servers.add)(name)
            case "tool_definition" if adds and block.tool.definition:
                self._define(PlacedTool(f"{place}.definition", block.tool.definition), name)
            case other:
                raise BadRequest(
                    f"{place}.type: {other[:40]!r} is not supported in a {block.type}.",
                    param=f"{place}.type",
                    code="unsupported_value",
                )

    def _define(self, placed: PlacedTool, name: str) -> None:
        identity = _identity(placed.tool)
        self._defined.pop(identity, None)
        self._defined[identity] = placed
        (self._removed if _is_function(placed.tool) else self.removed_servers).discard(name)


def _identity(tool: MessageTool) -> tuple[bool, str]:
    return _is_function(tool), _name(tool)


def _is_function(tool: MessageTool) -> bool:
    return tool.type != TOOLSET


def _name(tool: MessageTool) -> str:
    return (tool.name if _is_function(tool) else tool.mcp_server_name) or ""


def _required_name(change: ToolChange, place: str) -> str:
    if change.type == "tool_definition":
        return _name(change.definition) if change.definition else ""
    field = "server_name" if change.type.startswith("mcp_") else "name"
    name: str | None = getattr(change, field)
    if name is None:
        raise BadRequest(
            f"{place}.{field}: Field required", param=f"{place}.{field}", code="missing_required_parameter"
        )
    return name
