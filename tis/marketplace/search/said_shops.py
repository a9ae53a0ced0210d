"""Words of a query that are also those of shops: their names, cities and provinces."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.reading.common_words import FUNCTION_WORDS, PRAISE_WORDS
from tis.marketplace.reading.measures import UNIT_OF
from tis.marketplace.reading.tokens import shop_token
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.supplier_words import shop_counts
from tis.marketplace.search.text_query import TermGroup, TextQuery

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
