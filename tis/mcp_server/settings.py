"""Settings of the MCP server."""

from pydantic import BaseModel, Field


class McpServerSettings(BaseModel):
    """MCP server"""

    mcp_server: bool = Field(
        True, description="give the catalogue as tools to MCP clients at /mcp, read-only; 0 = off, a 404"
    )
