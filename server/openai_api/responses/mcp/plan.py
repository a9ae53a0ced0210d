"""What a response with MCP was asked for: all that another process needs of it beside the marks of its events."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from server.engine.kept import KeptRequest
from server.engine.prompt import ChatPrompt, Medium, with_placeholders
from server.mcp.server import McpTool
from server.openai_api.responses.mcp.asked_server import AskedServer
from server.openai_api.responses.mcp.items import as_told, tool_of
from server.openai_api.responses.response_object import Response
from server.openai_api.responses.schema import Item

KIND = "mcp_response"
Choice = dict[str, str | None] | None  # a call is forced: of any tool, of a server's, or of the one of this name


@dataclass(frozen=True, slots=True)
class Plan:
    response: Response  # as it is before anything was said
    asked: KeptRequest  # sampling, model and media; its prompt is not the one that is answered
    prompt: ChatPrompt  # without the tools of the servers; from another process, without what its pictures show
    servers: Sequence[AskedServer]
    listed: Mapping[str, Sequence[McpTool]]  # earlier in the conversation
    approved: Sequence[Item]
    choice: Choice
    offers: bool  # tools of servers to the model
    one_call: bool

    def to_json(self) -> dict[str, Any]:
        prompt = self.prompt
        return {
            "kind": KIND,
            "response": self.response,
            "asked": replace(self.asked, prompt_ids=[]).to_json(),
            "messages": [dict(with_placeholders(message)) for message in prompt.messages],
            "tools": list(prompt.tools),
            "template_options": dict(prompt.template_options),
            "servers": [server.to_json() for server in self.servers],
            "listed": {label: [as_told(tool) for tool in tools] for label, tools in self.listed.items()},
            "approved": list(self.approved),
            "may_be_cut": prompt.may_be_cut,
            "choice": self.choice,
            "offers": self.offers,
            "one_call": self.one_call,
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        return cls(
            given["response"],
            KeptRequest.from_json(given["asked"]),
            ChatPrompt(
                given["messages"],
                given["tools"],
                given["template_options"],
                reads_marks=True,
                may_be_cut=given["may_be_cut"],
            ),
            [AskedServer.from_json(server) for server in given["servers"]],
            {label: [tool_of(tool) for tool in tools] for label, tools in given["listed"].items()},
            given["approved"],
            given["choice"],
            given["offers"],
            given["one_call"],
        )


def with_media_again(prompt: ChatPrompt, media: Sequence[Medium]) -> ChatPrompt:
    shown = iter(media)
    return replace(prompt, messages=[_with_media(message, shown) for message in prompt.messages])


def _with_media(message: Mapping[str, Any], shown: Iterator[Medium]) -> Mapping[str, Any]:
    if not isinstance(message.get("content"), list):
        return message
    parts = [part if part["type"] == "text" else {**part, part["type"]: next(shown)} for part in message["content"]]
    return {**message, "content": parts}
