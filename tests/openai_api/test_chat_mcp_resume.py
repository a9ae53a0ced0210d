"""Another process goes on with a chat from every block, and never makes a call that one before it may have made."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.openai_api.responses.mcp.mcp_requests import a_call
from tests.openai_api.responses.mcp.test_resume import (
    NESTED,
    ORDERS,
    URL,
    Says,
    a_desk,
    blocks_of,
    nothing_attached,
    services_of,
)
from tis.chat.resume import resume_with
from tis.chat.run import Run
from tis.chat.run_spec import RunSpec
from tis.engine.local_engine import LocalEngine
from tis.mcp_client.client import McpClient
from tis.media.loader import MediaLimits, MediaLoader
from tis.openai_api.routes import DIALECTS
from tis.openai_api.wire.begin import chat_mcp_spec, mcp_servers_of
from tis.openai_api.wire.chat_prompt import chat_prompt
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import DIALECT, DONE, ChatWriter, chat_writer_state, fold
from tis.streaming.source import Block

pytestmark = pytest.mark.anyio


async def source_of(desk: LocalEngine, text: str, mcp_client: McpClient, **more: Any) -> Run:
    tool = {"type": "mcp", "server_label": "s", "server_url": URL, "require_approval": "never", **more}
    body = ChatRequest.model_validate({"messages": [{"role": "user", "content": text}], "tools": [tool]})
    servers, prompt = mcp_servers_of(body, mcp_client), chat_prompt(body)
    prepared = await desk.prepare("m", prompt, {})
    state = chat_writer_state("m", with_usage=True, may_call=True)
    mcp = chat_mcp_spec(body, servers, prompt, None)
    spec = RunSpec(DIALECT, state["id"], state, prepared.resumable, mcp=mcp)
    return Run(spec, services_of(desk, mcp_client), ChatWriter(state))


def told_calls(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    chunks = [json.loads(block.data) for block in blocks if block.data != DONE]
    return [call for chunk in chunks for one in chunk["choices"] for call in one["delta"].get("mcp_calls", ())]


def num_begun(blocks: Sequence[Block]) -> int:
    return sum("name" in call for call in told_calls(blocks))


async def test_from_every_block_it_ends_as_it_would_have() -> None:
    media = MediaLoader(MediaLimits())
    async with a_desk() as first, a_desk() as second:
        before = Says()
        source = await source_of(first, NESTED, before)
        whole = await blocks_of(source)
        assert before.said == [ORDERS, "one", "two"] and whole[-1].data == DONE
        for at in [at for at, block in enumerate(whole) if block.resume_state] + [len(whole)]:
            mcp_client = Says()
            resume_source = resume_with(services_of(second, mcp_client, media), DIALECTS, resume=True)
            shown = whole[:at]
            continued = resume_source(source.request, [block.resume_state for block in shown], nothing_attached)
            rest = await blocks_of(continued)
            assert not set(mcp_client.said) & set(before.said[: num_begun(shown)])
            if num_begun(shown) > sum("status" in call for call in told_calls(shown)):
                assert "not repeated" in told_calls(rest)[0]["error"]["message"]
                assert rest[-1].data == DONE
            else:
                assert mcp_client.said == before.said[num_begun(shown) :]
                assert [block.data for block in (*shown, *rest)] == [block.data for block in whole]
                assert continued.summary == source.summary
            answer = json.loads(fold([block.data for block in (*shown, *rest)][:-2], continued.summary))
            assert json.loads(rest[-2].data if rest else whole[-2].data)["usage"] == answer["usage"]
    await media.close()


async def test_stored_requests_contain_no_headers() -> None:
    async with a_desk() as desk:
        source = await source_of(desk, "Halo", Says(), headers={"X-Key": "a-secret"}, authorization="a-secret")
        assert b"a-secret" not in source.request and URL.encode() in source.request


async def test_it_can_be_cancelled_before_any_round() -> None:
    async with a_desk() as desk:
        source = await source_of(desk, a_call("say", text="x"), Says())
        source.cancel()
        answer = json.loads(fold([block.data for block in (await blocks_of(source))[:-2]], source.summary))
    assert answer["choices"][0]["cancelled"] and source.outcome == "cancelled"
