"""kill -9 while a text is spoken: whoever comes back gets exactly the rest of the file."""

import base64
import json
import threading
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

import httpx2
import numpy as np
import pytest

from tests.audio_api.speaking import write_catalogue
from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, durable, running
from tests.upstream.gateway import Send, scripted
from tests.upstream.gateway import write_catalogue as write_gateway
from tests.upstream.test_far_speech import RATE, http_answer, wav

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PATH = "/v1/audio/speech"
TEXT = " ".join(f"Ini kalimat yang panjang dengan nomor {number}, dan ada lagi." for number in "abcdefghijkl")
FORMS = ["opus", "flac", "mp3", "aac", "wav", "pcm"][: short_or_long(1, 6)]


def variables(folder: Path) -> dict[str, str]:
    return durable(
        folder, MODEL_CONFIG=str(write_catalogue(folder)), MODEL_REPO_ID="mono", MODELS="duo", OMP_NUM_THREADS="1"
    )


async def read(
    server: MortalServer,
    session: str,
    after: int | None,
    form: str,
    until_blocks: int = 10**9,
    model: str = "mono",
) -> str:
    """Whole blocks, of a POST that begins the answer or, with a cursor, of a GET."""
    text, headers = "", {} if after is None else {"last-event-id": f"{session}:{after}"}
    fields = {"model": model, "input": TEXT, "voice": "alloy", "response_format": form, "seed": 3}
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
        asking = (
            http.stream("POST", PATH, json={**fields, "stream_format": "sse", "session_id": session})
            if after is None
            else http.stream("GET", f"/v1/stream/{session}", headers=headers)
        )
        try:
            async with asking as response:
                assert response.status_code == 200, await response.aread()
                async for chunk in response.aiter_text():
                    text += chunk
                    if text.count("\n\n") >= until_blocks:
                        break
        except httpx2.TransportError:
            pass
    text = text.replace(": ping\n", "")  # while the model is loaded
    return text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""


async def num_made(server: MortalServer) -> float:
    """Tokens of sound, that this process made."""
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("tis_generation_tokens_total"))


async def test_a_speech_survives_kills(tmp_path: Path) -> None:
    async with running(tmp_path, **variables(tmp_path)) as server:
        for form in FORMS:
            seen = await read(server, f"cut-{form}", None, form, until_blocks=2)
            server.kill()
            await server.start()
            seen += await read(server, f"cut-{form}", seen.count("\n\n") - 1, form)
            assert await num_made(server) > 0  # the first process had not made all of it
            assert seen == await read(server, f"cut-{form}", None, form)
            whole = await read(server, f"whole-{form}", None, form)
            assert seen.replace("cut-", "whole-") == whole
            events = [json.loads(block.partition("data: ")[2]) for block in seen.split("\n\n") if block]
            assert [event["type"] for event in events].count("speech.audio.done") == 1
            async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
                fields = {"model": "mono", "input": TEXT, "voice": "alloy", "response_format": form, "seed": 3}
                file = (await http.post(PATH, json=fields)).content
            assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == file
            assert len(events) > 4


async def test_a_speech_of_an_upstream_survives_kills_of_the_server_in_front_and_of_an_upstream(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "front")]
    for folder in folders:
        folder.mkdir()
    mouth = {**variables(tmp_path), "EAGER_LOAD_MODEL": "1"}
    async with AsyncExitStack() as stack:
        one, two = [
            await stack.enter_async_context(running(folder, **{**mouth, **durable(folder)})) for folder in folders[:2]
        ]
        seconds = {"connect": 1, "probe": 0.2}
        catalogue = write_gateway(
            *(folders[2], [f"{back.url}/v1" for back in (one, two)]),
            task="speech",
            upstream_model="mono",
            upstream_seconds=seconds,
        )
        fronts = durable(folders[2], MODEL_CONFIG=str(catalogue), MODEL_REPO_ID="far")
        front = await stack.enter_async_context(running(folders[2], **fronts))
        for form in FORMS:
            whole = await read(front, f"whole-{form}", None, form, model="far")
            assert whole.count('"speech.audio.done"') == 1
            seen = await read(front, f"cut-{form}", None, form, until_blocks=2, model="far")
            front.kill()
            one.kill()
            await front.start()
            seen += await read(front, f"cut-{form}", seen.count("\n\n") - 1, form, model="far")
            assert seen.replace("cut-", "whole-") == whole
            await one.start()


async def test_a_speech_of_an_upstream_that_never_says_the_same_twice_ends_with_the_reason(tmp_path: Path) -> None:
    asked, killed = count(1), threading.Event()

    def say(send: Send) -> None:
        number = next(asked)
        if number > 2:
            killed.wait(60)
        send(http_answer(wav(np.full(RATE, 1000 * number))))

    with scripted(say) as upstream:
        catalogue = write_gateway(tmp_path, [upstream.url], task="speech", upstream_kind="openai")
        async with running(tmp_path, **durable(tmp_path, MODEL_CONFIG=str(catalogue), MODEL_REPO_ID="far")) as front:
            seen = await read(front, "cut", None, "pcm", until_blocks=2, model="far")
            front.kill()
            killed.set()
            await front.start()
            seen += await read(front, "cut", 1, "pcm", model="far")
    events = [json.loads(block.partition("data: ")[2]) for block in seen.split("\n\n") if block]
    assert [event["type"] for event in events[:2]] == ["speech.audio.delta"] * 2
    assert "makes other sound" in events[-1]["error"]["message"]
