"""The tokens of a window in segments, by the times among them."""

from collections.abc import Sequence
from dataclasses import dataclass

from tis.engine.speech.whisper_vocabulary import WhisperVocabulary


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    start: float  # seconds from the beginning of the window
    end: float
    first: int  # the places of its tokens among those of the window
    last: int


def spans_of(
    tokens: Sequence[int], vocabulary: WhisperVocabulary, seconds: float, precision: float
) -> list[SegmentSpan]:
    """A time that follows a time begins a segment. The last one may lack its end, which is that of the window.

    `seconds`: of the window; `precision`: of a time.
    """
    if not any(vocabulary.is_text(token) for token in tokens):
        return []
    borders = [
        place
        for place in range(1, len(tokens))
        if tokens[place] >= vocabulary.first_time and tokens[place - 1] >= vocabulary.first_time
    ]
    spans: list[SegmentSpan] = []
    start = 0.0
    for first, last in zip([0, *borders], [*borders, len(tokens)], strict=True):
        inside = tokens[first:last]
        times = [(token - vocabulary.first_time) * precision for token in inside if token >= vocabulary.first_time]
        has_begin = inside[0] >= vocabulary.first_time
        has_end = len(inside) > 1 and inside[-1] >= vocabulary.first_time
        start = min(max(start, times[0] if has_begin else start), seconds)
        end = min(max(start, times[-1] if has_end else seconds), seconds)
        if any(vocabulary.is_text(token) for token in inside):
            spans.append(SegmentSpan(start, end, first, last))
            start = end
    return spans
