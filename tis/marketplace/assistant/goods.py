"""What the assistant knows of goods and of who asks. Everything that an answer may say comes from here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tis.marketplace.assistant.measured_goods import Measure
from tis.marketplace.kit.geo import Point
from tis.marketplace.products.delivery import Language
from tis.marketplace.products.schemas import Fulfilment
from tis.marketplace.reading.structured_query import StructuredQuery

MAX_CARDS = 8


@dataclass(frozen=True)
class Preferences:
    """What a user told us to prefer. They break ties and never filter."""

    brands: Sequence[str] = ()  # lower case
    max_price: int | None = None
    city: str | None = None
    condition: str | None = None


@dataclass(frozen=True)
class Viewer:
    """Who asks. `origin` and `city` are measured from, never filtered by."""

    language: Language = "id"
    user_id: int | None = None
    origin: Point | None = None
    city: str | None = None
    preferences: Preferences = Preferences()


@dataclass(frozen=True)
class ProductCard:
    """A product as answers render it and as models read it: no address, no coordinates, no person."""

    id: int
    name: str
    price: int
    category: str
    brand: str | None
    condition: str
    available_quantity: int
    supplier_id: int
    supplier_name: str
    city: str
    rating: float | None
    rating_count: int
    distance_km: float | None = None
    fulfilment: Fulfilment | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True)
class TriedRelaxation:
    """A search with one filter dropped or widened, which was really made: `count` products match it."""

    without: str
    query: StructuredQuery
    count: int
    is_exact: bool


@dataclass(frozen=True)
class FoundGoods:
    """At most MAX_CARDS cards, best first. `total` counts what matches; a lower bound if it is not exact.

    Where a named place has nothing, `nearest` are cards from elsewhere, with distances from that place.
    """

    cards: Sequence[ProductCard]
    total: int
    total_is_exact: bool = True
    corrected: str | None = None
    unverified_words: bool = False  # few products match all words: behind them are those that match some
    relaxations: Sequence[TriedRelaxation] = ()
    skipped: frozenset[int] = frozenset()  # what turns before have shown, left out because the buyer wants others
    nearest_place: str | None = None
    nearest: Sequence[ProductCard] = ()
    values: Mapping[int, Measure] = field(default_factory=dict)  # of the attribute that the cards are ordered by
    is_unmeasured: bool = False  # no product has that attribute
    missing: Sequence[str] = ()  # phrases of a comparison that no product matches
