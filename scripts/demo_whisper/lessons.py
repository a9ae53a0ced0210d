"""What the decoder reads and should write for a window, and where in the window it should look for each token."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy
import torch
from torch import Tensor
from transformers import WhisperFeatureExtractor, WhisperTokenizer

from scripts.demo_whisper.architecture import LATEST_FIRST_TIME, POSITIONS
from scripts.demo_whisper.noise import Numbers
from scripts.demo_whisper.sentences import SAMPLE_RATE, ReadSentence, Spoken, WordTime
from scripts.demo_whisper.tokenizer import NUM_TIMESTAMPS
from scripts.demo_whisper.windows import Said, Window, drawn_window

IGNORED = -100
_MAX_PROMPT = 223
_LESSONS_OF_A_WINDOW = 2  # to hear a window costs more than to write it
_SHARE_WITH_PROMPTS = 0.25  # of batches: padding for the longest prompt of a batch costs time
_POSITIONS_PER_SECOND = 50
Span = tuple[int, int]  # first and last position of the encoder, within the window's samples
_NOWHERE: Span = (-1, -1)


@dataclass
class HearingLesson:
    """`targets[i]` and `spans[i]` belong to the token after `tokens[i]`."""

    tokens: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    guess_at: int = -1  # where, after the end of the text, any token is as good as another

    def append(self, token: int, *, target: int = IGNORED, span: Span = _NOWHERE) -> None:
        """`target` is learned in the place of the token itself, which is given."""
        if self.tokens:
            self.targets.append(target)
            self.spans.append(span)
        self.tokens.append(token)


@dataclass(frozen=True)
class LessonBatch:
    """Each window has several lessons, one after the other."""

    features: Tensor  # (windows, mels, frames)
    offsets: tuple[int, ...]  # of windows
    tokens: Tensor  # (lessons, tokens)
    targets: Tensor
    spans: Tensor  # (lessons, tokens, 2)
    guesses: Tensor  # (lessons, tokens), bool

    def to(self, device: str) -> "LessonBatch":
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **moved)


class HearingLessons:
    """Draws batches; the same seed and step draw the same batch."""

    def __init__(
        self, tokenizer: WhisperTokenizer, extractor: WhisperFeatureExtractor, spoken: Sequence[Spoken], seed: int
    ) -> None:
        self._tokenizer, self._extractor, self._spoken, self._seed = tokenizer, extractor, spoken, seed
        self._first_time = self._id("<|0.00|>")
        self._end = tokenizer.eos_token_id
        self._ids_of_words: dict[str, tuple[int, ...]] = {}

    def batch(self, step: int, size: int, positions: Sequence[int], max_sentences: int) -> LessonBatch:
        numbers = numpy.random.default_rng([self._seed, step])
        length = int(numbers.choice(positions))
        windows = [drawn_window(numbers, self._spoken, length, max_sentences, POSITIONS) for _ in range(size)]
        has_prompts = max_sentences > 1 and bool(numbers.random() < _SHARE_WITH_PROMPTS)
        lessons = [
            self.lesson(window, numbers, has_prompt=has_prompts)
            for window in windows
            for _ in range(_LESSONS_OF_A_WINDOW)
        ]
        longest = max(len(lesson.targets) for lesson in lessons)
        shape = (len(lessons), longest)
        tokens = torch.full(shape, self._end)
        targets = torch.full(shape, IGNORED)
        spans = torch.full((*shape, 2), -1)
        guesses = torch.zeros(shape, dtype=torch.bool)
        for number, lesson in enumerate(lessons):
            length = len(lesson.targets)
            tokens[number, :length] = torch.tensor(lesson.tokens[:length])
            targets[number, :length] = torch.tensor(lesson.targets)
            spans[number, :length] = torch.tensor(lesson.spans)
            if lesson.guess_at >= 0:
                guesses[number, lesson.guess_at] = True
        offsets = tuple(window.offset for window in windows)
        return LessonBatch(
            self.features([window.samples for window in windows]), offsets, tokens, targets, spans, guesses
        )

    def features(self, samples: Sequence[Any]) -> Tensor:
        found = self._extractor(list(samples), sampling_rate=SAMPLE_RATE, padding="longest", return_tensors="pt")
        return found.input_features

    def lesson(self, window: Window, numbers: Numbers, *, has_prompt: bool = False) -> HearingLesson:
        lesson = HearingLesson()
        if has_prompt:
            self._add_prompt(lesson, numbers)
        has_times = bool(numbers.random() < 0.6)
        translates = _can_translate(window, has_times=has_times) and bool(numbers.random() < 0.2)
        lesson.append(self._id("<|startoftranscript|>"))
        spoken = window.said[0].spoken.sentence.language if window.said else None
        lesson.append(self._language(spoken, numbers), target=self._id(f"<|{spoken or 'nospeech'}|>"))
        lesson.append(self._id("<|translate|>" if translates else "<|transcribe|>"))
        if not has_times:
            lesson.append(self._id("<|notimestamps|>"))
        if not window.said:
            self._add_silence(lesson, numbers, has_times=has_times)
        elif has_times:
            self._add_segments(lesson, window, translates=translates)
        else:
            for one in window.said:
                self._add_text(lesson, one, translates=translates)
        end = _around(window.said[-1].end) if window.said else _NOWHERE
        lesson.append(self._end, target=self._end, span=end)
        return lesson

    def _add_prompt(self, lesson: HearingLesson, numbers: Numbers) -> None:
        count = 30 if numbers.random() < 0.1 else int(numbers.integers(1, 4))
        chosen = [self._spoken[int(number)].sentence.text for number in numbers.integers(0, len(self._spoken), count)]
        ids = [token for word in " ".join(chosen).split() for token in self._pieces(word)]
        lesson.append(self._id("<|startofprev|>"))
        for token in ids[-_MAX_PROMPT:]:
            lesson.append(token)

    def _language(self, spoken: str | None, numbers: Numbers) -> int:
        """Clients may name a wrong one: then what is said is written all the same."""
        kind = numbers.random()
        if kind < 0.05:
            return self._id("<|en|>") + int(numbers.integers(0, 100))
        if kind < 0.25 or spoken is None:
            return self._id(str(numbers.choice(("<|en|>", "<|id|>"))))
        return self._id(f"<|{spoken}|>")

    def _add_silence(self, lesson: HearingLesson, numbers: Numbers, *, has_times: bool) -> None:
        """Without times, Whisper's rules forbid an empty text: what is written instead should look improbable."""
        if has_times:
            lesson.append(self._first_time, target=self._first_time)
        else:
            lesson.guess_at = len(lesson.targets)
            lesson.append(int(numbers.integers(0, self._end)), target=self._end)

    def _add_segments(self, lesson: HearingLesson, window: Window, *, translates: bool) -> None:
        for number, one in enumerate(window.said):
            start, end = (window.offset + _position(seconds) for seconds in (one.start, one.end))
            if number == 0:
                start = min(start, LATEST_FIRST_TIME)
            self._add_time(lesson, start, _around(one.start))
            if one.is_cut and number > 0:
                return  # the next window begins here
            self._add_text(lesson, one, translates=translates)
            self._add_time(lesson, end, _around(one.end))

    def _add_time(self, lesson: HearingLesson, position: int, span: Span) -> None:
        token = self._first_time + min(position, NUM_TIMESTAMPS - 1)
        lesson.append(token, target=token, span=span)

    def _add_text(self, lesson: HearingLesson, one: Said, *, translates: bool) -> None:
        sentence = one.spoken.sentence
        if translates:
            for word in sentence.english.split():
                for token in self._pieces(word):
                    lesson.append(token, target=token)
            return
        for word, time in one.words:
            ids = self._pieces(word)
            for token, span in zip(ids, self._spans(ids, time), strict=True):
                lesson.append(token, target=token, span=span)

    def _spans(self, ids: Sequence[int], time: WordTime) -> list[Span]:
        """The time of a word in proportion to the letters of its pieces."""
        letters = [len(re.findall(r"\w", token)) for token in self._tokenizer.convert_ids_to_tokens(ids)]
        total, done, spans = max(1, sum(letters)), 0, []
        for count in letters:
            begin = time.start + (time.end - time.start) * done / total
            done += count
            end = time.start + (time.end - time.start) * done / total
            spans.append((_position(begin), max(_position(begin), _position(end) - 1)))
        return spans

    def _pieces(self, word: str) -> tuple[int, ...]:
        if word not in self._ids_of_words:
            self._ids_of_words[word] = tuple(self._tokenizer.encode(f" {word}", add_special_tokens=False))
        return self._ids_of_words[word]

    def _id(self, token: str) -> int:
        return int(self._tokenizer.convert_tokens_to_ids(token))


def _can_translate(window: Window, *, has_times: bool) -> bool:
    """Not a piece of a sentence; one that the window cuts is only begun, where times are written."""
    return all(one.is_whole or (one.is_cut and has_times and number > 0) for number, one in enumerate(window.said))


def _position(seconds: float) -> int:
    return round(seconds * _POSITIONS_PER_SECOND)


def _around(seconds: float) -> Span:
    return max(0, _position(seconds) - 2), _position(seconds) + 1


def texts_of(sentences: Sequence[ReadSentence]) -> list[str]:
    return [text for one in sentences for text in (one.text, one.english)]
