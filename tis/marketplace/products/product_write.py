"""`ProductWrite`: what `write_products` writes."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Row

from tis.marketplace.tables import Product

Action = Literal["create", "change", "delete", "restore"]


@dataclass(frozen=True)
class ProductWrite:
    """`values` are columns. For a change, only those that differ from what `product` has.

    A sheet passes a row with `id`, `supplier_id`, `version`, all texts and the changed columns: loading 5000 objects
    is slow.
    """

    action: Action
    product: Product | Row[Any]
    values: dict[str, Any]
    reason: str | None = None  # why the stock is corrected
    branch_id: int = 0  # where; 0: the shop's own address

    @property
    def supplier_id(self) -> int:
        return int(self.product.supplier_id)
