"""MCP server: `POST /mcp` gives tools of this server to MCP clients, by the official SDK.

It knows no marketplace: `McpAccess` is what it asks of the package that has the tools, and `app` passes one. `endpoint`
checks a request before the SDK sees it, `sdk_adapter` is all that imports the SDK. Every request stands alone: there
are no sessions, so any process behind a load balancer can answer. Reasons:
`docs/decisions/0079-the-catalogue-as-tools.md`.
"""
