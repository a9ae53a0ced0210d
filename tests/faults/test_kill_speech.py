"""kill -9 while a text is spoken: whoever comes back gets exactly the rest of the file."""

import base64
import json
from pathlib import Path

import httpx2
import pytest

from tests.audio_api.speaking import write_catalogue
from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, durable, running

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PATH = "/v1/audio/speech"
TEXT = " ".join(f"Ini kalimat yang panjang dengan nomor {number}, dan ada lagi." for number in "abcdefghijkl")
FORMS = ["opus", "flac", "mp3", "aac", "wav", "pcm"][: short_or_long(1, 6)]


def variables(folder: Path) -> dict[str, str]:
    return durable(
        folder, MODEL_CONFIG=str(write_catalogue(folder)), MODEL_REPO_ID="mono", MODELS="duo", OMP_NUM_THREADS="1"
    )


async def read(server: MortalServer, session: str, after: int | None, form: str, until_blocks: int = 10**9) -> str:
    """Whole blocks, of a POST that begins the answer or, with a cursor, of a GET."""
    text, headers = "", {} if after is None else {"last-event-id": f"{session}:{after}"}
    fields = {"model": "mono", "input": TEXT, "voice": "alloy", "response_format": form, "seed": 3}
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
