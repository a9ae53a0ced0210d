"""Silence, doubt and loops: what an attempt must be like to become text."""

import pytest

from tis.engine.speech.attempt import HearingAttempt, Verdict, cut_loop, judge

SENTENCE = "Selamat pagi, saya mau memesan kopi dari Aceh."


class ByteVocabulary:
    """Each byte is a token."""

    def is_text(self, token_id: int) -> bool:
        return token_id < 256

    def text_of(self, ids: list[int]) -> str:
        return bytes(one for one in ids if one < 256).decode(errors="replace")


def attempt(logprob: float, no_speech: float = 0.0) -> HearingAttempt:
    made = HearingAttempt([1], 0, 0.0, 0, tokens=[1, 2, 3], logprobs=[logprob] * 3, end_logprob=logprob)
    made.no_speech_prob = no_speech
    return made


@pytest.mark.parametrize(
    ("logprob", "no_speech", "text", "verdict"),
    [
        (-0.3, 0.1, SENTENCE, Verdict.KEEP),
        (-0.3, 0.9, SENTENCE, Verdict.KEEP),  # a model that is sure of its words is believed
        (-1.2, 0.9, SENTENCE, Verdict.SILENCE),
        (-1.2, 0.5, SENTENCE, Verdict.DOUBT),
        (-0.1, 0.1, "terima kasih " * 20, Verdict.DOUBT),
    ],
)
def test_an_attempt_is_judged_as_openai_whisper_judges_it(
    logprob: float, no_speech: float, text: str, verdict: Verdict
) -> None:
    assert judge(attempt(logprob, no_speech), text) is verdict


def test_the_end_counts_as_a_token() -> None:
    made = HearingAttempt([1], 0, 0.0, 0, tokens=[1], logprobs=[-1.0], end_logprob=-3.0)
    assert made.avg_logprob == -2.0


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (SENTENCE + " Ya." * 40, SENTENCE),
        (SENTENCE + "a" * 200, SENTENCE),
        ("terima kasih " * 40, ""),
        (SENTENCE, SENTENCE),
    ],
)
def test_a_loop_is_cut_off(text: str, kept: str) -> None:
    vocabulary = ByteVocabulary()
    assert vocabulary.text_of(cut_loop(list(text.encode()), vocabulary)) == kept  # type: ignore[arg-type]


def test_a_loop_with_times_is_cut_off_in_front_of_its_first_text() -> None:
    loop = [token for number in range(30) for token in (300 + number, *b" Ya ya.", 301 + number)]
    tokens = [300, *SENTENCE.encode(), 301, *loop]
    vocabulary = ByteVocabulary()
    assert vocabulary.text_of(cut_loop(tokens, vocabulary)) == SENTENCE  # type: ignore[arg-type]
