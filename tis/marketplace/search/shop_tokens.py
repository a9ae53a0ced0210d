"""The tokens of a supplier in the index entries of its products: its grid cell, and the words of its name and place."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from tis.marketplace.reading.common_words import FUNCTION_WORDS
from tis.marketplace.reading.tokens import is_cell_token, shop_token, tokenize
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.tables import Supplier

_MAX_WORDS_OF_SHOP = 30


def shop_words(session: Session, supplier_ids: Iterable[int]) -> dict[int, list[str]]:
    """Read after the entries are locked: a supplier that is renamed later writes the tokens of these entries, too."""
    names = select(Supplier.id, Supplier.business_name, Supplier.city, Supplier.province)
    rows = session.execute(names.where(Supplier.id.in_(supplier_ids))).all()
    return {supplier_id: words_of_shop(name, city, province) for supplier_id, name, city, province in rows}


def products_of_other_words(
    session: Session, index: TextIndex, products: Mapping[int, Row[Any]], known: Sequence[int]
) -> set[int]:
    """Products whose entries have other words than their shop."""
    shops = shop_words(session, {product.supplier_id for product in products.values()})
    indexed = index.shop_tokens(session, known)
    return {
        one
        for one, tokens in indexed.items()
        if one in products
        and {token for token in tokens if not is_cell_token(token)}
        != set(map(shop_token, shops[products[one].supplier_id]))
    }


def words_of_shop(name: str, city: str, province: str | None) -> list[str]:
    words = [word for text in (name, city, province) for word in tokenize(text) if word not in FUNCTION_WORDS]
    return list(dict.fromkeys(words))[:_MAX_WORDS_OF_SHOP]


def supplier_tokens(tokens: str, shop_words: Iterable[str]) -> str:
    """`tokens` end with the cell."""
    return " ".join([tokens, *map(shop_token, shop_words)])
