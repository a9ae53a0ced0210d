"""An application asks the model for JSON: with and without tools of its own, and what happens when that fails."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.serving import REPOSITORY
from tis.admission.admission import Admission
from tis.chat import structured_answer
from tis.chat.run_spec import Services
from tis.chat.structured_answer import ModelTask, StructuredAnswers, _without_tools
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import load_echo
from tis.engine.models.loading import LoadOptions, load_model
from tis.mcp_client.client import McpClient
from tis.mcp_client.limits import McpLimits
from tis.mcp_client.tool_types import LocalTool, McpTool, McpToolResult
from tis.media.loader import MediaLimits, MediaLoader

pytestmark = [pytest.mark.anyio, pytest.mark.model]
CITIES: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Jakarta", "Bandung"]}},
    "required": ["city"],
}
CITIES |= {"additionalProperties": False}
DEMO = str(REPOSITORY / "models/demo")
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKS_WEATHER = [{"role": "user", "content": "What is the weather in Jakarta?"}]


@asynccontextmanager
async def answers(repo: str = DEMO, model_id: str | None = "m") -> AsyncIterator[StructuredAnswers]:
    def load(entry: CatalogueEntry, report: Any) -> Any:
        return load_echo(repo) if repo.startswith("echo") else load_model(repo, LoadOptions(), report)

    engine = LocalEngine([CatalogueEntry("m", repo)], load, EngineLimits(load_wait_seconds=120))
    await engine.open(eager=True)
    await engine.media_kinds("m")  # it is loaded then
    services = Services(engine, MediaLoader(MediaLimits()), McpClient(McpLimits()), _never)
    try:
        yield StructuredAnswers(services, model_id)
    finally:
        await engine.close()


async def _never() -> bool:
    raise AssertionError("tools that only read need no commit")


def task(**changes: Any) -> ModelTask:
    plain = ModelTask([{"role": "user", "content": "Where?"}], lambda: CITIES, 60, 60.0, "user:1", suits_toys=True)
    return replace(plain, **changes)


class WeatherTool:
    """A tool that says where it was asked about."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    async def call(self, arguments: Mapping[str, Any]) -> McpToolResult:
        self.cities.append(arguments["city"])
        return McpToolResult(f"Sunny in {arguments['city']}.", False)

    @property
    def tool(self) -> LocalTool:
        return LocalTool(McpTool("get_weather", "The weather of a city.", PARAMETERS), self.call)


@pytest.fixture
def ticket() -> Iterator[Any]:
    ticket = Admission().ticket("user:1")
    yield ticket
    ticket.end_request()


async def test_the_answer_fits_the_schema_and_is_the_same_each_time(ticket: Any) -> None:
    async with answers() as model:
        assert await model.ready_model() == "m"
        replies = [await model.ask(task(), ticket) for _ in range(2)]
        assert replies[0] == replies[1] and replies[0]
        assert json.loads(replies[0].text)["city"] in ("Jakarta", "Bandung")
        assert replies[0].num_made_tokens > 0 < replies[0].num_prompt_tokens
        assert await model.ask(task(max_tokens=2), ticket) is None  # cut: no JSON
        assert await model.ask(task(timeout_seconds=0.0), ticket) is None
        assert await model.ask(task(messages=[{"role": "user", "content": "so " * 40_000}]), ticket) is None


async def test_the_model_calls_tools_of_this_process_and_what_they_find_may_be_answered(
    ticket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured_answer, "_TOY_BYTES", 0)
    weather = WeatherTool()

    def found() -> Mapping[str, Any]:
        return {"type": "object", "properties": {"city": {"enum": weather.cities or ["none"]}}, "required": ["city"]}

    async with answers() as model:
        reply = await model.ask(task(messages=ASKS_WEATHER, tools=[weather.tool], schema=found, max_calls=1), ticket)
    assert weather.cities == ["Jakarta"]
    assert reply and json.loads(reply.text) == {"city": "Jakarta"}


async def test_a_small_model_is_left_out_and_templates_without_tools_get_results_as_messages(ticket: Any) -> None:
    async with answers(model_id=None) as model:  # the demo model is not chosen unless it is named
        assert await model.ready_model() is None and await model.ask(task(suits_toys=True), ticket) is None
    async with answers() as model:
        assert await model.ready_model() == "m" and await model.ask(task(suits_toys=False), ticket) is None
    result = {"role": "tool", "tool_call_id": "1", "content": "found"}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}
    assert _without_tools([*ASKS_WEATHER, call, result]) == [*ASKS_WEATHER, {"role": "user", "content": "found"}]


async def test_a_model_without_grammars_gives_no_answer(ticket: Any) -> None:
    async with answers("echo") as model:
        assert await model.ready_model() is None
        assert await model.ask(task(), ticket) is None
