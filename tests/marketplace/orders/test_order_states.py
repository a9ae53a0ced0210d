"""The one table of moves: what is drawn of it, and what it says to pages."""

import runpy

from tests.serving import REPOSITORY
from tis.marketplace.kit.news import NEWS_KINDS
from tis.marketplace.orders.states import CLOCK_TARGET, ENDS, HOLDS_UNITS, MOVES


def test_the_drawing_is_that_of_the_table() -> None:
    """`python scripts/write_order_states.py` writes it."""
    script = runpy.run_path(str(REPOSITORY / "scripts" / "write_order_states.py"))
    assert script["drawing"]() == script["written_drawing"]()


def test_no_move_leads_back() -> None:
    followers: dict[str, set[str]] = {}
    for move in MOVES:
        followers.setdefault(move.source, set()).add(move.target)

    def reached(state: str, way: tuple[str, ...] = ()) -> set[str]:
        assert state not in way
        after = followers.get(state, set())
        return after.union(*(reached(one, (*way, state)) for one in after))

    assert "draft" not in reached("draft") and ENDS <= reached("draft")
    assert not ENDS & followers.keys()


def test_units_leave_an_order_with_the_move_that_says_so() -> None:
    for move in MOVES:
        leaves = move.source in HOLDS_UNITS and move.target not in HOLDS_UNITS
        assert leaves == (move.stock in ("released", "sold")), move
        assert (move.stock == "back") == (move.target == "returned")


def test_every_state_with_a_clock_has_one_way_and_every_move_its_news() -> None:
    by_clock = [move.source for move in MOVES if "clock" in move.movers]
    assert len(by_clock) == len(set(by_clock)) == len(CLOCK_TARGET)
    assert {f"order.{move.target}" for move in MOVES} <= NEWS_KINDS.keys()
