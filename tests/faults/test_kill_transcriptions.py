"""kill -9 while a file is heard: whoever comes back gets exactly the rest, and what has a record is not heard again."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.audio_api.tones import MODELS
from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, durable, running
from tests.media.sounds import WORDS, sound_file, spoken

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PATH = "/v1/audio/transcriptions"
PROGRAM = ("-m", "tests.audio_api.tones_server")
# Each window says another number of two digits.
NUMBERS = [f"{WORDS[tens]} {WORDS[ones]}" for tens in range(1, 4) for ones in range(10)]
FILE = sound_file(spoken(" 2.5 ".join(NUMBERS)), "flac", "flac")
AT_ONCE = 3
FORMS = ["json", "verbose_json"][-short_or_long(1, 2) :]


def variables(folder: Path) -> dict[str, str]:
    (folder / "models.yaml").write_text(MODELS)
    return durable(
        folder,
        MODEL_CONFIG=str(folder / "models.yaml"),
        MODEL_REPO_ID="tones",
        TONES_SECONDS="0.08",
        TONES_DIARY=str(folder / "diary"),
        AUDIO_WINDOWS_AT_ONCE=str(AT_ONCE),
    )


async def read(server: MortalServer, session: str, after: int | None, form: str, until_blocks: int = 10**9) -> str:
    """Whole blocks, of a POST that begins the answer or, with a cursor, of a GET."""
    text, headers = "", {} if after is None else {"last-event-id": f"{session}:{after}"}
    fields = {"model": "tones", "stream": "true", "session_id": session, "response_format": form}
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
        asking = (
            http.stream("POST", PATH, data=fields, files={"file": ("a.flac", FILE)})
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
    return text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""


@pytest.mark.parametrize("form", FORMS)
async def test_a_transcription_survives_kills(tmp_path: Path, form: str) -> None:
    async with running(tmp_path, program=PROGRAM, **variables(tmp_path)) as server:
        seen = await read(server, "cut", None, form, until_blocks=4)
        for _ in range(2):
            server.kill()
            await server.start()
            seen += await read(server, "cut", seen.count("\n\n") - 1, form, until_blocks=6)
        seen += await read(server, "cut", seen.count("\n\n") - 1, form)
        heard = Counter((tmp_path / "diary").read_text().splitlines())
        assert seen == await read(server, "cut", None, form)
        whole = await read(server, "whole", None, form)
        assert seen.replace("cut:", "whole:") == whole
        fields = {"model": "tones", "session_id": "cut", "response_format": form}
        async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
            folded = await http.post(PATH, data=fields, files={"file": ("a.flac", FILE)})
        assert folded.json()["text"] == " ".join(NUMBERS)
    assert set(heard) == set(NUMBERS)
    # Only windows that were being heard at a kill are heard again.
    assert heard.total() <= len(NUMBERS) + 2 * (AT_ONCE + 1)


async def test_a_transcription_that_drains_goes_on_after_the_start(tmp_path: Path) -> None:
    async with running(tmp_path, program=PROGRAM, DRAIN_SECONDS="0.2", **variables(tmp_path)) as server:
        seen = await read(server, "drained", None, "json", until_blocks=3)
        server.terminate()
        await server.exit_code()
        await server.start()
        seen += await read(server, "drained", seen.count("\n\n") - 1, "json")
        assert seen == await read(server, "drained", None, "json")
        assert seen.count("event: transcript.text.done") == 1


async def test_without_its_file_an_answer_ends_with_the_reason(tmp_path: Path) -> None:
    given = variables(tmp_path) | {"MAX_SESSION_MEDIA_MB": "0.001"}
    async with running(tmp_path, program=PROGRAM, **given) as server:
        seen = await read(server, "lost", None, "json", until_blocks=2)
        server.kill()
        await server.start()
        rest = await asyncio.wait_for(read(server, "lost", seen.count("\n\n") - 1, "json"), 30)
        assert "its file was not kept" in rest
