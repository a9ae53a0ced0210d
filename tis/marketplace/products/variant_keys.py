"""The values of a variant: one of each axis of its group, among its attributes. No two variants have the same."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, exists, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.kit.fields import MAX_ATTRIBUTES
from tis.marketplace.kit.ratings import COUNTERS
from tis.marketplace.products.product_write import ProductWrite
from tis.marketplace.reading.attribute_values import attribute_key, attribute_value
from tis.marketplace.search.variant_groups import axis_values
from tis.marketplace.tables import Product, ProductGroup

_HAS_VARIANTS = exists().where(Product.group_id == ProductGroup.id)
VARIANT_TAKEN = "Another variant of the group has these values."


def variant_key(axes: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Equal for values that count as the same. Raises Conflict if an axis has none, or if these are too many."""
    if len(attributes) > MAX_ATTRIBUTES:
        raise Conflict(f"A product has at most {MAX_ATTRIBUTES} attributes.", code="too_many_attributes")
    values = axis_values(axes, attributes)
    if missing := [axis for axis in axes if axis not in values]:
        raise Conflict(f"A variant of this group needs a value of `{missing[0]}`.", code="variant_incomplete")
    read = (attribute_value(attribute_key(axis), values[axis]) for axis in axes)
    keys = [one.key if one else "" for one in read]
    return hashlib.blake2b("\n".join(keys).encode(), digest_size=16).hexdigest()


def with_variant_keys(session: Session, writes: Sequence[ProductWrite]) -> list[ProductWrite]:
    """A deleted product leaves its group; a change of the attributes of a variant may be one of its values."""
    known: dict[int, Sequence[str]] = {}

    def axes_of(group_id: int) -> Sequence[str]:
        if group_id not in known:
            known[group_id] = session.scalar(select(ProductGroup.axes).where(ProductGroup.id == group_id)) or ()
        return known[group_id]

    return [_with_key(write, axes_of) for write in writes]


def _with_key(write: ProductWrite, axes_of: Any) -> ProductWrite:
    group_id = None if write.action == "create" else getattr(write.product, "group_id", None)
    if group_id is None or "group_id" in write.values:
        return write
    if write.action == "delete":
        return replace(write, values={**write.values, "group_id": None, "variant_key": None})
    if "attributes" in write.values:
        key = variant_key(axes_of(group_id), write.values["attributes"])
        return replace(write, values={**write.values, "variant_key": key})
    return write


def free_keys(session: Session, writes: Iterable[ProductWrite]) -> None:
    """Before several variants get other values at once, which may be those that others have until then."""
    changed = [int(one.product.id) for one in writes if one.action != "create" and "variant_key" in one.values]
    if len(changed) > 1:
        freed = update(Product).where(Product.id.in_(changed), Product.variant_key.is_not(None))
        session.execute(
            freed.values(variant_key=None, updated_at=Product.updated_at),
            execution_options={"synchronize_session": False},
        )


def move_to_groups(session: Session, moves: Mapping[int, tuple[int | None, int | None]]) -> list[int]:
    """Counts products that went from one group to another, by their ids. Returns the groups that are concerned.

    Locks these in the order of their ids. One that has lost its last variant is deleted.
    """
    if not moves:
        return []
    groups = sorted({group_id for pair in moves.values() for group_id in pair if group_id is not None})
    of_groups = select(ProductGroup.id).where(ProductGroup.id.in_(groups)).order_by(ProductGroup.id)
    session.execute(of_groups.with_for_update())
    sums = {group_id: [0] * len(COUNTERS) for group_id in groups}
    columns = [getattr(Product, name) for name in COUNTERS]
    for product_id, *counters in session.execute(select(Product.id, *columns).where(Product.id.in_(moves))):
        for group_id, sign in zip(moves[product_id], (-1, 1), strict=True):
            if group_id is not None:
                sums[group_id] = [total + sign * one for total, one in zip(sums[group_id], counters, strict=True)]
    for group_id, counters in sums.items():
        add_to_group(session, group_id, counters)
    inhabited = set(session.scalars(select(ProductGroup.id).where(_HAS_VARIANTS, ProductGroup.id.in_(groups))))
    if empty := set(groups) - inhabited:
        gone = delete(ProductGroup).where(ProductGroup.id.in_(empty))
        session.execute(gone, execution_options={"synchronize_session": False})
    return sorted(inhabited)


def add_to_group(session: Session, group_id: int, counters: Sequence[int]) -> None:
    values = {name: getattr(ProductGroup, name) + one for name, one in zip(COUNTERS, counters, strict=True)}
    if any(counters):
        group = update(ProductGroup).where(ProductGroup.id == group_id)
        session.execute(group.values(values), execution_options={"synchronize_session": False})
