"""The prompts of a response that takes several rounds: what was asked, and what came of it so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from server.engine.front_desk import Engine
from server.engine.grammar.grammar import Grammar
from server.engine.prepared import Prepared
from server.engine.prompt import ChatPrompt
from server.errors import BadRequest, McpFailed
from server.openai_api.chat_grammar import forced_calls
from server.openai_api.chat_prompt import chat_prompt
from server.openai_api.chat_reading import reading_of
from server.openai_api.chat_schema import ChatRequest
from server.openai_api.reading.reading import Reading
from server.openai_api.responses.mcp.items import as_functions
from server.openai_api.responses.mcp.plan import Plan, with_media_again
from server.openai_api.responses.mcp.toolbox import Toolbox
from server.openai_api.responses.messages import messages_of
from server.openai_api.responses.schema import Item
from server.openai_api.resumption import ShownAgain


@dataclass(slots=True)
class Rounds:
    plan: Plan
    toolbox: Toolbox
    engine: Engine
    shown_again: ShownAgain | None = None  # where the prompt came without its pictures
    attachments: Mapping[str, bytes] = field(default_factory=dict)

    async def prepare(
        self, items: Sequence[Item], number: int, max_tokens: int, *, offers_servers: bool
    ) -> tuple[Prepared, Reading | None]:
        prompt = await self._prompt()
        functions = [*prompt.tools, *(self.toolbox.functions if offers_servers else ())]
        prompt = replace(prompt, messages=[*prompt.messages, *self._said(items)], tools=functions)
        params = self.plan.asked.params
        params = params.with_max_tokens(max_tokens)
        asked = {one.name: getattr(params, one.name) for one in fields(params)}
        try:
            grammar = self._grammar(functions, number)
            prepared = await self.engine.prepare(self.plan.asked.model_id, prompt, asked, grammar)
        except BadRequest as refused:
            # The request itself was found to be good before anybody was visited.
            raise McpFailed(f"With what MCP servers said, the answer cannot go on. {refused.message}") from None
        tools = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in functions}
        # Calls are numbered anew in each round, and their ids are made from that.
        answer_id = f"{self.plan.response['id']}:{number}"
        return prepared, reading_of(prepared, answer_id, tools, one_call=self.plan.one_call)

    def _grammar(self, functions: Sequence[Mapping[str, Any]], number: int) -> Grammar | None:
        """A call is forced once: who would have to call for ever could never answer."""
        given, choice = self.plan.asked.grammar, self.plan.choice
        if number:
            return None if given and given.kind == "tool_calls" else given
        if choice is None:
            return given
        if label := choice.get("server_label"):
            functions = self.toolbox.functions_of(label, choice["name"])
        return forced_calls(functions, "required", parallel=not (self.plan.one_call or choice.get("name")))

    async def _prompt(self) -> ChatPrompt:
        if self.shown_again:
            media, self.attachments = await self.shown_again()
            self.plan = replace(self.plan, prompt=with_media_again(self.plan.prompt, media))
            self.shown_again = None
        return self.plan.prompt

    def _said(self, items: Sequence[Item]) -> Sequence[dict[str, object]]:
        """The output so far, as messages."""
        named = [("", self._as_offered(item)) for item in items]
        messages, _ = messages_of(as_functions(named), {})
        if not messages:
            return []
        return [dict(message) for message in chat_prompt(ChatRequest.model_validate({"messages": messages})).messages]

    def _as_offered(self, item: Item) -> Item:
        if item["type"] != "mcp_call":
            return item
        return item | {"name": self.toolbox.name_of(item["server_label"], item["name"])}
