"""`StructuredQuery`: what a sentence of a buyer asks for, field by field. Rules and models both fill it in."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tis.marketplace.tables import MAX_RUPIAH

Intent = Literal["search", "recommend", "stock", "compare", "other"]
QuerySort = Literal["relevance", "distance", "price_asc", "price_desc", "rating", "newest"]
Measured = Literal["weight", "screen", "size", "battery", "ram", "storage", "camera", "power", "capacity"]
QuerySource = Literal["rules", "llm", "merged"]
MAX_QUERY_CHARS = 500
MAX_SHOWN = 50

Name = Annotated[str, Field(min_length=1, max_length=100)]
NameList = Annotated[list[Name], Field(max_length=20)]
Rupiah = Annotated[int, Field(ge=0, le=MAX_RUPIAH)]
ProductId = Annotated[int, Field(ge=1, lt=2**63)]


class ComparedThings(BaseModel):
    """What to compare: phrases as the buyer says them, and products that it points at."""

    items: NameList = Field(default_factory=list)
    product_ids: list[ProductId] = Field(default_factory=list, max_length=MAX_SHOWN)

    model_config = ConfigDict(extra="forbid")


class AttributeOrder(BaseModel):
    """Which products come first: the lightest, those with the largest battery."""

    attribute: Measured
    least: bool = False
    among: list[ProductId] = Field(default_factory=list, max_length=MAX_SHOWN, description="only these")
    beyond: list[ProductId] = Field(default_factory=list, max_length=MAX_SHOWN, description="lighter than all of these")

    model_config = ConfigDict(extra="forbid")


class MeasureLimit(BaseModel):
    """At least 1.8 litres; at most 2 kg. Without a unit, in that of the seller."""

    attribute: Measured
    unit: str = Field("", max_length=20)
    least: float | None = Field(None, ge=0)
    most: float | None = Field(None, ge=0)

    model_config = ConfigDict(extra="forbid")


class StructuredQuery(BaseModel):
    """Nothing is said of a field that is null, empty or false."""

    intent: Intent = "search"
    category: str | None = Field(None, max_length=100, description="slug of a category")
    text: str = Field("", max_length=MAX_QUERY_CHARS, description="words to look for, without amounts and places")
    brands: NameList = Field(default_factory=list, description="lower case")
    exclude_brands: NameList = Field(default_factory=list)
    exclude_terms: NameList = Field(default_factory=list, description="words that must not match")
    min_price: Rupiah | None = None
    max_price: Rupiah | None = None
    total_price: Rupiah | None = Field(None, description="what `quantity` may cost together; `max_price` is of one")
    cities: NameList = Field(default_factory=list, description="official names without Kota or Kabupaten")
    exclude_cities: NameList = Field(default_factory=list)
    provinces: NameList = Field(default_factory=list)
    near_user: bool = False
    near_cities: bool = Field(False, description="the cities are where goods should be near: an order, not a filter")
    radius_km: float | None = Field(None, gt=0, le=20_000)
    in_stock: bool | None = Field(None, description="true: available now; false: show unavailable ones too")
    quantity: int | None = Field(None, ge=1, le=1_000_000)
    min_rating: float | None = Field(None, ge=0, le=5)
    condition: Literal["new", "used"] | None = None
    fulfilment: Literal["delivery", "pickup"] | None = None
    on_promotion: bool = Field(False, description="only goods whose price a promotion lowers now")
    sort: QuerySort | None = None
    order_by: AttributeOrder | None = None
    compare: ComparedThings | None = None
    product_ids: list[ProductId] = Field(default_factory=list, max_length=MAX_SHOWN)
    sku: str | None = Field(None, max_length=100)
    measures: list[MeasureLimit] = Field(default_factory=list, max_length=10)
    asked: NameList = Field(default_factory=list, description="what is asked of `product_ids`: price, warranty, weight")

    model_config = ConfigDict(extra="forbid")


class KnownUser(BaseModel):
    """What the caller knows of the user: an origin of distances, never a filter."""

    city: str | None = Field(None, max_length=100)
    lat: float | None = Field(None, ge=-90, le=90)
    lon: float | None = Field(None, ge=-180, le=180)

    model_config = ConfigDict(extra="forbid")


class ShownProduct(BaseModel):
    """A product of the turn before; its place in the list is its number for the buyer."""

    id: ProductId
    name: str = Field("", max_length=300)
    price: Rupiah | None = None
    brand: str | None = Field(None, max_length=100)
    category: str | None = Field(None, max_length=100)
    city: str | None = Field(None, max_length=100)

    model_config = ConfigDict(extra="forbid")


class QueryContext(BaseModel):
    """What was before the sentence: `previous` is the query of the last turn, with what its follow-ups changed."""

    user: KnownUser | None = None
    previous: StructuredQuery | None = None
    last_results: list[ShownProduct] = Field(default_factory=list, max_length=MAX_SHOWN)

    model_config = ConfigDict(extra="forbid")


class Explanation(BaseModel):
    """Which words of the sentence filled a field, and by which rule."""

    field: str
    rule: str
    words: str


class ParsedQuery(BaseModel):
    query: StructuredQuery
    explain: list[Explanation] = Field(default_factory=list)
    exact_category: bool = Field(False, description="the main noun of the sentence names the category")
