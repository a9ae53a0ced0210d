"""The recordings that the small Whisper learns from, and how its words are counted."""

import csv

import pytest

from scripts.demo_whisper.folder import size_bytes
from scripts.demo_whisper.sentences import SPEECH, all_spoken, sentences
from scripts.demo_whisper.word_errors import word_errors


def test_recordings_stay_small() -> None:
    assert size_bytes(SPEECH) <= 300_000


def test_every_word_of_the_sentences_has_its_time() -> None:
    with (SPEECH / "word_times.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["name"], row["word"]) for row in csv.DictReader(file)]
    assert rows == [(one.name, word) for one in sentences() for word in one.text.split()]
    for one in all_spoken():
        times = [value for word in one.words for value in (word.start, word.end)]
        assert times == sorted(times) and times[-1] <= len(one.samples) / 16000 + 0.02


@pytest.mark.parametrize(
    ("reference", "transcript", "errors"),
    [
        ("Good morning, shop.", "good morning shop", 0),
        ("one two three", "one three", 1),
        ("one two three", "one too three four", 2),
        ("one", "", 1),
        ("", "thank you", 2),
        ("a b c d", "b c d a", 2),
    ],
)
def test_wrong_missing_and_invented_words_are_counted(reference: str, transcript: str, errors: int) -> None:
    assert word_errors(reference, transcript).errors == errors
