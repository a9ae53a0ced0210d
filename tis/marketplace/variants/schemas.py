"""Bodies and answers of the routes of groups, with their examples."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from tis.bounds import MaxItems
from tis.marketplace.kit.docs import KEY_USED, STALE_VERSION, responses, schema_example
from tis.marketplace.kit.fields import MAX_ID, AxisName, AxisText, Title
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.kit.versions import VersionedChange
from tis.marketplace.products.variant_keys import VARIANT_TAKEN
from tis.marketplace.products.variant_views import GROUP
from tis.marketplace.reading.attribute_values import attribute_key

MAX_VARIANTS = 100  # of a group
MAX_AXES = 3
_UNCHANGED: Any = None


def _text(value: Any) -> Any:
    """Sizes are numbers."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


AxisValue = Annotated[AxisText, BeforeValidator(_text)]
Values = Annotated[dict[AxisName, AxisValue], MaxItems(MAX_AXES)]
ProductId = Annotated[int, Field(ge=1, le=MAX_ID)]


class NewVariant(StrictBody):
    model_config = schema_example({"product_id": 8, "values": {"ukuran": "42", "warna": "merah"}})

    product_id: ProductId
    values: Values = Field({}, description="of axes that are not among its attributes yet, or other ones")


class NewGroup(StrictBody):
    model_config = schema_example(
        {
            "name": "Sepatu Lari Rinjani",
            "axes": ["ukuran", "warna"],
            "variants": [
                {"product_id": 8, "values": {"ukuran": "42", "warna": "merah"}},
                {"product_id": 9, "values": {"ukuran": "42", "warna": "hitam"}},
            ],
        }
    )

    name: Title
    axes: Annotated[list[AxisName], MaxItems(MAX_AXES), Field(min_length=1)] = Field(
        description="what variants differ in: names of attributes, one to three"
    )
    variants: Annotated[list[NewVariant], MaxItems(MAX_VARIANTS), Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "NewGroup":
        check_axes(self.axes)
        ids = [one.product_id for one in self.variants]
        if len(set(ids)) < len(ids):
            raise ValueError("a product is named twice")
        return self


class Axis(StrictBody):
    name: AxisName
    was: AxisName | None = Field(None, description="its name so far: the attribute of each variant is renamed")


class GroupChange(VersionedChange):
    model_config = schema_example({"axes": [{"name": "warna"}, {"name": "nomor", "was": "ukuran"}]})

    name: Title = _UNCHANGED
    axes: Annotated[list[Axis], MaxItems(MAX_AXES), Field(min_length=1)] = Field(
        _UNCHANGED, description="in the order in which they are chosen"
    )

    @model_validator(mode="after")
    def _check(self) -> "GroupChange":
        if self.axes is not _UNCHANGED:
            check_axes([axis.name for axis in self.axes])
        return self


def check_axes(names: list[str]) -> None:
    keys = [attribute_key(name) for name in names]
    if not all(keys):
        raise ValueError("the name of an axis has letters or digits")
    if len(set(keys)) < len(keys):
        raise ValueError("two axes have the same name")


_OTHER_SHOP = {403: "This belongs to another supplier."}
_NO_GROUP = {404: "Group not found"}
_CONFLICTS = {409: VARIANT_TAKEN}
GROUP_CREATED = responses(GROUP, _OTHER_SHOP, {404: "Product 7 not found"}, _CONFLICTS, KEY_USED)
GROUP_SEEN = responses(GROUP, _NO_GROUP)
GROUPS_LISTED = responses([GROUP], _OTHER_SHOP, {404: "Supplier not found"})
GROUP_CHANGED = responses({**GROUP, "version": 2}, _OTHER_SHOP, _NO_GROUP, _CONFLICTS, STALE_VERSION)
VARIANT_ADDED = responses({**GROUP, "version": 2}, _OTHER_SHOP, _NO_GROUP, _CONFLICTS, KEY_USED)
DISSOLVED = responses({"detail": "Dissolved."}, _OTHER_SHOP, _NO_GROUP)
VARIANT_REMOVED = responses({"detail": "Removed."}, _OTHER_SHOP, {404: "This product is no variant of the group."})
