"""From a request that names MCP servers to a source that visits them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from server.engine.front_desk import Engine
from server.engine.kept import KeptRequest
from server.engine.prompt import ChatPrompt
from server.errors import BadRequest
from server.mcp.server import McpTool
from server.mcp.visitor import McpVisitor
from server.openai_api.responses.mcp.asked_server import AskedServer
from server.openai_api.responses.mcp.caller import Caller
from server.openai_api.responses.mcp.items import Placed, approved, listed_before
from server.openai_api.responses.mcp.plan import Choice, Plan
from server.openai_api.responses.mcp.rounds import Rounds
from server.openai_api.responses.mcp.source import ContinuedMcp, McpSource
from server.openai_api.responses.mcp.toolbox import Toolbox
from server.openai_api.responses.response_object import Response
from server.openai_api.responses.schema import Item, ResponseRequest
from server.openai_api.resumption import ShownAgain


@dataclass(frozen=True, slots=True)
class McpMeans:
    """What a source needs of the house."""

    engine: Engine
    visitor: McpVisitor
    commit: Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class McpAsked:
    servers: Sequence[AskedServer]
    listed: Mapping[str, Sequence[McpTool]]
    approved: Sequence[Item]
    choice: Choice
    offers: bool
    one_call: bool

    def without_choice(self, body: ResponseRequest) -> ResponseRequest:
        """Tools that are not listed yet can be no part of what is checked before."""
        return body if self.choice is None else body.model_copy(update={"tool_choice": None})

    def source(
        self, response: Response, asked: KeptRequest, prompt: ChatPrompt, means: McpMeans, shown: Mapping[str, bytes]
    ) -> McpSource:
        plan = Plan(
            response,
            asked,
            prompt,
            self.servers,
            self.listed,
            self.approved,
            choice=self.choice,
            offers=self.offers,
            one_call=self.one_call,
        )
        rounds, caller = _parts(plan, means)
        rounds.attachments = shown
        return McpSource(plan, rounds, caller)


def mcp_asked(
    body: ResponseRequest, servers: Sequence[AskedServer], own: Sequence[Placed], everything: Sequence[Placed]
) -> McpAsked | None:
    """None if nobody is to be visited."""
    granted = approved(own, everything, _labels(servers))
    if not servers or (body.tool_choice == "none" and not granted):
        return None
    told = listed_before(everything)
    before = {one.label: told[one.label] for one in servers if one.label in told and one.finds_all_in(told[one.label])}
    choice = _choice(body.tool_choice, servers)
    return McpAsked(servers, before, granted, choice, body.tool_choice != "none", body.parallel_tool_calls is False)


def mcp_continued(plan: Plan, means: McpMeans, shown_again: ShownAgain, marks: Sequence[bytes]) -> ContinuedMcp:
    rounds, caller = _parts(plan, means)
    rounds.shown_again = shown_again
    return ContinuedMcp(plan, rounds, caller, shown_again, marks)


def _choice(given: Any, servers: Sequence[AskedServer]) -> Choice:
    """What forces a call that may be one of a server; who forces a function of his own is understood elsewhere."""
    if given == "required":
        return {}
    if isinstance(given, dict) and given.get("type") == "mcp":
        label, name = given.get("server_label"), given.get("name")
        if not isinstance(label, str) or label not in _labels(servers) or not isinstance(name, str | None):
            raise BadRequest("tool_choice: there is no such MCP server.", param="tool_choice")
        return {"server_label": label, "name": name}
    if isinstance(given, dict) and given.get("type") == "allowed_tools":
        message = "tool_choice: of MCP servers, tools are chosen by their allowed_tools."
        raise BadRequest(message, param="tool_choice", code="unsupported_value")
    return None


def _labels(servers: Sequence[AskedServer]) -> set[str]:
    return {server.label for server in servers}


def _parts(plan: Plan, means: McpMeans) -> tuple[Rounds, Caller]:
    toolbox = Toolbox(plan.servers, (tool["function"]["name"] for tool in plan.prompt.tools))
    caller = Caller(means.visitor, toolbox, means.commit, plan.response["max_tool_calls"])
    return Rounds(plan, toolbox, means.engine), caller
