"""The largest bodies that the server takes do not hold up its event loop: no callback needs more CPU than 50 ms."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.loop_pauses import MAX_PAUSE_SECONDS, LoopPauses, measured_pauses
from tests.serving import served, settings_with

MIB = 2**20
HELLO = {"role": "user", "content": "Halo"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * (20 * MIB)}}
PROPERTIES = {f"property_{number}": {"type": "string", "description": "of a tool " * 4} for number in range(150)}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": list(PROPERTIES)}
TOOLS = [{"type": "function", "function": {"name": f"f{number}", "parameters": SCHEMA}} for number in range(128)]
RESPONSE_TOOLS = [{"type": "function", **tool["function"]} for tool in TOOLS]  # type: ignore[dict-item]
MANY_VALUES: dict[str, Any] = {"a": [[]] * 49_000}
CALLED = {"role": "assistant", "mcp_calls": [{"name": "f", "arguments": "{}", "output": "x"}] * 1000}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}] * 4000}
NESTED_BLOCKS = [RESULT] * 8
LARGEST: dict[str, tuple[str, dict[str, Any], int]] = {
    "text": ("chat/completions", {"messages": [{"role": "user", "content": "some text " * 419_000}]}, 400),
    "escaped text": ("chat/completions", {"messages": [{"role": "user", "content": "\n" * (2 * MIB - 200)}]}, 400),
    "text of a response": ("responses", {"input": "some text " * 419_000}, 400),
    "too much text": ("chat/completions", {"messages": [{"role": "user", "content": "a" * (9 * MIB)}] * 2}, 413),
    "too much text of a response": ("responses", {"input": "a" * (12 * MIB)}, 413),
    "images": ("chat/completions", {"messages": [{"role": "user", "content": [IMAGE, IMAGE]}]}, 400),
    "values of a tool": (
        "chat/completions",
        {"messages": [HELLO], "tools": [{"type": "function", "function": {"name": "f", "parameters": MANY_VALUES}}]},
        200,
    ),
    "values of parts": (
        "chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 4000}] * 8},
        200,
    ),
    "values of calls": ("chat/completions", {"messages": [*[CALLED] * 12, HELLO]}, 200),
    "messages": ("chat/completions", {"messages": [{"role": "user", "content": "a" * 380}] * 10_000}, 400),
    "tools": ("chat/completions", {"messages": [HELLO], "tools": TOOLS}, 200),
    "tools of a response": ("responses", {"input": "Halo", "tools": RESPONSE_TOOLS}, 200),
    "nested blocks": ("messages", {"messages": [{"role": "user", "content": NESTED_BLOCKS}]}, 200),
    "nested blocks, one of them wrong": (
        "messages",
        {"messages": [{"role": "user", "content": [*NESTED_BLOCKS[:3], {"type": 1}, *NESTED_BLOCKS[3:]]}]},
        400,
    ),
    "blocks of a system prompt": (
        "messages",
        {"system": [{"type": "text", "text": "x"}] * 4000, "messages": [HELLO]},
        200,
    ),
    "items": ("responses", {"input": [HELLO] * 10_000}, 200),
}  # fmt: skip


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[httpx2.Client, LoopPauses]]:
    with (
        measured_pauses() as pauses,
        served(settings_with(), loop="asyncio") as server,
        httpx2.Client(base_url=f"{server.url}/v1", timeout=60) as client,
    ):
        client.post("/chat/completions", json={"messages": [HELLO]})  # the first request loads the model
        client.post("/responses", json={"input": "Halo"})
        yield client, pauses


@pytest.mark.parametrize("name", LARGEST)
def test_a_large_body_does_not_hold_up_the_loop(measured: tuple[httpx2.Client, LoopPauses], name: str) -> None:
    client, pauses = measured
    path, body, status = LARGEST[name]
    limit = {"max_output_tokens": 16} if path == "responses" else {"max_tokens": 1}
    content = json.dumps({**limit, **body}, ensure_ascii=False, separators=(",", ":")).encode()
    pauses.clear()
    answer = client.post(f"/{path}", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text[:500]
    assert pauses.longest <= MAX_PAUSE_SECONDS, str(pauses)


def test_the_measurement_finds_what_holds_up_a_loop() -> None:
    async def hold_up() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 2 * MAX_PAUSE_SECONDS:
            pass

    with measured_pauses() as pauses:
        loop = threading.Thread(target=asyncio.run, args=[hold_up()])
        loop.start()
        loop.join()
    assert pauses.longest > MAX_PAUSE_SECONDS
