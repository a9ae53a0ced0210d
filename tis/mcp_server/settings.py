"""Settings of the MCP server."""

from pydantic import BaseModel, Field


class McpServerSettings(BaseModel):
    """MCP server"""

    mcp_server: bool = Field(
        True, description="give the catalogue as tools to MCP clients at /mcp, read-only; 0 = off, a 404"
    )
    mcp_buying: bool = Field(
        False,
        description="also tools with which MCP clients of signed-in users hold a product, release it and read the "
        "state of orders; each change needs a second call that confirms it",
    )
