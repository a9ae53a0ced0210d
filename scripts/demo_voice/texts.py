"""What the small voice reads aloud while it learns: the forty sentences of the small Whisper, and texts.csv."""

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from scripts.demo_whisper.sentences import ReadSentence, sentences

_TABLE = Path(__file__).with_name("texts.csv")
_SPEED, _PITCH = 150, 50


@cache
def voices() -> tuple[str, ...]:
    """Names of speakers, in the order of their numbers: the voices of espeak-ng that read the forty sentences."""
    return tuple(sorted({one.voice for one in sentences()}))


@cache
def texts() -> tuple[ReadSentence, ...]:
    """Each text of the table is read by a voice of its language, in turn."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    read = list(sentences())
    for language in ("id", "en"):
        own = [voice for voice in voices() if voice.startswith(language)]
        chosen = [row["text"] for row in rows if row["language"] == language]
        for number, text in enumerate(chosen):
            voice = own[number % len(own)]
            read.append(ReadSentence(f"{language}-text-{number:03}", language, voice, _SPEED, _PITCH, text, text))
    return tuple(read)


def letters(read: Sequence[ReadSentence]) -> str:
    return "".join(sorted({letter for one in read for letter in one.text.lower()}))
