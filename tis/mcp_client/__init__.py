"""MCP client: lists the tools of MCP servers and calls them, on behalf of clients who may be anybody.

It knows nothing of OpenAI. Every list and every call of `McpClient` opens its own `McpConnection`, so no connection
stays open while a model generates. It connects through a `Dialler` of `tis/network/`, as media does. `AllowedHosts`
holds `MCP_ALLOWED_HOSTS`. Reasons: `docs/decisions/0026-one-run-many-writers.md`.
"""
