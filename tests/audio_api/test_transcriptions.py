"""OpenAI's client transcribes files in every format of an answer; subtitle parsers read what it gets."""

import io
import json
from typing import Any

import httpx2
import pysubs2
import pytest
import webvtt
from openai import APIStatusError, BadRequestError, NotFoundError, OpenAI

from tests.audio_api.tones import TonesEngine
from tests.media.sounds import sound_file, spoken
from tests.serving import Served

SPEECH = sound_file(spoken("1 dua tiga 0.8 empat lima 3 enam"), "mp3", "libmp3lame", rate=16_000)
TEXT = "dua tiga empat lima enam"
LONG_TEXT = ["dua", "tiga", "empat"] * 40
LONG = sound_file(spoken(" 0.9 ".join(LONG_TEXT)), "flac", "flac")


def transcribed(client: OpenAI, data: bytes = SPEECH, **fields: Any) -> Any:
    return client.audio.transcriptions.create(**{"model": "tones", "file": ("a.mp3", data), **fields})


def refused(client: OpenAI, data: bytes = SPEECH, **fields: Any) -> APIStatusError:
    with pytest.raises(APIStatusError) as caught:
        transcribed(client, data, **fields)
    assert isinstance(caught.value.body, dict)
    assert set(caught.value.body) == {"message", "type", "param", "code"}
    return caught.value


def test_the_text(openai: OpenAI) -> None:
    answer = transcribed(openai)
    assert answer.text == TEXT
    assert answer.usage.type == "duration"
    assert answer.usage.seconds == 7
    assert answer.logprobs is None


def test_plain_text_ends_with_a_line_break(openai: OpenAI) -> None:
    raw = openai.audio.transcriptions.with_raw_response.create(
        model="tones", file=("a.mp3", SPEECH), response_format="text"
    )
    assert raw.text == f"{TEXT}\n"
    assert raw.headers["content-type"].startswith("text/plain")
    assert "x-ignored-parameters" not in raw.headers


def test_verbose_json_has_times_of_the_file(openai: OpenAI) -> None:
    answer = transcribed(openai, response_format="verbose_json", timestamp_granularities=["word", "segment"])
    assert (answer.language, answer.text) == ("indonesian", TEXT)
    assert answer.duration == pytest.approx(1 + 0.8 + 0.8 + 0.8 + 3 + 0.4, abs=0.1)
    starts = [1, 2.6, 6.4]
    assert [segment.start for segment in answer.segments] == pytest.approx(starts, abs=0.1)
    assert [segment.text for segment in answer.segments] == [" dua tiga", " empat lima", " enam"]
    assert [segment.id for segment in answer.segments] == [0, 1, 2]
    assert [word.word for word in answer.words] == TEXT.split()
    assert [word.start for word in answer.words] == pytest.approx([1, 1.4, 2.6, 3.0, 6.4], abs=0.1)
    segment = answer.segments[0]
    assert segment.tokens == [2, 3]
    assert (segment.temperature, segment.avg_logprob, segment.no_speech_prob) == (0.0, -0.25, 0.02)


@pytest.mark.parametrize(
    ("granularities", "has_words", "has_segments"), [(["word"], True, False), (["segment"], False, True)]
)
def test_only_the_granularities_that_are_wanted(
    openai: OpenAI, granularities: Any, has_words: bool, has_segments: bool
) -> None:
    answer = transcribed(openai, response_format="verbose_json", timestamp_granularities=granularities)
    assert (bool(answer.words), bool(answer.segments)) == (has_words, has_segments)


