"""Cuts a text into sentences, each short enough for the model, so that the first is heard soon."""

import re
from collections.abc import Iterator

_COMFORTABLE_CHARS = 120  # short sentences are said together up to this: fewer seams, and "Dr." is no sentence
_FIRST_CHARS = 24  # the first one is heard alone if it is at least this long
_ENDS = re.compile(r"(?:(?<=[.!?…])[\"'”’»)\]]*(?=\s)|(?<=[。！？])|\n)\s*")
_PAUSES = re.compile(r"[,;:—–，、；：]\s*")
_SPACE = re.compile(r"\s+")


def sentences_of(text: str, max_chars: int) -> list[str]:
    joined: list[str] = []
    for sentence in _cut_at_ends(text):
        for piece in _fitting(sentence, max_chars):
            if joined and _belong_together(joined, piece, max_chars):
                joined[-1] = f"{joined[-1]} {piece}"
            else:
                joined.append(piece)
    return joined


def _cut_at_ends(text: str) -> Iterator[str]:
    begin = 0
    for end in _ENDS.finditer(text):
        yield _SPACE.sub(" ", text[begin : end.end()]).strip()
        begin = end.end()
    yield _SPACE.sub(" ", text[begin:]).strip()


def _fitting(sentence: str, max_chars: int) -> Iterator[str]:
    """Cut at the last pause in the second half, else at the last space, else anywhere."""
    while len(sentence) > max_chars:
        half = max_chars // 2
        pauses = [pause.end() for pause in _PAUSES.finditer(sentence, half, max_chars)]
        end = pauses[-1] if pauses else sentence.rfind(" ", half, max_chars + 1)
        end = end if end > 0 else max_chars
        yield sentence[:end].strip()
        sentence = sentence[end:].strip()
    if sentence:
        yield sentence


def _belong_together(joined: list[str], piece: str, max_chars: int) -> bool:
    is_first = len(joined) == 1
    if is_first and len(joined[0]) >= _FIRST_CHARS:
        return False
    return len(joined[-1]) + 1 + len(piece) <= min(max_chars, _COMFORTABLE_CHARS)
