"""An MCP server as a request names it: which of its tools the model may call, and which calls need an approval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

from tis.bounds import MaxItems
from tis.mcp_client.tool_types import McpServer, McpTool

ToolNames = Annotated[list[Annotated[StrictStr, Field(max_length=512)]], MaxItems(1024)]
Approval = Literal["always", "never"]


class ToolFilter(BaseModel):
    tool_names: ToolNames | None = None
    read_only: StrictBool | None = None

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    def matches(self, tool: McpTool) -> bool:
        if self.tool_names is not None and tool.name not in self.tool_names:
            return False
        return self.read_only is None or self.read_only == bool((tool.annotations or {}).get("readOnlyHint"))


class Approvals(BaseModel):
    always: ToolFilter | None = None
    never: ToolFilter | None = None

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class RequestedServer:
    label: str
    server: McpServer
    allowed: ToolFilter
    approvals: Approval | Approvals
    has_headers: bool

    def wants(self, tool: McpTool) -> bool:
        return self.allowed.matches(tool)

    def finds_all_in(self, tools: Sequence[McpTool]) -> bool:
        """Whether a list of tools that an earlier response stored has all tools that this request allows."""
        return set(self.allowed.tool_names or ()) <= {tool.name for tool in tools}

    def needs_approval(self, tool: McpTool) -> bool:
        if isinstance(self.approvals, str):
            return self.approvals == "always"
        always, never = self.approvals.always, self.approvals.never
        if always and always.matches(tool):
            return True
        # A tool that no filter matches needs an approval, unless only `always` is set.
        return not never.matches(tool) if never else always is None

    def to_json(self) -> dict[str, Any]:
        """Without the headers, because secrets are not stored."""
        return {
            "label": self.label,
            "url": self.server.url,
            "allowed": self.allowed.model_dump(),
            "approvals": self.approvals if isinstance(self.approvals, str) else self.approvals.model_dump(),
            "has_headers": self.has_headers,
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        approvals = given["approvals"]
        return cls(
            given["label"],
            McpServer(given["url"]),
            ToolFilter.model_validate(given["allowed"]),
            Approvals.model_validate(approvals) if isinstance(approvals, dict) else approvals,
            given["has_headers"],
        )

    @property
    def lacks_headers(self) -> bool:
        """Whether the request had headers, which a process that resumes it does not have."""
        return self.has_headers and not self.server.headers
