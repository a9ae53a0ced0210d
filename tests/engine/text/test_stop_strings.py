import itertools
import random

import pytest

from tis.engine.text.stop_strings import StopStrings, longest_beginning


def run(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    watcher = StopStrings(stops)
    shown = "".join(watcher.feed(piece) for piece in pieces)
    return (shown if watcher.reached else shown + watcher.flush()), watcher.reached


def splits(text: str) -> list[list[str]]:
    """Every way to cut a short text into pieces."""
    cuts = itertools.product([False, True], repeat=len(text) - 1)
    ways = []
    for cut in cuts:
        pieces, begin = [], 0
        for place, is_cut in enumerate(cut, start=1):
            if is_cut:
                pieces.append(text[begin:place])
                begin = place
        ways.append([*pieces, text[begin:]])
    return ways


@pytest.mark.parametrize(
    ("stops", "text", "shown"),
    [
        (["END"], "abENDcd", "ab"),
        (["END"], "abENcd", "abENcd"),
        (["aab"], "aaab", "a"),
        (["x", "cdx"], "abcdx", "ab"),
        (["bc", "abcd"], "abcd", "a"),
        (["\n\n"], "a\nb\n\nc", "a\nb"),
    ],
)
def test_it_ends_at_the_stop_however_the_text_is_cut(stops: list[str], text: str, shown: str) -> None:
    results = {run(stops, pieces)[0] for pieces in splits(text)}
    # With overlapping stops the cut decides which is seen first; but no stop string may ever show.
    assert shown in results
    for result in results:
        assert not any(stop in result for stop in stops) and text.startswith(result)


def test_nothing_is_held_back_that_cannot_become_a_stop() -> None:
    watcher = StopStrings(["END"])
    assert [watcher.feed(piece) for piece in ("a", "E", "N", "x", "E")] == ["a", "", "", "ENx", ""]
    assert watcher.flush() == "E"


def test_without_stops_everything_passes() -> None:
    assert run([], ["any", "thing"]) == ("anything", False)


def test_the_longest_beginning_is_that_of_trying_every_length() -> None:
    chance = random.Random(3)
    for _ in range(3000):
        text, *wanted = ("".join(chance.choices("ab", k=chance.randint(1, 9))) for _ in range(3))
        tails = [text[-length:] for length in range(1, len(text) + 1)]
        fitting = [len(tail) for tail in tails if any(len(tail) < len(one) and one.startswith(tail) for one in wanted)]
        # A tail that is one of the wanted strings may begin the other.
        assert longest_beginning(text, wanted) == max(fitting, default=0)
