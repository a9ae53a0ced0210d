"""An engine that hears the tones of `tests.media.sounds`. All else is real."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any, ClassVar

from tests.media.sounds import RATE, WORDS, heard_words
from tis.admission.ticket import Ticket
from tis.engine.local_engine import LocalEngine
from tis.engine.speech.heard import (
    HeardSegment,
    HeardToken,
    HeardWindow,
    HeardWord,
    SpeechDescription,
    SpeechWindow,
)

_SENTENCE_GAP_SECONDS = 0.3
NAMES = {"id": "indonesian", "en": "english", "ja": "japanese"}


class TonesEngine(LocalEngine):
    """`TONES_SECONDS` of the environment: how long it hears a window; `TONES_DIARY`: a file for what it heard."""

    num_heard = 0
    max_at_once = 0
    begun: ClassVar[list[bool]] = []
    _at_once = 0

    async def describe_speech(self, model_id: str) -> SpeechDescription:
        tasks = frozenset({"transcribe", "translate"} if model_id == "tones" else {"transcribe"})
        return SpeechDescription(RATE, 30.0, NAMES, tasks, has_times=True, has_words=model_id == "tones")  # type: ignore[arg-type]

    async def detect_language(
        self, model_id: str, samples: Any, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> str | None:
        """A file that begins with `satu` is English, any other Indonesian."""
        words = await asyncio.to_thread(heard_words, samples)
        return "en" if words and words[0][0] == "satu" else "id"

    async def hear(
        self, model_id: str, window: SpeechWindow, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> HeardWindow:
        kind = type(self)
        kind.num_heard += 1
        kind.begun.append(is_begun)
        kind._at_once += 1
        kind.max_at_once = max(kind.max_at_once, kind._at_once)
        try:
            await asyncio.sleep(float(os.environ.get("TONES_SECONDS", "0")))
            words = await asyncio.to_thread(heard_words, window.samples)
            await asyncio.to_thread(_write_down, " ".join(word for word, _, _ in words))
        finally:
            kind._at_once -= 1
        options = window.options
        language = options.language or await self.detect_language(model_id, window.samples)
        segments = [_segment(some, window) for some in _sentences(words)]
        return HeardWindow(language, tuple(segments), len(words) + 2)


def _write_down(text: str) -> None:
    if diary := os.environ.get("TONES_DIARY"):
        with open(diary, "a") as file:
            file.write(f"{text}\n")


def _sentences(words: Sequence[tuple[str, float, float]]) -> list[list[tuple[str, float, float]]]:
    found: list[list[tuple[str, float, float]]] = []
    for word in words:
        if found and word[1] - found[-1][-1][2] < _SENTENCE_GAP_SECONDS:
            found[-1].append(word)
        else:
            found.append([word])
    return found


def _segment(words: Sequence[tuple[str, float, float]], window: SpeechWindow) -> HeardSegment:
    options = window.options
    names = [_said(word, options.task, options.prompt) for word, _, _ in words]
    return HeardSegment(
        start=words[0][1],
        end=words[-1][2],
        text="".join(f" {name}" for name in names),
        token_ids=tuple(WORDS.index(word) for word, _, _ in words),
        temperature=options.temperatures[0],
        avg_logprob=-0.25,
        compression_ratio=1.1,
        no_speech_prob=0.02,
        words=tuple(
            HeardWord(f" {name}", start, end, 0.9)
            for name, (_, start, end) in zip(names, words, strict=True)
            if options.with_words
        ),
        tokens=tuple(HeardToken(f" {name}", f" {name}".encode(), -0.125) for name in names if options.with_logprobs),
    )


def _said(word: str, task: str, prompt: str) -> str:
    """Translated, a number; a word of the prompt is written as there."""
    if task == "translate":
        return str(WORDS.index(word))
    return next((one for one in prompt.replace(",", " ").split() if one.lower() == word), word)


MODELS = """
models:
  tones:
    repo: echo
    task: transcription
    aliases: [whisper-1]
  deaf-to-words:
    repo: echo?revision=1
    task: transcription
  chatter:
    repo: echo?revision=2
"""
