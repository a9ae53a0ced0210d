"""Words and their times: by what the alignment heads of the decoder look at, as in openai-whisper and Transformers."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tis.engine.speech.heard import HeardWord
from tis.engine.speech.whisper_vocabulary import WhisperVocabulary

_WITHOUT_SPACES = {"zh", "ja", "th", "lo", "my", "yue"}
_LEADING = frozenset("\"'“¿([{-¡")
_TRAILING = frozenset("\"'.。,，!！?？:：”)]}、")
_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_WITHIN_WORDS = frozenset("'-")
_SENTENCE_ENDS = frozenset(".。!！?？")
_MAX_TYPICAL_SECONDS = 0.7  # of a word
_FILTER_WIDTH = 7
_MAX_TOKENS_OF_CHARACTER = 8


@dataclass(slots=True)
class WordSpan:
    text: str
    first: int  # the places of its tokens among the text tokens
    last: int


def token_times(alignment: Any, num_frames: int, precision: float) -> list[float]:
    """When each token begins, and last when the end does. `alignment`: [heads, tokens and the end, frames]."""
    looks = sum(_smooth_looks(head[:, : max(1, num_frames)]) for head in alignment)
    texts, frames = align(-looks / len(alignment))
    begins = np.flatnonzero(np.diff(texts, prepend=-1))
    return [float(frame) * precision for frame in frames[begins]]


def _smooth_looks(head: Any) -> Any:
    """One head at a time: those of a large model together would take gigabytes.

    What a token looks at behind the end of the sound is left out, as in Transformers. If the rest were made up to 1
    again, a faint look of the last token would count as much as that of a word, and take its frames.
    """
    weights = head.astype(np.float64)
    deviation = weights.std(-2, keepdims=True)
    weights = (weights - weights.mean(-2, keepdims=True)) / np.where(deviation > 0, deviation, 1)
    return median_filter(weights, _FILTER_WIDTH)


def median_filter(numbers: Any, width: int) -> Any:
    """Over the last axis, whose ends are mirrored."""
    pad = width // 2
    if numbers.shape[-1] <= pad:
        return numbers
    padded = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(pad, pad)], mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width, -1), -1)


def align(costs: Any) -> tuple[Any, Any]:
    """The cheapest way through `costs` [tokens, frames], forward in both: the tokens and frames on it."""
    num_tokens, num_frames = costs.shape
    total = np.full((num_tokens + 1, num_frames + 1), np.inf, dtype=np.float32)
    total[0, 0] = 0
    came = np.full((num_tokens + 1, num_frames + 1), 2, dtype=np.int8)  # from: 0 both, 1 the token, 2 the frame before
    came[1:, 0] = 1
    for diagonal in range(2, num_tokens + num_frames + 1):  # no place of a diagonal needs another one of it
        rows = np.arange(max(1, diagonal - num_frames), min(num_tokens, diagonal - 1) + 1)
        columns = diagonal - rows
        both, token, frame = total[rows - 1, columns - 1], total[rows - 1, columns], total[rows, columns - 1]
        chosen = np.where((both < token) & (both < frame), 0, np.where((token < both) & (token < frame), 1, 2))
        came[rows, columns] = chosen
        total[rows, columns] = costs[rows - 1, columns - 1] + np.choose(chosen, [both, token, frame])
    row, column = num_tokens, num_frames
    way: list[tuple[int, int]] = []
    while row > 0 or column > 0:
        way.append((row - 1, column - 1))
        step = came[row, column]
        row, column = row - (step != 2), column - (step != 1)
    rows, columns = np.array(way[::-1]).T
    return rows, columns


def split_words(ids: Sequence[int], vocabulary: WhisperVocabulary, language: str | None) -> list[WordSpan]:
    """The words of text tokens, with the marks around them."""
    characters = _split_characters(ids, vocabulary)
    if language not in _WITHOUT_SPACES:
        characters = _joined_by_spaces(characters)
    return _with_marks(characters)


def _split_characters(ids: Sequence[int], vocabulary: WhisperVocabulary) -> list[WordSpan]:
    """The shortest runs of tokens that are whole characters."""
    spans: list[WordSpan] = []
    waiting, first = b"", 0
    for place, token_id in enumerate(ids):
        waiting += vocabulary.bytes_of(token_id)
        is_last = place + 1 == len(ids) or place + 1 - first >= _MAX_TOKENS_OF_CHARACTER
        try:
            text = waiting.decode(errors="replace" if is_last else "strict")
        except UnicodeDecodeError:
            continue
        spans.append(WordSpan(text, first, place + 1))
        waiting, first = b"", place + 1
    return spans


def _joined_by_spaces(spans: Sequence[WordSpan]) -> list[WordSpan]:
    words: list[WordSpan] = []
    for place, span in enumerate(spans):
        is_mark = _consists_of(span.text.strip(), _MARKS) and not _is_within_word(spans, place)
        if not words or span.text.startswith(" ") or is_mark:
            words.append(WordSpan(span.text, span.first, span.last))
        else:
            words[-1].text += span.text
            words[-1].last = span.last
    return words


def _is_within_word(spans: Sequence[WordSpan], place: int) -> bool:
    """As in "Jum'at" and "anak-anak"."""
    around = (spans[place - 1].text[-1:], spans[place + 1].text[:1]) if 0 < place < len(spans) - 1 else ("", "")
    return spans[place].text in _WITHIN_WORDS and all(character.isalnum() for character in around)


def _with_marks(words: list[WordSpan]) -> list[WordSpan]:
    """Marks join the word behind them or before them."""
    joined: list[WordSpan] = []
    for word in reversed(words):
        if joined and word.text.startswith(" ") and _consists_of(word.text.strip(), _LEADING):
            joined[-1] = WordSpan(word.text + joined[-1].text, word.first, joined[-1].last)
        else:
            joined.append(word)
    merged: list[WordSpan] = []
    for word in reversed(joined):
        if merged and _consists_of(word.text, _TRAILING) and not merged[-1].text.endswith(" "):
            merged[-1] = WordSpan(merged[-1].text + word.text, merged[-1].first, word.last)
        else:
            merged.append(word)
    return merged


def _consists_of(text: str, marks: frozenset[str]) -> bool:
    return bool(text) and all(character in marks for character in text)


def timed_words(
    spans: Sequence[WordSpan],
    times: Sequence[float],
    logprobs: Sequence[float],
    bounds: tuple[float, float],
) -> list[HeardWord]:
    """The words of one segment, in order and within its bounds. `times`: of all tokens; `logprobs`: of the same."""
    ends = [times[min(span.last, len(times) - 1)] for span in spans]
    starts = [times[min(span.first, len(times) - 1)] for span in spans]
    durations = [end - start for start, end in zip(starts, ends, strict=True) if end > start]
    longest = 2 * min(_MAX_TYPICAL_SECONDS, median(durations)) if durations else 0.0
    words: list[HeardWord] = []
    earliest, latest = bounds
    for span, start, end in zip(spans, starts, ends, strict=True):
        if longest and end - start > longest:  # a pause belongs to no word
            if span.text.strip()[-1:] in _SENTENCE_ENDS or span is spans[-1]:
                end = start + longest
            elif not words or words[-1].text.strip()[-1:] in _SENTENCE_ENDS:
                start = end - longest
        start = min(max(start, earliest), latest)
        end = min(max(end, start), latest)
        likely = np.exp(np.array(logprobs[span.first : span.last]))
        words.append(HeardWord(span.text, start, end, float(likely.mean()) if len(likely) else 0.0))
        earliest = end
    return words
