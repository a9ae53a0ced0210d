"""What a model wrote of a window at one temperature, and whether that is to be trusted, as openai-whisper judges it."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from tis.engine.speech.whisper_vocabulary import WhisperVocabulary

_MAX_COMPRESSION = 2.4
_MIN_AVG_LOGPROB = -1.0
_MAX_NO_SPEECH = 0.6
_MIN_LOOP = 8  # tokens that repeat others, before they count as a loop


class Verdict(Enum):
    KEEP = "keep"
    SILENCE = "silence"
    DOUBT = "doubt"  # another temperature may do better


@dataclass(slots=True)
class HearingAttempt:
    prompt_ids: Sequence[int]
    start_at: int  # the place of `<|startoftranscript|>` in the prompt
    temperature: float
    number: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    end_logprob: float = 0.0
    no_speech_prob: float = 0.0

    @property
    def avg_logprob(self) -> float:
        """The end counts as a token, also where there was no room for it."""
        return (sum(self.logprobs) + self.end_logprob) / (len(self.tokens) + 1)


def judge(attempt: HearingAttempt, text: str) -> Verdict:
    is_unlikely = attempt.avg_logprob < _MIN_AVG_LOGPROB
    if is_unlikely and attempt.no_speech_prob > _MAX_NO_SPEECH:
        return Verdict.SILENCE
    return Verdict.DOUBT if is_unlikely or repeats_itself(text) else Verdict.KEEP


def repeats_itself(text: str) -> bool:
    return compression_ratio(text) > _MAX_COMPRESSION


def compression_ratio(text: str) -> float:
    encoded = text.strip().encode()
    return len(encoded) / len(zlib.compress(encoded))


def cut_loop(tokens: Sequence[int], vocabulary: WhisperVocabulary) -> list[int]:
    """The tokens before those that repeat each other at the end; nothing if what is left repeats itself, too."""
    places = [place for place, token in enumerate(tokens) if vocabulary.is_text(token)]
    loop = _loop_at_end([tokens[place] for place in places])
    kept = list(tokens)
    if loop:
        # A loop has many beginnings: at a space, the marks before it stay.
        begins = (place for place in loop if vocabulary.text_of([tokens[places[place]]]).startswith(" "))
        kept = kept[: places[next(begins, loop.start) if loop.start else 0]]
    return [] if repeats_itself(vocabulary.text_of(kept)) else kept


def _loop_at_end(tokens: Sequence[int]) -> range:
    """The first round of the longest end of the tokens that is made of repetitions of its own beginning."""
    longest = range(0)
    for period in range(1, len(tokens) // 2 + 1):
        place = len(tokens) - 1
        while place >= period and tokens[place] == tokens[place - period]:
            place -= 1
        begin = place - period + 1
        repeated = len(tokens) - 1 - place
        if repeated >= max(period, _MIN_LOOP) and (not longest or begin < longest.start):
            longest = range(begin, begin + period)
    return longest
