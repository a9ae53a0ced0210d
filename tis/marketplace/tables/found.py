"""What the search reads: rows that are made of others, and can be made anew."""

from sqlalchemy import ForeignKey, Index, LargeBinary, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId
from tis.marketplace.tables.base import Table, key_of, where_rows


class ProductFacts(Table):
    """What products are filtered and sorted by, one narrow row per product that is not deleted.

    Written by `index.py` and `supplier_index.py` of the search alone: a change of a product writes the columns of the
    product, a change of its supplier place, city and the sign of `sellable`. So neither locks the rows of the other.
    """

    __tablename__ = "product_search"

    product_id: Mapped[int] = key_of("products")
    supplier_id: Mapped[int] = mapped_column(BigId)
    # 1: can be bought now, 0: cannot. Less 2 while the supplier is closed or suspended, and then nobody finds it.
    sellable: Mapped[int]
    price: Mapped[int] = mapped_column(BigId)
    rating: Mapped[float | None]
    rating_rank: Mapped[float]
    created_us: Mapped[int] = mapped_column(BigId)  # microseconds since 1970
    latitude: Mapped[float]
    longitude: Mapped[float]
    condition: Mapped[str] = mapped_column(String(8))
    category_key: Mapped[str] = mapped_column(String(100))
    brand_key: Mapped[str | None] = mapped_column(String(100))
    city_key: Mapped[str] = mapped_column(String(100))
    words_digest: Mapped[int] = mapped_column(BigId)  # tells whether the words must be indexed again
    # Its rows of `product_attributes` as one text, which facets count: of ten thousand products these would be many.
    attributes: Mapped[str | None] = mapped_column(Text)
    group_id: Mapped[int | None] = mapped_column(BigId)
    is_spread: Mapped[int] = mapped_column(default=0, server_default=text("0"))  # 1: it has rows in `goods_places`

    __table_args__ = (
        Index("ix_product_search_category_price", "category_key", "price", "product_id", "sellable"),
        Index("ix_product_search_category", "category_key", "product_id", "sellable"),
        Index("ix_product_search_price", "price", "product_id"),
        Index("ix_product_search_newest", "created_us", "product_id"),
        Index("ix_product_search_rating", "rating_rank", "product_id"),
        Index("ix_product_search_supplier", "supplier_id", "category_key", "price"),
        Index("ix_product_search_brand", "brand_key", "product_id", "sellable"),
        Index("ix_product_search_city", "city_key", "product_id", "sellable"),
        Index(
            "ix_product_search_group",
            *("group_id", "category_key", "product_id", "sellable"),
            **where_rows("group_id IS NOT NULL"),
        ),
    )


class ProductVector(Table):
    """What the embedding model makes of the words with this digest. Written by `VectorRenewal` alone."""

    __tablename__ = "product_vectors"

    product_id: Mapped[int] = mapped_column(
        ForeignKey("product_search.product_id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    model: Mapped[str] = mapped_column(String(300))  # its id and revision
    words_digest: Mapped[int] = mapped_column(BigId)
    renewed_us: Mapped[int] = mapped_column(BigId)  # microseconds since 1970
    numbers: Mapped[bytes] = mapped_column(LargeBinary)  # float16, of length 1 together

    __table_args__ = (Index("ix_product_vectors_renewed_us_product_id", "renewed_us", "product_id"),)


class ProductAttribute(Table):
    """An attribute of a product as it is filtered and counted by. Written by `search/index.py` alone."""

    __tablename__ = "product_attributes"

    product_id: Mapped[int] = key_of("products")
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[float | None]
    text_key: Mapped[str] = mapped_column(String(100))  # of a number, too
    label: Mapped[str] = mapped_column(String(100))

    __table_args__ = (
        Index("ix_product_attributes_name_number", "name", "number", "product_id"),
        Index("ix_product_attributes_name_text_key", "name", "text_key", "product_id"),
        {"sqlite_with_rowid": False},
    )


class SupplierFacts(Table):
    """What suppliers are found and sorted by. A review adds to `stars` and `weight`, a change of the supplier writes
    the rest, which `search/supplier_index.py` does alone."""

    __tablename__ = "supplier_search"

    supplier_id: Mapped[int] = key_of("suppliers")
    name_key: Mapped[str] = mapped_column(String(200))  # the words of its business name, sorted
    # Of the published reviews of all its products, also of deleted ones, weighted as in `ratings.py`.
    stars: Mapped[float]
    weight: Mapped[float]


class SupplierWord(Table):
    """A word of the business name (`scope` 0), or of the city or province (1), of a supplier."""

    __tablename__ = "supplier_words"

    word: Mapped[str] = mapped_column(String(64), primary_key=True)
    supplier_id: Mapped[int] = key_of("suppliers", index=True)
    scope: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class SupplierHours(Table):
    """The `opening_hours` of a supplier in minutes of a week in UTC, of which `closes` may lie in the next week."""

    __tablename__ = "supplier_hours"

    supplier_id: Mapped[int] = key_of("suppliers")
    opens: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    closes: Mapped[int]


class Lexeme(Table):
    """A word of the catalogue and the number of products with it, to correct misspelt words."""

    __tablename__ = "lexicon"

    term: Mapped[str] = mapped_column(String(64), primary_key=True)
    count: Mapped[int]
