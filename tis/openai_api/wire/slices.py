"""Lists of large bodies in slices: one call of pydantic for a whole list would hold up every thread."""

from collections.abc import Callable
from typing import Any

SLICE_COST = 2048  # entries, and what counts as much within them


def next_slice(entries: list[Any], first: int, num_within: Callable[[Any], int]) -> list[Any]:
    """The entries that pydantic validates in one call, of about equal cost."""
    cost, end = 0, first
    while end < len(entries) and cost < SLICE_COST:
        cost += 1 + num_within(entries[end])
        end += 1
    return entries[first:end]


def num_in_lists(entry: Any, names: tuple[str, ...]) -> int:
    lists = (entry.get(name) for name in names) if isinstance(entry, dict) else ()
    return sum(len(entries) for entries in lists if isinstance(entries, list))
