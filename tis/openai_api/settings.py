"""Settings of the Responses API."""

from collections.abc import Mapping

from pydantic import BaseModel, Field, SecretStr, field_validator

from tis.setting_types import CommaSeparated

# What OpenAI runs on its own machines, and here an MCP server may.
HOSTED_TOOLS = ("web_search", "file_search", "code_interpreter", "image_generation", "computer")


class ResponseSettings(BaseModel):
    """Responses API"""

    responses_ttl_seconds: int = Field(
        2_592_000, ge=1, description="how long stored responses and conversations are kept after their last use"
    )
    responses_url: SecretStr | None = Field(
        None,
        min_length=1,
        description="database in which stored responses and conversations last, one for all servers: "
        "postgresql://user:password@host/name or sqlite:///path; unset: they are where streams are (SESSION_STORE)",
    )
    responses_pool_size: int = Field(8, ge=1, le=256, description="connections of this server to RESPONSES_URL")
    responses_timeout_seconds: float = Field(
        5, gt=0, le=600, description="how long RESPONSES_URL may take for one transaction; then it is a 503"
    )
    responses_store_seconds: float = Field(
        30,
        ge=0,
        le=3600,
        description="how long the end of a response waits for RESPONSES_URL while that is away; "
        "then the response says store: false",
    )
    max_responses: int = Field(10000, ge=1, description="max stored responses and conversations")
    hosted_tools: CommaSeparated = Field(
        (),
        description="MCP servers behind the tools that OpenAI runs itself, like "
        f"web_search=https://search.example.com/mcp: {', '.join(HOSTED_TOOLS)}; their hosts belong in "
        "MCP_ALLOWED_HOSTS; without a server, such a tool is a 400",
    )

    @field_validator("hosted_tools")
    @classmethod
    def _require_kinds(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in given:
            kind, _, url = one.partition("=")
            if kind not in HOSTED_TOOLS or not url.startswith(("https://", "http://")):
                raise ValueError(f"{one!r} is none of {', '.join(HOSTED_TOOLS)} with =https://...")
        return given


def hosted_servers(given: tuple[str, ...]) -> Mapping[str, str]:
    """The URL of the MCP server for each tool."""
    return {kind: url for kind, _, url in (one.partition("=") for one in given)}
