"""An answer that names a URL which a tool has returned cites it, and a resumed one cites the same."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.mcp.mcp_requests import a_call, items_of, server_tool
from tests.openai_api.responses.mcp.test_resume import (
    Says,
    a_desk,
    blocks_of,
    nothing_attached,
    services_of,
    source_of,
    told,
)
from tests.openai_api.responses.response_requests import replay, stream
from tests.openai_api.responses.test_event_types import check_strictly
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of as chat_blocks_of
from tests.serving import Served, served, settings_with
from tis.chat.resume import resume_with
from tis.media.loader import MediaLimits, MediaLoader
from tis.openai_api.routes import DIALECTS
from tis.openai_api.wire.citations import ReturnedUrls

# The tool returns this text and the echo model repeats it. The emoji is one character of two UTF-16 units.
FOUND = "⛴️😀 Read [Ships of Merak](https://ships.example/merak) and https://ports.example/a_(b), not http://x.example."
CALL = a_call("say", text=FOUND)


@pytest.fixture(scope="module")
def server(weather: McpProcess) -> Iterator[Served]:
    with served(settings_with(mcp_allowed_hosts=weather.host, hosted_tools=f"web_search={weather.url}")) as running:
        yield running


@pytest.fixture
def http(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        yield client


def cited(text: str, annotations: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(text[one["start_index"] : one["end_index"]], one["url"], one["title"]) for one in annotations]


EXPECTED = [
    ("[Ships of Merak](https://ships.example/merak)", "https://ships.example/merak", "Ships of Merak"),
    ("https://ports.example/a_(b)", "https://ports.example/a_(b)", "https://ports.example/a_(b)"),
    ("http://x.example", "http://x.example", "http://x.example"),
]


def test_a_response_cites_what_its_tools_returned(http: httpx2.Client, weather: McpProcess) -> None:
    for tool in ({"type": "web_search"}, server_tool(weather)):
        events = stream(http, CALL, tools=[tool])
        check_strictly(events)
        response = events[-1]["response"]
        [message] = items_of(response, "message")
        [part] = message["content"]
        assert cited(part["text"], part["annotations"]) == EXPECTED
        added = [one for one in events if one["type"] == "response.output_text.annotation.added"]
        assert [one["annotation"] for one in added] == part["annotations"]
        assert [one["annotation_index"] for one in added] == [0, 1, 2]
        assert replay(http, response["id"]) == events
    [plain] = items_of(stream(http, FOUND)[-1]["response"], "message")
    assert plain["content"][0]["annotations"] == []


def test_a_chat_with_web_search_options_cites(server: Served, http: httpx2.Client) -> None:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused")
    answer = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": CALL}], web_search_options={}
    )
    message = answer.choices[0].message
    assert message.content and message.annotations
    told = [one.url_citation.model_dump() for one in message.annotations if one.type == "url_citation"]
    assert cited(message.content, told) == EXPECTED
    body = said(CALL, web_search_options={}, stream=True, session_id="cites")
    whole = http.post(CHAT, json=body).text
    deltas = [json.loads(block.data)["choices"][0]["delta"] for block in chat_blocks_of(whole)[:-1]]
    [annotated] = [one["annotations"] for one in deltas if "annotations" in one]
    assert annotated == [one.model_dump() for one in message.annotations]
    assert http.get("/v1/stream/cites").text == whole


@pytest.mark.anyio
async def test_a_resumed_response_cites_the_same() -> None:
    media = MediaLoader(MediaLimits())
    async with a_desk() as first, a_desk() as second:
        source = await source_of(first, CALL, Says())
        whole = await blocks_of(source)
        kinds = [event["type"] for event in told(whole)]
        assert kinds.count("response.output_text.annotation.added") == len(EXPECTED)
        begins = [at for at, block in enumerate(whole) if block.resume_state][-12:]
        for at in [*begins, len(whole)]:
            resume_source = resume_with(services_of(second, Says(), media), DIALECTS, resume=True)
            states = [block.resume_state for block in whole[:at]]
            rest = await blocks_of(resume_source(source.request, states, nothing_attached))
            assert told([*whole[:at], *rest]) == told(whole)
    await media.close()


_OTHER = "https://a.example/b"
RESULTS = json.dumps(
    {
        "results": [
            {
                "title": "Ships\n of  Merak",
                "url": "https://ships.example/merak",
                "content": "As in https://a.example/b.",
            },
            {"name": "Ports", "link": "https://ports.example/?q=1&p=2"},
        ]
    }
)
LINES = (
    "Title: Ships\nURL: https://ships.example/merak\n\nURL: https://ports.example\n[Ferries: https://ferries.example]"
)


@pytest.mark.parametrize(
    ("output", "text", "expected"),
    [
        (RESULTS, "So says https://ships.example/merak.", [("https://ships.example/merak", "Ships of Merak")]),
        (RESULTS, "**https://a.example/b**, x", [("https://a.example/b", "https://a.example/b")]),
        (RESULTS, "(see https://ports.example/?q=1&p=2).", [("https://ports.example/?q=1&p=2", "Ports")]),
        (RESULTS, "https://ships.example/merak/2 and https://ships.example", []),
        (RESULTS, '[[1]](https://a.example/b "B")', [('[[1]](https://a.example/b "B")', "https://a.example/b")]),
        (RESULTS, f"[{_OTHER}]({_OTHER})", [(f"[{_OTHER}]({_OTHER})", _OTHER)]),
        (LINES, "https://ships.example/merak", [("https://ships.example/merak", "Ships")]),
        (LINES, "https://ports.example!", [("https://ports.example", "https://ports.example")]),
        (LINES, "<https://ferries.example>", [("https://ferries.example", "Ferries")]),
        ("[" * 10_000, "https://ferries.example", []),
        ("", "https://ferries.example", []),
    ],
)
def test_only_returned_urls_are_cited(output: str, text: str, expected: list[tuple[str, str]]) -> None:
    urls = ReturnedUrls()
    urls.add(output)
    found = [(text[one.start : one.end], one.title) for one in urls.cited_in(text)]
    assert found == expected


def test_what_is_cited_has_bounds() -> None:
    urls = ReturnedUrls()
    urls.add(" ".join(f"https://a.example/{number}" for number in range(5000)))
    urls.add(None)
    assert len(urls.cited_in(" ".join(f"https://a.example/{number}" for number in range(5000)))) == 128
    assert urls.cited_in("https://a.example/4999") == []
    assert urls.cited_in("https://a.example/1" + ")" * 100_000) == []
