"""The checker of histories is believed by the proof of the cluster: here it must see through doctored ones."""

import pytest

from tests.faults.cluster.linear import SessionOperation, is_linear

HISTORIES: dict[str, tuple[bool, list[SessionOperation]]] = {
    "an answer that nobody was shown has failed, and is begun again behind another": (
        True,
        [
            SessionOperation("begin", 0, request="b"),
            SessionOperation("begin", 1, 2, "answer", "a", "2"),
            SessionOperation("begin", 3, 4, "conflict", "b"),
            SessionOperation("cancel", 5, 6, "cancelled"),
            SessionOperation("begin", 7, 8, "answer", "b", "3"),
        ],
    ),
    "a begin and a cancel": (
        True,
        [SessionOperation("begin", 0, 1, "answer", "a", "1"), SessionOperation("cancel", 2, 3, "cancelled")],
    ),
    "two clients begin the same": (
        True,
        [SessionOperation("begin", 0, 2, "answer", "a", "1"), SessionOperation("begin", 1, 3, "answer", "a", "1")],
    ),
    "the same is begun twice": (
        False,
        [SessionOperation("begin", 0, 2, "answer", "a", "1"), SessionOperation("begin", 1, 3, "answer", "a", "2")],
    ),
    "another is refused": (
        True,
        [SessionOperation("begin", 0, 2, "answer", "a", "1"), SessionOperation("begin", 1, 3, "conflict", "b")],
    ),
    "each refuses the other": (
        False,
        [SessionOperation("begin", 0, 2, "conflict", "a"), SessionOperation("begin", 1, 3, "conflict", "b")],
    ),
    "both run at once": (
        False,
        [
            SessionOperation("begin", 0, 2, "answer", "a", "1"),
            SessionOperation("begin", 1, 3, "answer", "b", "2"),
            SessionOperation("cancel", 4, 5, "cancelled"),
            SessionOperation("begin", 6, 7, "conflict", "c"),
            SessionOperation("cancel", 8, 9, "finished"),
        ],
    ),
    "one runs when the other has ended": (
        True,
        [SessionOperation("begin", 0, 1, "answer", "a", "1"), SessionOperation("begin", 2, 3, "answer", "b", "2")],
    ),
    "a conflict with nothing": (False, [SessionOperation("begin", 0, 1, "conflict", "a")]),
    "a cancel of what begins later": (
        False,
        [SessionOperation("cancel", 0, 1, "cancelled"), SessionOperation("begin", 2, 3, "answer", "a", "1")],
    ),
    "a cancel of nothing": (
        True,
        [SessionOperation("cancel", 0, 1, "unknown"), SessionOperation("begin", 2, 3, "answer", "a", "1")],
    ),
    "what is begun is unknown": (
        False,
        [SessionOperation("begin", 0, 1, "answer", "a", "1"), SessionOperation("cancel", 2, 3, "unknown")],
    ),
    "what has finished is begun again": (
        False,
        [SessionOperation("begin", 0, 1, "answer", "a", "1"), SessionOperation("begin", 4, 5, "answer", "a", "2")],
    ),
    "cancelled, then finished": (
        False,
        [
            SessionOperation("begin", 0, 1, "answer", "a", "1"),
            SessionOperation("cancel", 2, 3, "cancelled"),
            SessionOperation("cancel", 4, 5, "finished"),
        ],
    ),
    "cancelled while its server was paused": (
        True,
        [
            SessionOperation("begin", 0, 1, "answer", "a", "1"),
            SessionOperation("cancel", 2, 3, "cancelled"),
            SessionOperation("begin", 4, 5, "conflict", "b"),
            SessionOperation("begin", 6, 7, "answer", "b", "2"),
        ],
    ),
    "an unanswered begin took effect": (
        True,
        [SessionOperation("begin", 0, request="a"), SessionOperation("begin", 1, 2, "conflict", "b")],
    ),
    "an unanswered begin took effect later": (
        True,
        [
            SessionOperation("begin", 0, request="a"),
            SessionOperation("cancel", 1, 2, "unknown"),
            SessionOperation("begin", 3, 4, "conflict", "b"),
        ],
    ),
    "an unanswered begin is no other's": (
        False,
        [SessionOperation("begin", 3, request="a"), SessionOperation("begin", 0, 2, "conflict", "b")],
    ),
    "what failed is refused while another runs": (
        True,
        [
            SessionOperation("begin", 0, 1, "answer", "a", "1"),
            SessionOperation("cancel", 2, 3, "failed"),
            SessionOperation("begin", 4, 5, "answer", "b", "2"),
            SessionOperation("begin", 6, 7, "conflict", "a"),
            SessionOperation("cancel", 8, 9, "cancelled"),
            SessionOperation("begin", 10, 11, "answer", "a", "3"),
        ],
    ),
    "what failed is begun again": (
        True,
        [
            SessionOperation("begin", 0, 1, "answer", "a", "1"),
            SessionOperation("cancel", 2, 3, "failed"),
            SessionOperation("begin", 4, 5, "answer", "a", "2"),
        ],
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_is_linear_if_some_order_explains_every_answer(name: str) -> None:
    expected, operations = HISTORIES[name]
    failed = ["1"] if "failed" in name else []
    assert is_linear(operations, failed) == expected
    assert is_linear(operations[::-1], failed) == expected


def test_a_history_of_many_clients_is_checked_at_once() -> None:
    begins = [SessionOperation("begin", number, 100 + number, "answer", "a", "1") for number in range(9)]
    cancels = [SessionOperation("cancel", number, 100 + number, "cancelled") for number in range(9)]
    assert is_linear([*begins, *cancels])
    assert not is_linear([*begins, *cancels, SessionOperation("cancel", 200, 201, "finished")])
