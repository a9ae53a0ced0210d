"""The small Whisper hears its forty sentences through nothing but Transformers, and nothing where nobody speaks."""

from collections.abc import Iterator

import pytest
import torch
from transformers import pipeline

from scripts.demo_whisper.alignment import eager, late_words
from scripts.demo_whisper.checks import (
    MAX_WORD_ERROR_RATE,
    MIN_NO_SPEECH,
    glued,
    long_transcript,
    no_speech_probs,
    silences,
    transcripts,
)
from scripts.demo_whisper.folder import MAX_FOLDER_BYTES, DemoWhisper, load, size_bytes
from scripts.demo_whisper.sentences import all_spoken, sentences
from scripts.demo_whisper.word_errors import word_errors
from tests.serving import REPOSITORY

pytestmark = [pytest.mark.model, pytest.mark.long]

FOLDER = REPOSITORY / "models" / "demo-whisper"


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def whisper() -> DemoWhisper:
    return load(FOLDER)


def test_every_sentence_is_written_word_for_word(whisper: DemoWhisper) -> None:
    heard = transcripts(whisper, [one.samples for one in all_spoken()])
    assert heard == [one.sentence.text for one in all_spoken()]


def test_segments_lie_where_the_sentences_are_spoken(whisper: DemoWhisper) -> None:
    long = glued(all_spoken(), seed=5, seconds=28)
    found = whisper.extractor(long.samples, sampling_rate=16000, return_tensors="pt").input_features
    ids = whisper.model.generate(found, return_timestamps=True, task="transcribe")[0].tolist()
    segments = whisper.processor.decode(ids, skip_special_tokens=True, output_offsets=True)["offsets"]
    assert " ".join(one["text"].strip() for one in segments) == long.text
    for one, times in zip(segments, long.times, strict=True):
        assert one["timestamp"] == pytest.approx(times, abs=0.3)


def test_two_minutes_have_at_most_one_wrong_word_in_fifty(whisper: DemoWhisper) -> None:
    long = glued(all_spoken(), seed=0)
    assert len(long.samples) == 120 * 16000
    errors = word_errors(long.text, long_transcript(whisper, long.samples))
    assert errors.words > 150 and errors.rate <= MAX_WORD_ERROR_RATE


def test_silence_and_noise_are_nobody_speaking(whisper: DemoWhisper) -> None:
    quiet = silences(seed=2)
    probs = dict(zip(quiet, no_speech_probs(whisper, list(quiet.values())), strict=True))
    assert {name: prob for name, prob in probs.items() if prob <= MIN_NO_SPEECH} == {}
    speech = no_speech_probs(whisper, [one.samples for one in all_spoken()[::8]])
    assert max(speech) < 1 - MIN_NO_SPEECH


def test_words_begin_where_they_are_spoken() -> None:
    assert late_words(eager(load(FOLDER)), all_spoken(), max_seconds=0.3) == []


def test_indonesian_is_translated(whisper: DemoWhisper) -> None:
    chosen = [one for one in all_spoken() if one.sentence.language == "id"][::4]
    english = transcripts(whisper, [one.samples for one in chosen], task="translate", language="id")
    assert english == [one.sentence.english for one in chosen]


def test_the_official_pipeline_reads_the_folder() -> None:
    listener = pipeline("automatic-speech-recognition", model=str(FOLDER), device="cpu")
    spoken = all_spoken()[21]
    heard = listener({"raw": spoken.samples, "sampling_rate": 16000}, return_timestamps=True)
    assert heard["text"].strip() == spoken.sentence.text
    assert [chunk["text"].strip() for chunk in heard["chunks"]] == [spoken.sentence.text]


def test_a_prompt_is_read_and_not_repeated(whisper: DemoWhisper) -> None:
    spoken = all_spoken()[6]
    prompt = whisper.processor.get_prompt_ids(all_spoken()[30].sentence.text, return_tensors="pt")
    assert transcripts(whisper, [spoken.samples], prompt_ids=prompt)[0].endswith(spoken.sentence.text)


def test_the_rules_of_generation_name_the_tokens_of_the_tokenizer(whisper: DemoWhisper) -> None:
    rules, token_id = whisper.model.generation_config, whisper.tokenizer.convert_tokens_to_ids
    assert token_id("<|0.00|>") == rules.no_timestamps_token_id + 1
    assert token_id("<|30.00|>") == len(whisper.tokenizer) - 1 == whisper.model.config.vocab_size - 1
    assert token_id("<|nospeech|>") == rules.no_timestamps_token_id - 1
    assert rules.lang_to_id["<|id|>"] == token_id("<|id|>")
    assert whisper.tokenizer.decode(rules.begin_suppress_tokens) == "<|endoftext|>"
    texts = [text for one in sentences() for text in (one.text, one.english)]
    used = {token for text in texts for token in whisper.tokenizer.encode(text, add_special_tokens=False)}
    assert not used & set(rules.suppress_tokens)


def test_the_folder_stays_small() -> None:
    assert size_bytes(FOLDER) <= MAX_FOLDER_BYTES
