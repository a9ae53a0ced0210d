"""A product as it is indexed: its words, the tokens beside them, and its attributes."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tis.marketplace.kit.fields import MAX_ATTRIBUTES
from tis.marketplace.reading.attribute_values import AttributeValue, attribute_key, attribute_value
from tis.marketplace.reading.measures import joined_spans
from tis.marketplace.reading.tokens import MAX_WORD_CHARS, folded, joined_word, tokenize
from tis.marketplace.search.index_tokens import category_token, head_token, is_cell_token, is_head_token

_MAX_ATTRIBUTE_CHARS = 200


@dataclass(frozen=True)
class IndexEntry:
    """Words are separated by one space."""

    product_id: int
    name: str
    labels: str  # brand, tags, category
    description: str
    tokens: str  # those of the supplier are the last ones, and its grid cell is the first of these
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    @property
    def cell(self) -> str:
        return next(token for token in self.tokens.split() if is_cell_token(token))

    @property
    def words(self) -> set[str]:
        return counted_words(self.name, self.labels, self.description, self.tokens)

    @property
    def rows(self) -> dict[str, Any]:
        """The columns of `product_words`."""
        texts = {"name": self.name, "labels": self.labels, "description": self.description, "tokens": self.tokens}
        return {"product_id": self.product_id, **texts}

    @cached_property
    def counted_attributes(self) -> str | None:
        """What facets read of all candidates. Neither keys nor labels contain a tab or the end of a line."""
        values = self.attributes.items()
        return "\n".join(f"{key}\t{value.number!r}\t{value.key}\t{value.label}" for key, value in values) or None

    @cached_property
    def digest(self) -> int:
        """Without the tokens of the supplier, which a change of the supplier replaces in the index."""
        texts = [self.name, self.labels, self.description, self.tokens.partition(self.cell)[0]]
        texts += [self.counted_attributes] if self.counted_attributes else []
        return int.from_bytes(hashlib.blake2b("\n".join(texts).encode(), digest_size=8).digest(), signed=True)


def counted_words(name: str, labels: str, description: str, tokens: str) -> set[str]:
    """All that the lexicon counts: also the token of the name's first word."""
    return {*name.split(), *labels.split(), *description.split(), *filter(is_head_token, tokens.split())}


def index_entry(product: Any, cell: str) -> IndexEntry:
    """Without the words of its shop."""
    head = head_word(product.name, product.brand)
    tokens = (category_token(product.category_key), head and head_token(head), cell)
    labels = (product.brand, product.tags, product.category)
    return IndexEntry(
        product_id=product.id,
        name=indexed_words(product.name),
        labels=" ".join([*map(indexed_words, filter(None, labels)), *_sku_words(product.sku)]),
        description=" ".join([indexed_words(product.description), *attribute_words(product.attributes)]),
        tokens=" ".join(token for token in tokens if token),
        attributes=_attributes(product.attributes),
    )


def indexed_words(text: str | None) -> str:
    """The words of a text, and behind them its other spellings: what a query may say of it."""
    words = tokenize(text)
    if not text or not any(map(_may_be_joined, words)) and "-" not in text:
        return " ".join(words)
    others = dict.fromkeys(word[:MAX_WORD_CHARS] for _, _, word in joined_spans(folded(text)))
    return " ".join([*words, *(word for word in others if word not in words)])


def _may_be_joined(word: str) -> bool:
    return any(map(str.isdecimal, word))


def head_word(name: str, brand: str | None) -> str | None:
    brands = tokenize(brand)
    return next((word for word in tokenize(name) if word not in brands and not word.isdecimal()), None)


def _sku_words(sku: str | None) -> list[str]:
    """Its parts, and all of them as one word: sellers and buyers put points and hyphens where they like."""
    parts = tokenize(sku)
    return [*parts, joined_word(parts)] if len(parts) > 1 else parts


def attribute_words(attributes: Mapping[str, Any] | None) -> Iterator[str]:
    """`{"ram_gb": 16, "gpu": "RTX 4050"}` is `ram 16gb gpu rtx 4050`."""
    for name, value in itertools.islice((attributes or {}).items(), MAX_ATTRIBUTES):
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            label, _, unit = name.rpartition("_")
            said = repr(value).removesuffix(".0") if isinstance(value, float) else str(value)[:_MAX_ATTRIBUTE_CHARS]
            measured = f"{said} {unit}" if label and not isinstance(value, str) else said
            yield from filter(None, (indexed_words(label or name), indexed_words(measured)))


def _attributes(attributes: Mapping[str, Any] | None) -> dict[str, AttributeValue]:
    """Of names that count as the same, the first of the alphabet: PostgreSQL keeps no other order."""
    values: dict[str, AttributeValue] = {}
    for name, value in sorted((attributes or {}).items(), key=lambda one: one[0])[:MAX_ATTRIBUTES]:
        key = attribute_key(name)
        if key and key not in values and (read := attribute_value(key, value)):
            values[key] = read
    return dict(sorted(values.items()))