def test_subtitles_are_read_by_other_programs(openai: OpenAI) -> None:
    srt = transcribed(openai, response_format="srt")
    vtt = transcribed(openai, response_format="vtt")
    assert "00:00:06,4" in srt
    assert vtt.startswith("WEBVTT\n\n")
    assert srt.endswith("\n")
    lines = [(line.start, line.text) for line in pysubs2.SSAFile.from_string(srt, format_="srt")]
    assert [text for _, text in lines] == ["dua tiga", "empat lima", "enam"]
    assert [start for start, _ in lines] == pytest.approx([1000, 2600, 6400], abs=100)
    captions = webvtt.from_buffer(io.StringIO(vtt)).captions
    assert [caption.text for caption in captions] == [text for _, text in lines]
    assert [caption.start_in_seconds for caption in captions] == [start // 1000 for start, _ in lines]
    assert pysubs2.SSAFile.from_string(vtt, format_="vtt")[0].start == lines[0][0]


def test_no_speech_is_no_text(openai: OpenAI) -> None:
    silence = sound_file(spoken("4"))
    assert transcribed(openai, silence).text == ""
    assert transcribed(openai, silence, response_format="srt").strip() == ""
    assert webvtt.from_buffer(io.StringIO(transcribed(openai, silence, response_format="vtt"))).captions == []
    verbose = transcribed(openai, silence, response_format="verbose_json")
    assert (verbose.segments, verbose.duration) == ([], 4.0)


def test_a_long_file_is_heard_in_windows_several_at_once(openai: OpenAI) -> None:
    TonesEngine.max_at_once = 0
    TonesEngine.begun.clear()
    answer = transcribed(openai, LONG)
    assert answer.text.split() == LONG_TEXT
    assert TonesEngine.max_at_once > 1
    assert not TonesEngine.begun[0] and all(TonesEngine.begun[1:])  # a full queue refuses the first alone


@pytest.mark.parametrize("language", ["en", "EN", "en-US", "English", "english"])
def test_a_language_by_code_or_name(openai: OpenAI, language: str) -> None:
    assert transcribed(openai, language=language, response_format="verbose_json").language == "english"


def test_a_language_that_is_not_said_is_detected(openai: OpenAI) -> None:
    english = sound_file(spoken("satu dua 3 tiga 3 empat"))
    assert transcribed(openai, english, response_format="verbose_json").language == "english"
    among = transcribed(openai, english, response_format="verbose_json", languages=["ja", "id"])
    assert among.language == "japanese"


def test_hints_reach_the_model(openai: OpenAI) -> None:
    assert transcribed(openai, prompt="Tiga").text == TEXT.replace("tiga", "Tiga")
    assert transcribed(openai, keywords=["Dua", "Enam"]).text == TEXT.replace("dua", "Dua").replace("enam", "Enam")
    verbose = transcribed(openai, temperature=0.4, response_format="verbose_json")
    assert {segment.temperature for segment in verbose.segments} == {0.4}


def test_log_probabilities(openai: OpenAI) -> None:
    answer = transcribed(openai, include=["logprobs"])
    assert answer.text == TEXT
    assert [entry.token for entry in answer.logprobs] == [f" {word}" for word in TEXT.split()]
    assert answer.logprobs[0].bytes == list(b" dua")


def test_how_the_file_is_cut(openai: OpenAI) -> None:
    before = TonesEngine.num_heard
    transcribed(openai, chunking_strategy={"type": "server_vad", "silence_duration_ms": 400})
    assert TonesEngine.num_heard - before == 3
    assert transcribed(openai, chunking_strategy="auto").text == TEXT


def test_a_translation(openai: OpenAI) -> None:
    with pytest.warns(DeprecationWarning):
        answer = openai.audio.translations.create(model="tones", file=("a.mp3", SPEECH), response_format="verbose_json")
    assert (answer.text, answer.language) == ("2 3 4 5 6", "english")
    with pytest.warns(DeprecationWarning), pytest.raises(BadRequestError, match="does not translate"):
        openai.audio.translations.create(model="deaf-to-words", file=("a.mp3", SPEECH))


def test_a_model_by_alias_or_none(openai: OpenAI, ears: Served) -> None:
    assert transcribed(openai, model="whisper-1").text == TEXT
    answer = httpx2.post(f"{ears.url}/v1/audio/transcriptions", files={"file": ("a.mp3", SPEECH)})
    assert answer.json()["text"] == TEXT


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": "diarized_json"}, "response_format"),
        ({"response_format": "xml"}, "response_format"),
        ({"timestamp_granularities": ["word"]}, "timestamp_granularities"),
        ({"timestamp_granularities": ["letter"], "response_format": "verbose_json"}, "timestamp_granularities.0"),
        ({"include": ["logprobs"], "response_format": "text"}, "include"),
        ({"include": ["speakers"]}, "include.0"),
        ({"temperature": 1.5}, "temperature"),
        ({"temperature": "warm"}, "temperature"),
        ({"language": "klingon"}, "language"),
        ({"languages": ["id", "xx"]}, "languages"),
        ({"stream": True, "response_format": "srt"}, "stream"),
        ({"chunking_strategy": {"type": "server_vad", "threshold": 3}}, "chunking_strategy.threshold"),
        ({"chunking_strategy": "never"}, "chunking_strategy"),
        ({"prompt": "x" * 9000}, "prompt"),
        ({"model": "chatter"}, "model"),
        ({"model": "deaf-to-words", "timestamp_granularities": ["word"], "response_format": "verbose_json"},
         "timestamp_granularities"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(openai: OpenAI, fields: Any, param: str) -> None:
    error = refused(openai, **fields)
    assert (error.status_code, error.param) == (400, param)


def test_an_unknown_model(openai: OpenAI) -> None:
    assert isinstance(refused(openai, model="nobody"), NotFoundError)


def test_a_file_that_is_none(openai: OpenAI) -> None:
    error = refused(openai, b"Selamat pagi. " * 99)
    assert (error.status_code, error.param, error.code) == (400, "file", "invalid_audio_format")
    assert refused(openai, b"").code == "invalid_audio"


def test_a_file_that_is_too_large_is_a_413(openai: OpenAI) -> None:
    assert refused(openai, bytes(2 * 2**20 + 100)).status_code == 413
    assert refused(openai, bytes(4 * 2**20)).status_code == 413


def test_fields_in_other_forms(ears: Served) -> None:
    path = f"{ears.url}/v1/audio/transcriptions"
    fields = {
        "response_format": "verbose_json",
        "timestamp_granularities": '["word", "segment"]',
        "nobody": "1",
        "user": "x",
    }
    answer = httpx2.post(path, data=fields, files={"file": ("a.mp3", SPEECH)})
    assert len(answer.json()["words"]) == 5
    assert answer.headers["x-ignored-parameters"] == "nobody, user"
    repeated = {"response_format": "verbose_json", "timestamp_granularities": ["word", "segment"]}
    assert len(httpx2.post(path, data=repeated, files={"file": ("a.mp3", SPEECH)}).json()["words"]) == 5
    vad = {"chunking_strategy": json.dumps({"type": "server_vad", "silence_duration_ms": 500})}
    assert httpx2.post(path, data=vad, files={"file": ("a.mp3", SPEECH)}).json()["text"] == TEXT


@pytest.mark.parametrize("body", [{"content": b"{}"}, {"json": {"model": "tones"}}, {"data": {"model": "tones"}}])
def test_a_body_that_is_no_form(ears: Served, body: Any) -> None:
    answer = httpx2.post(f"{ears.url}/v1/audio/transcriptions", **body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "file"
