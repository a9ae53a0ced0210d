"""One product of each group in a list: the first of its variants in the order of the list.

A group is at the place of its first variant. Rows are read in the order of the list; whether a row is the first of its
group, the places of the others say, as the filters and the text of the query find them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.reading.attribute_values import attribute_key
from tis.marketplace.search.cursor import ListPosition
from tis.marketplace.search.product_rows import parse_json
from tis.marketplace.search.query import VariantSummary
from tis.marketplace.search.sql import id_list, run, run_once

_FIRST_LOOK = 2  # so many rows are read for each that is wanted
_MAX_READ = 2000  # rows at a time, unless more are wanted
_GROUPS_OF = "SELECT product_id, group_id FROM product_search WHERE group_id IS NOT NULL AND product_id IN "
_MEMBERS_OF = "SELECT product_id, group_id FROM product_search WHERE group_id IN "
# Of several rows, one for each group.
NUM_GROUPED = "count(*) - count(p.group_id) + count(DISTINCT p.group_id)"

ReadRows = Callable[[ListPosition | None, int], Sequence[ListPosition]]  # behind a position, so many
FirstOf = Callable[[Sequence[int]], Sequence[int]]  # those of the products that are in the list, in its order


def has_groups(session: Session) -> bool:
    """A catalogue without variants pays no more than this look at an index."""
    return bool(run_once(session, "SELECT group_id FROM product_search WHERE group_id IS NOT NULL LIMIT 1"))


def groups_of(session: Session, product_ids: Sequence[int]) -> dict[int, int]:
    """The groups of those that are variants, by their ids."""
    return dict(_pairs(session, _GROUPS_OF, product_ids))


def members_of(session: Session, group_ids: Iterable[int]) -> dict[int, int]:
    """The groups of all variants of these, by their ids."""
    return dict(_pairs(session, _MEMBERS_OF, sorted(group_ids)))


def _pairs(session: Session, sql: str, ids: Sequence[int]) -> Iterable[tuple[int, int]]:
    return [(one, other) for one, other in run(session, sql + id_list(ids))] if ids else []


def first_of_groups(
    session: Session, read: ReadRows, in_order: FirstOf, after: ListPosition | None, count: int
) -> list[ListPosition]:
    """The first `count` rows behind a position, without those whose group has an earlier one in the whole list."""
    found: list[ListPosition] = []
    first: dict[int, int] = {}  # the first variant of each group that was met
    is_behind_a_page, num_read, size = after is not None, 0, _FIRST_LOOK * count
    while True:
        rows = read(after, size)
        groups = groups_of(session, [row.product_id for row in rows])
        met = set(groups.values()) - first.keys()
        if is_behind_a_page and met:
            members = members_of(session, met)
            for product_id in in_order(sorted(members)):
                first.setdefault(members[product_id], product_id)
        for row in rows:
            group = groups.get(row.product_id)
            if group is None or first.setdefault(group, row.product_id) == row.product_id:
                found.append(row)
        num_read += len(rows)
        if len(found) >= count or len(rows) < size:
            return found[:count]
        after = rows[-1]
        # As many more as it takes if the rest is like what was read.
        size = min(_MAX_READ, max(count, (count - len(found)) * num_read // max(1, len(found))) + 1)


def one_of_each(session: Session, product_ids: Sequence[int]) -> list[int]:
    """The first of each group, and all that are no variants."""
    groups = groups_of(session, product_ids)
    first: dict[int, int] = {}
    for one in product_ids:
        first.setdefault(groups.get(one, -one), one)
    return list(first.values())


_VARIANTS = (
    "SELECT p.group_id, g.name, g.axes, p.price, p.attributes, f.sellable FROM product_search f"
    " JOIN products p ON p.id = f.product_id JOIN product_groups g ON g.id = f.group_id"
    " WHERE f.sellable >= 0 AND f.group_id IN {} ORDER BY f.group_id, f.product_id"
)


def summaries(session: Session, group_ids: Iterable[int | None]) -> dict[int, VariantSummary]:
    ids = sorted({one for one in group_ids if one is not None})
    variants: dict[int, list[Any]] = {}
    for row in run(session, _VARIANTS.format(id_list(ids))) if ids else ():
        variants.setdefault(row[0], []).append(row)
    return {group_id: _summary(rows) for group_id, rows in variants.items()}


def _summary(rows: Sequence[Any]) -> VariantSummary:
    rows = [row for row in rows if row[-1] == 1] or rows
    group_id, name, axes = rows[0][:3]
    prices = [row[3] for row in rows]
    names = parse_json(axes)
    options = options_of(names, [axis_values(names, parse_json(row[4])) for row in rows])
    return VariantSummary(group_id, name, len(rows), min(prices), max(prices), options)


def options_of(axes: Iterable[str], variants: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """The values of each axis that there are, each once."""
    options: dict[str, list[str]] = {}
    for axis in axes:
        spellings: dict[str, str] = {}
        for values in variants:
            if axis in values:
                spellings.setdefault(values[axis].casefold(), values[axis])
        options[axis] = in_reading_order(spellings.values())
    return options


def axis_values(axes: Iterable[str], attributes: Mapping[str, Any]) -> dict[str, str]:
    """The value of each axis, as text, of those that the attributes have."""
    by_key = {attribute_key(name): value for name, value in attributes.items()}
    values: dict[str, str] = {}
    for axis in axes:
        value = attributes.get(axis, by_key.get(attribute_key(axis)))
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            values[axis] = " ".join(str(value).split())
    return values


_SIZES = ("xxs", "xs", "s", "m", "l", "xl", "xxl", "2xl", "xxxl", "3xl", "4xl", "5xl")


def in_reading_order(values: Iterable[str]) -> list[str]:
    """Numbers by size, clothes from small to large; else as they were put on sale."""
    texts = list(values)
    folded = [text.casefold() for text in texts]
    if all(one in _SIZES for one in folded):
        return sorted(texts, key=lambda text: _SIZES.index(text.casefold()))
    try:
        return sorted(texts, key=lambda text: float(text.replace(",", ".")))
    except ValueError:
        return texts
