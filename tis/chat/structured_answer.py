"""Asks the model for an answer that fits a JSON Schema, with tools of this process between its rounds.

Nothing of it is recorded. It is a `Run` as every other answer, so its rounds and calls are those of chats.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from tis.admission.ticket import Ticket
from tis.chat.part_reader import parser_config
from tis.chat.parts import CallEvent, ChoiceEnd, Events, RoundEnd, RunPart, RunUsage, TextDelta
from tis.chat.run import LocalTools, Run
from tis.chat.run_spec import McpSpec, RunSpec, Services
from tis.engine.answer import FinishReason
from tis.engine.grammar.grammar import Grammar
from tis.engine.prompt import ChatPrompt
from tis.errors import ServiceError
from tis.mcp_client.errors import McpOperationFailed
from tis.mcp_client.limits import McpLimits
from tis.mcp_client.requested_server import RequestedServer, ToolFilter
from tis.mcp_client.tool_types import LocalTool, McpServer, McpTool, McpToolResult
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id

# Models with smaller weights, such as the demo model (5 MB), cannot hold a conversation, nor read the tools.
_TOY_BYTES = 100_000_000
_LABEL = "catalogue"
# Greedy, and nothing of what operators or models have as defaults.
_SAMPLING: Mapping[str, Any] = {
    "temperature": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "min_tokens": 0,
    "seed": 0,
    "n": 1,
    "thinking_budget": 0,
}


@dataclass(frozen=True)
class ModelTask:
    """One question to the model: messages as chat templates take them, and the JSON Schema of the answer.

    `schema` is a function: what `tools` find changes which answers are possible.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: Callable[[], Mapping[str, Any]]
    max_tokens: int
    timeout_seconds: float
    owner: str  # whose cached prefixes are shared
    tools: Sequence[LocalTool] = field(default_factory=tuple)
    max_calls: int = 3
    suits_toys: bool = False  # also a model that is too small for anything that it was not taught is asked


@dataclass(frozen=True)
class ModelReply:
    """`text` is JSON that fits the schema of the task."""

    text: str
    num_prompt_tokens: int
    num_made_tokens: int


class StructuredAnswers:
    """The engine as the model of an application. What goes wrong with the model is logged, and means no answer."""

    def __init__(self, services: Services, model_id: str | None = None, *, sees: bool = False) -> None:
        """`model_id`: None for the first chat model of the catalogue that is no toy and is computed here.

        `sees`: only a model that takes images is asked.
        """
        # The tools only read, so nothing has to be on disk before a call.
        self._services = replace(services, commit=_nothing_to_commit)
        self._wanted = model_id
        self._sees = sees

    async def ready_model(self) -> str | None:
        """The id of the model that can answer now. None while it loads, and if it cannot be held to a schema."""
        found = await self._find_model()
        return found[0] if found else None

    async def _find_model(self) -> tuple[str, bool] | None:
        """With whether it is a toy."""
        engine = self._services.engine
        if engine.is_draining:
            return None
        ready = {status.id for status in engine.statuses if status.state == "ready"}
        for entry in engine.models:
            if entry.id not in ready or entry.task != "chat" or self._wanted not in (None, entry.id):
                continue
            if entry.upstream and self._wanted is None:
                continue  # what users write leaves this machine only if the operator has named the model
            description = await engine.describe(entry.id)
            if self._sees and "image" not in description.media:
                continue
            num_bytes = description.weights_bytes
            is_toy = num_bytes is not None and num_bytes < _TOY_BYTES
            if description.has_grammars and not (is_toy and self._wanted is None):
                return entry.id, is_toy
        return None

    async def ask(self, task: ModelTask, ticket: Ticket) -> ModelReply | None:
        """None if the model is not loaded, fails, is too slow, or its answer is cut."""
        found = await self._find_model()
        if found is None:
            return None
        model_id, is_toy = found
        if is_toy:
            if not task.suits_toys:
                return None
            task = replace(task, tools=())
        try:
            async with asyncio.timeout(task.timeout_seconds):
                return await self._ask(model_id, task, ticket)
        except TimeoutError:
            return None
        except ServiceError as error:
            log_exception("the model gave no structured answer", error, current_request_id())
            return None

    async def _ask(self, model_id: str, task: ModelTask, ticket: Ticket) -> ModelReply | None:
        engine = self._services.engine
        variables = await engine.template_variables(model_id)
        options = {"enable_thinking": False} if "enable_thinking" in variables else {}
        tools = task.tools if "tools" in variables else ()
        messages = task.messages if "tools" in variables else _without_tools(task.messages)
        prompt = ChatPrompt(messages, template_options=options, emit_markers=True)
        collected = _CollectingWriter()
        run = await _new_run(self._services, model_id, prompt, replace(task, tools=tools), collected, ticket)
        try:
            async with aclosing(run.events()) as events:
                async for _ in events:
                    pass
        except BaseException:
            run.cancel()  # also when the time is up: the model must not go on for nobody
            raise
        usage = collected.usage
        if collected.finish != "stop":
            return None
        return ModelReply(collected.text, usage.num_prompt, usage.num_made)


