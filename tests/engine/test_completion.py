"""A completion with made token per character."""

from typing import Any

import pytest

from tis.engine.answer import Piece
from tis.engine.completion import Completion
from tis.engine.models.echo import CharacterTokenizer
from tis.engine.prepared_request import PreparedRequest
from tis.engine.sampling.params import SamplingParams

END = 0


class TokenizerWithEos(CharacterTokenizer):
    eos_ids = frozenset({END})


def completion(**params: Any) -> Completion:
    return Completion(0, PreparedRequest("m", "r1", TokenizerWithEos(), [1], SamplingParams(**params), seed=1))


def feed(made: Completion, text: str) -> list[Piece]:
    pieces = []
    for character in text:
        if piece := made.accept(ord(character)):
            pieces.append(piece)
        if made.is_finished:
            break
    return pieces


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def test_the_ending_token_is_neither_emitted_nor_counted() -> None:
    made = completion()
    pieces = feed(made, "ab\0c")
    assert (text_of(pieces), made.finish, made.token_ids) == ("ab", "stop", [97, 98])


def test_ignore_eos_makes_it_an_ordinary_token() -> None:
    made = completion(ignore_eos=True, max_tokens=4)
    assert (text_of(feed(made, "ab\0cd")), made.finish) == ("ab\0c", "length")


def test_a_stop_token_of_the_request_ends_the_answer() -> None:
    assert text_of(feed(completion(stop_token_ids=(ord("c"),)), "abcd")) == "ab"


def test_nothing_ends_the_answer_before_min_tokens() -> None:
    made = completion(min_tokens=3, stop=("b",), stop_token_ids=(ord("a"),))
    assert text_of(feed(made, "abab")) == "aba"
    assert made.finish == "stop"


def test_the_last_piece_names_the_stop_string_that_ended_the_answer() -> None:
    assert [piece.stop for piece in feed(completion(stop=("zz", "cd", "d")), "abcd")] == [None, None, "cd"]
    assert feed(completion(stop=("x",)), "ab\0")[-1].stop is None
    assert feed(completion(stop=("x",), max_tokens=2), "ab")[-1].stop is None


def test_a_stop_string_with_a_marker_is_named_as_the_request_has_it() -> None:
    params = SamplingParams(stop=("</think>",))
    prepared = PreparedRequest("m", "r1", TokenizerWithEos(), [1], params, 1, visible_markers={"</think>": 5})
    assert [prepared.requested_stop(stop) for stop in prepared.stops] == ["</think>", "</think>"]
    assert len(prepared.stops) == 2 and prepared.requested_stop(None) is None


def test_max_tokens_emits_the_text_that_waited_for_a_stop_string() -> None:
    made = completion(max_tokens=3, stop=("cde",))
    assert (text_of(feed(made, "abcde")), made.finish) == ("abc", "length")


def test_a_stop_string_completed_by_the_last_token_wins_over_length() -> None:
    made = completion(max_tokens=4, stop=("cd",))
    assert (text_of(feed(made, "abcd")), made.finish) == ("ab", "stop")


def test_tokens_of_waiting_text_come_with_the_next_piece() -> None:
    made = completion(stop=("bcX",))
    assert [piece.token_ids for piece in feed(made, "abcd")] == [(97,), (98, 99, 100)]


def test_cancelling_emits_the_waiting_text() -> None:
    made = completion(stop=("bc",))
    feed(made, "ab")
    assert made.cancel() == Piece(0, "b", (98,), (), "cancelled")


@pytest.mark.parametrize("text", ["", "a"])
def test_the_noise_key_depends_on_the_position(text: str) -> None:
    first, second = completion(), completion()
    feed(first, text), feed(second, text)
    assert first.next_noise_key() == second.next_noise_key()
    feed(first, "x")
    assert first.next_noise_key() != second.next_noise_key()
