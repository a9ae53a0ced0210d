"""A real Whisper behind the routes: tiny, with random weights, and windows of two seconds."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.engine.speech.models import save_whisper, sound
from tests.media.sounds import sound_file
from tests.serving import Served, served, settings_with

pytestmark = pytest.mark.model
PATH = "/v1/audio/transcriptions"
FILE = sound_file(sound(3, 11.0), "flac", "flac")


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = save_whisper(tmp_path_factory.mktemp("whisper") / "tiny-whisper")
    settings = settings_with(model_repo_id=str(folder), load_wait_seconds=120, torch_dtype="float32")
    with served(settings) as running:
        yield running


def test_all_formats_of_an_answer_have_what_was_heard(whisper: Served) -> None:
    with httpx2.Client(base_url=whisper.url, timeout=120) as http:

        def sent(**fields: object) -> httpx2.Response:
            answer = http.post(PATH, data=fields, files={"file": ("a.flac", FILE)})
            assert answer.status_code == 200, answer.text
            return answer

        text = sent(language="id").json()["text"]
        verbose = sent(
            language="id", response_format="verbose_json", timestamp_granularities=["word", "segment"]
        ).json()
        assert text
        assert verbose["text"] == text
        assert (verbose["language"], verbose["duration"]) == ("indonesian", 11.0)
        starts = [segment["start"] for segment in verbose["segments"]]
        assert starts == sorted(starts)
        assert len({segment["seek"] for segment in verbose["segments"]}) > 3
        assert all(0 <= word["start"] <= word["end"] <= 11.1 for word in verbose["words"])
        assert sent(language="id", response_format="text").text == f"{text}\n"
        assert sent(language="id", response_format="vtt").text.count("-->") == len(verbose["segments"])
        assert len(sent(include="logprobs", language="id").json()["logprobs"]) > 10
        stream = sent(stream="true", language="id", session_id="real").text
        assert stream.count("event: transcript.text.done") == 1
        assert http.get("/v1/stream/real").text == stream
        assert sent(response_format="verbose_json").json()["language"] in ("indonesian", "english", "chinese")