async def _new_run(
    services: Services, model_id: str, prompt: ChatPrompt, task: ModelTask, writer: "_CollectingWriter", ticket: Ticket
) -> Run:
    def form() -> Grammar:
        return Grammar("json_schema", dict(task.schema()), param="schema")

    sampling = {**_SAMPLING, "max_tokens": task.max_tokens}
    prepared = await services.engine.prepare(
        model_id,
        prompt,
        sampling,
        None if task.tools else form(),
        cache_salt=f"assistant:{task.owner}",
        ticket=ticket,
    )
    if not task.tools:
        parser = parser_config(prepared, "structured", {})
        spec = RunSpec("structured", "structured", {}, prepared.resumable, parser)
        return Run(spec, services, writer, prepared=prepared, ticket=ticket)
    local = LocalToolServer(task.tools, services.mcp_client.limits)
    mcp = McpSpec(prompt, [local.requested], None, None, max_calls=task.max_calls)
    spec = RunSpec("structured", "structured", {}, prepared.resumable, mcp=mcp)
    return Run(spec, services, writer, ticket=ticket, local=LocalTools(local, form))


class LocalToolServer:
    """Tools of this process in the place of an MCP server."""

    def __init__(self, tools: Sequence[LocalTool], limits: McpLimits) -> None:
        self.limits = limits
        self.requested = RequestedServer(_LABEL, McpServer(f"local:{_LABEL}"), ToolFilter(), "never", has_headers=False)
        self._tools = {one.tool.name: one for one in tools}

    async def list_tools(self, server: McpServer, is_wanted: Callable[[McpTool], bool]) -> list[McpTool]:
        return [one.tool for one in self._tools.values() if is_wanted(one.tool)]

    async def call(self, server: McpServer, name: str, arguments: Mapping[str, Any]) -> McpToolResult:
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                return await self._tools[name].call(arguments)
        except TimeoutError:
            raise McpOperationFailed("The tool did not answer in time.", "http", 504) from None


class _CollectingWriter:
    """Makes no events; collects the text of the last round, and its end."""

    def __init__(self) -> None:
        self.text = ""
        self._growing = ""
        self.usage = RunUsage()
        self.finish: FinishReason | None = None

    def begun(self, num_choices: int) -> Events:
        return ()

    def part(self, choice: int, part: RunPart) -> Events:
        if isinstance(part, TextDelta):
            self._growing += part.text
        elif isinstance(part, RoundEnd) or (isinstance(part, ChoiceEnd) and self._growing):
            self.text, self._growing = self._growing, ""
        return ()

    def call(self, event: CallEvent) -> Events:
        return ()

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events:
        self.finish, self.usage = finish, usage
        return ()

    def failed(self, error: Exception) -> bytes:
        return b""

    def summary(self, usage: RunUsage) -> bytes:
        return b"{}"


def _without_tools(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """For templates that know no tools: a result becomes a message of the user, its call goes."""
    kept = [message for message in messages if not message.get("tool_calls")]
    return [{"role": "user", "content": one["content"]} if one["role"] == "tool" else one for one in kept]


async def _nothing_to_commit() -> bool:
    return True
