"""The words of shops: tokens of their products in the index, and words of a query that name a shop."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from tis.marketplace.reading.measures import UNIT_OF
from tis.marketplace.reading.tokens import is_cell_token, shop_token, tokenize
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.reading.word_lists import FUNCTION_WORDS, PRAISE_WORDS
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.supplier_words import shop_counts
from tis.marketplace.search.text_query import TermGroup, TextQuery
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


_MIN_CHARS = 3


def words_of_shops(session: Session, vocabulary: Vocabulary, words: Sequence[str]) -> Collection[str]:
    """Not the words for goods: who looks for a laptop does not want the mice of "Toko Laptop Jaya"."""
    return shop_counts(session, [word for word in words if _may_name_a_shop(word, vocabulary)])


def _may_name_a_shop(word: str, vocabulary: Vocabulary) -> bool:
    is_common = word in UNIT_OF or word in FUNCTION_WORDS or word in PRAISE_WORDS
    is_of_goods = (word,) in vocabulary.synonyms or (word,) in vocabulary.phrases
    return len(word) >= _MIN_CHARS and not word[0].isdecimal() and not is_common and not is_of_goods


def with_shops(query: TextQuery, words: Collection[str], counts: Mapping[str, int]) -> TextQuery:
    """These words also match the products of shops that have them, behind all others.

    `counts`: a word that stands alone means the products that have it, if there are any.
    """
    if len(query.groups) == 1 and counts.get(query.groups[0].terms[0].words[0]):
        return query
    return replace(query, groups=tuple(_with_shop(group, words) for group in query.groups))


def _with_shop(group: TermGroup, words: Collection[str]) -> TermGroup:
    said = group.terms[0].words
    if len(said) > 1 or said[0] not in words or group.category_tokens:
        return group
    return replace(group, shop_tokens=(shop_token(said[0]),))
