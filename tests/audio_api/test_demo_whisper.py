"""The small Whisper behind the routes hears its sentences, alone and in two minutes, and nothing in silence."""

from collections.abc import Iterator

import httpx2
import numpy
import pysubs2
import pytest
from openai import OpenAI

from scripts.demo_whisper.checks import MAX_WORD_ERROR_RATE, Glued, glued, silences
from scripts.demo_whisper.sentences import all_spoken
from scripts.demo_whisper.word_errors import word_errors
from tests.media.sounds import sound_file
from tests.serving import Served, served, settings_with

pytestmark = [pytest.mark.model, pytest.mark.long]
MODEL = "demo-whisper"
MAX_SECONDS_OFF = 0.3
MAX_MISPLACED = 0.03  # of all words


@pytest.fixture(scope="module")
def whisper() -> Iterator[Served]:
    settings = settings_with(model_repo_id="echo", models=MODEL, load_wait_seconds=120, torch_dtype="float32")
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def client(whisper: Served) -> OpenAI:
    return OpenAI(base_url=f"{whisper.url}/v1", api_key="unused", timeout=120)


@pytest.fixture(scope="module")
def long() -> Glued:
    return glued(all_spoken(), seed=1)


def wav(samples: object) -> tuple[str, bytes]:
    return ("sound.wav", sound_file(numpy.asarray(samples, numpy.float32), "wav", "pcm_s16le"))


def test_every_sentence_is_written_word_for_word(client: OpenAI) -> None:
    wrong = {}
    for spoken in all_spoken():
        heard = client.audio.transcriptions.create(model=MODEL, file=spoken.sentence.path)
        if heard.text != spoken.sentence.text:
            wrong[spoken.sentence.text] = heard.text
    assert wrong == {}


def test_two_minutes_have_at_most_one_wrong_word_in_fifty(client: OpenAI, long: Glued) -> None:
    heard = client.audio.transcriptions.create(model=MODEL, file=wav(long.samples))
    errors = word_errors(long.text, heard.text)
    assert errors.words > 150
    assert errors.rate <= MAX_WORD_ERROR_RATE


def test_subtitles_lie_where_they_are_spoken(client: OpenAI, long: Glued) -> None:
    subtitles = pysubs2.SSAFile.from_string(
        client.audio.transcriptions.create(model=MODEL, file=wav(long.samples), response_format="srt")
    )
    starts = numpy.array([start for start, _ in long.times])
    assert abs(len(subtitles) - len(starts)) <= 2
    near = [numpy.abs(starts - line.start / 1000).min() <= MAX_SECONDS_OFF for line in subtitles]
    assert sum(near) >= 0.9 * len(near)


def test_words_lie_where_they_are_spoken_in_every_sentence(client: OpenAI) -> None:
    """Each word but a few begins near its time and takes some."""
    misplaced, empty, num_words = [], [], 0
    for spoken in all_spoken():
        verbose = client.audio.transcriptions.create(
            model=MODEL, file=spoken.sentence.path, response_format="verbose_json", timestamp_granularities=["word"]
        )
        assert verbose.words
        assert [word.word for word in verbose.words] == spoken.sentence.text.split()
        for found, time in zip(verbose.words, spoken.words, strict=True):
            num_words += 1
            where = f"{spoken.sentence.name} {found.word}: {found.start} to {found.end}, spoken at {time.start}"
            misplaced += [where] if abs(found.start - time.start) > MAX_SECONDS_OFF else []
            empty += [where] if found.end <= found.start else []
    assert len(misplaced) <= MAX_MISPLACED * num_words, misplaced
    assert len(empty) <= MAX_MISPLACED * num_words, empty


def test_silence_noise_and_hum_are_empty(client: OpenAI) -> None:
    heard = {
        name: client.audio.transcriptions.create(model=MODEL, file=wav(samples)).text
        for name, samples in silences(seed=3).items()
    }
    assert {name: text for name, text in heard.items() if text} == {}


def test_the_language_is_found_and_indonesian_is_translated(whisper: Served, client: OpenAI) -> None:
    spoken = all_spoken()[0]
    told = client.audio.transcriptions.create(model=MODEL, file=spoken.sentence.path, response_format="verbose_json")
    assert told.language == "indonesian"
    files = {"file": ("a.ogg", spoken.sentence.path.read_bytes())}
    answer = httpx2.post(f"{whisper.url}/v1/audio/translations", files=files, data={"model": MODEL}, timeout=60)
    assert answer.json()["text"] == spoken.sentence.english
