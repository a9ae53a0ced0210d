"""Owners are served in turn, and the items of one owner in order."""

import pytest

from tis.admission.fair_queue import FairQueue


def filled(*items: str) -> FairQueue[str]:
    """The first letter of an item is its owner."""
    queue: FairQueue[str] = FairQueue()
    for item in items:
        queue.append(item[0], item)
    return queue


def test_owners_are_served_in_turn() -> None:
    queue = filled("a1", "a2", "a3", "b1", "c1", "b2")
    expected = ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert list(queue) == expected
    assert [queue.pop() for _ in range(len(queue))] == expected and not queue


def test_an_owner_who_comes_back_is_last() -> None:
    queue = filled("a1", "b1", "b2")
    assert queue.pop() == "a1"
    queue.append("a", "a2")
    assert list(queue) == ["b1", "a2", "b2"]


def test_an_item_that_leaves_changes_nobody_elses_turn() -> None:
    queue = filled("a1", "a2", "b1")
    queue.remove("a", "a1")
    assert (list(queue), queue.num_of("a"), len(queue)) == (["a2", "b1"], 1, 2)
    queue.remove("a", "a2")
    assert (list(queue), queue.num_of("a")) == (["b1"], 0)
    for owner, item in (("a", "a2"), ("b", "b2")):
        with pytest.raises(ValueError):
            queue.remove(owner, item)


def test_the_oldest_of_another_owner_may_be_taken() -> None:
    queue = filled("a1", "b1", "b2")
    assert queue.heads() == [("a", "a1"), ("b", "b1")]
    assert queue.pop("b") == "b1" and list(queue) == ["a1", "b2"]
