"""Times of segments and words."""

import numpy as np
import pytest
import torch
from transformers.models.whisper.generation_whisper import _dynamic_time_warping, _median_filter

from tis.engine.speech.segments import spans_of
from tis.engine.speech.words import WordSpan, align, median_filter, split_words, timed_words, token_times

T = 1000  # the token of 0.00


class PiecesVocabulary:
    """Tokens are pieces of bytes, in the order in which they are given."""

    first_time = T

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def is_text(self, token_id: int) -> bool:
        return token_id < T

    def bytes_of(self, token_id: int) -> bytes:
        return self._pieces[token_id]


def spans(*tokens: int, seconds: float = 30.0) -> list[tuple[float, float, int, int]]:
    made = spans_of(tokens, PiecesVocabulary(), seconds, 0.02)  # type: ignore[arg-type]
    return [(round(one.start, 2), round(one.end, 2), one.first, one.last) for one in made]


def test_pairs_of_times_divide_segments() -> None:
    assert spans(T, 1, 2, T + 100, T + 120, 3, T + 200) == [(0, 2, 0, 4), (2.4, 4, 4, 7)]


def test_a_last_segment_without_an_end_ends_with_the_window() -> None:
    assert spans(T, 1, T + 100, T + 100, 2, 3, seconds=7.5) == [(0, 2, 0, 3), (2, 7.5, 3, 6)]
    assert spans(1, 2, seconds=3.0) == [(0, 3, 0, 2)]


def test_times_stay_in_the_window_and_in_order() -> None:
    assert spans(T + 50, 1, T + 900, T + 900, 2, T + 950, seconds=10.0) == [(1, 10, 0, 3), (10, 10, 3, 6)]


def test_no_text_is_no_segment() -> None:
    assert spans(T, T + 100) == [] and spans() == []


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 3), (12, 60)])
def test_alignments_are_those_of_transformers(shape: tuple[int, int]) -> None:
    numbers = np.random.default_rng(3).normal(size=shape)
    for ours, theirs in zip(align(numbers), _dynamic_time_warping(numbers), strict=True):
        assert list(ours) == list(theirs)


def test_the_median_filter_is_that_of_transformers() -> None:
    numbers = np.random.default_rng(3).normal(size=(2, 5, 40))
    np.testing.assert_allclose(median_filter(numbers, 7), _median_filter(torch.from_numpy(numbers)[None], 7)[0])


def test_a_look_behind_the_end_of_the_sound_takes_no_time_from_the_words() -> None:
    """A short sound is followed by silence up to 30 seconds, where the end of the text looks: as in Transformers."""
    looks = np.random.default_rng(3).dirichlet(np.full(300, 0.05), size=(2, 8))  # [heads, tokens and the end, frames]
    looks[:, -1, :60] *= 0.01
    seen = torch.from_numpy(looks[:, :, :60])
    normal = (seen - seen.mean(-2, keepdim=True)) / seen.std(-2, keepdim=True, unbiased=False)
    tokens, frames = _dynamic_time_warping(-_median_filter(normal[None], 7)[0].mean(0).numpy())
    begins = [int(frames[list(tokens).index(token)]) for token in range(8)]
    assert token_times(looks, 60, 1.0) == begins


def texts(language: str, *pieces: str | bytes) -> list[str]:
    vocabulary = PiecesVocabulary(*(one if isinstance(one, bytes) else one.encode() for one in pieces))
    return [word.text for word in split_words(range(len(pieces)), vocabulary, language)]  # type: ignore[arg-type]


def test_tokens_become_words_with_their_marks() -> None:
    pieces = (" Sel", "amat", " pagi", ",", " apa", " kabar", "?", ' "', "Ba", "ik", '."')
    assert texts("id", *pieces) == [" Selamat", " pagi,", " apa", " kabar?", ' "Baik."']


def test_apostrophes_and_hyphens_within_a_word_do_not_divide_it() -> None:
    assert texts("id", " anak", "-", "anak", " Jum", "'", "at", ".") == [" anak-anak", " Jum'at."]
    assert texts("en", " don", "'", "t", " '", "go", "'", " now", "-", " then") == [
        " don't",
        " 'go'",
        " now",
        "-",
        " then",
    ]


def test_a_language_without_spaces_has_a_word_for_each_whole_character() -> None:
    sky = "天".encode()
    assert texts("zh", "今", sky[:1], sky[1:], "好", "。") == ["今", "天", "好。"]
    assert texts("en", " caf", "é".encode()[:1], "é".encode()[1:], " ", b"\xff") == [" café", " �"]


def test_words_are_in_order_within_their_segment_and_pauses_belong_to_none() -> None:
    words = [WordSpan(f" w{place}", place, place + 1) for place in range(4)]
    made = timed_words(words, [1.0, 1.3, 1.2, 1.6, 9.0], np.log([0.5, 1, 1, 1]).tolist(), (1.1, 5.0))
    assert [(round(one.start, 2), round(one.end, 2)) for one in made] == [
        (1.1, 1.3),
        (1.3, 1.3),
        (1.3, 1.6),
        (1.6, 2.4),
    ]
    assert made[0].probability == pytest.approx(0.5)
