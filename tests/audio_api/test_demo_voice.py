"""The small voice reads the forty sentences aloud so that the small Whisper understands them."""

import json
import re
from collections.abc import Iterator

import httpx2
import pytest
from openai import OpenAI

from scripts.demo_voice.folder import MAX_VOICE_BYTES
from scripts.demo_voice.texts import voices
from scripts.demo_whisper.checks import MAX_WORD_ERROR_RATE, total
from scripts.demo_whisper.folder import size_bytes
from scripts.demo_whisper.sentences import sentences
from scripts.demo_whisper.word_errors import word_errors
from tests.serving import REPOSITORY, Served, served, settings_with
from tis.engine.models.catalogue import read_catalogue

pytestmark = [pytest.mark.model, pytest.mark.long]
FOLDER = REPOSITORY / "models" / "demo-voice"


@pytest.fixture(scope="module")
def speaking() -> Iterator[Served]:
    with served(
        settings_with(model_repo_id="echo", models="demo-voice,demo-whisper", load_wait_seconds=120)
    ) as running:
        yield running


def test_what_the_voice_says_is_understood_word_for_word(speaking: Served) -> None:
    client = OpenAI(base_url=f"{speaking.url}/v1", api_key="unused", timeout=120)
    errors = []
    for one in sentences():
        said = client.audio.speech.create(
            model="demo-voice", voice=one.voice.replace("+", "-"), input=one.text, response_format="wav"
        )
        heard = client.audio.transcriptions.create(model="demo-whisper", file=("a.wav", said.read()))
        errors.append(word_errors(one.text, heard.text))
    assert total(errors).rate <= MAX_WORD_ERROR_RATE


def test_the_lines_of_the_readme_work(speaking: Served) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    found = re.search(r"/v1/audio/speech -H \"Content-Type: application/json\" \\\n  -d '(\{.+\})' -o (\S+)", readme)
    assert found
    body, name = json.loads(found[1]), found[2]
    assert f"/v1/audio/transcriptions -F file=@{name}\n" in readme
    with httpx2.Client(base_url=speaking.url, timeout=60) as http:
        said = http.post("/v1/audio/speech", json=body)
        heard = http.post("/v1/audio/transcriptions", files={"file": (name, said.content)})
    assert heard.json()["text"] == body["input"]


def test_the_catalogue_names_the_voices_that_it_learned() -> None:
    entries = {entry.id: entry for entry in read_catalogue(REPOSITORY / "configs" / "model_config.yaml")}
    assert entries["demo-voice"].voices == {voice.replace("+", "-"): number for number, voice in enumerate(voices())}


def test_the_folder_stays_small() -> None:
    assert size_bytes(FOLDER) <= MAX_VOICE_BYTES
