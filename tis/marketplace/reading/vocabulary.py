"""The words that a catalogue knows: categories with their names, synonyms, brands and places. In memory, for all."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tis.marketplace.places.gazetteer import Gazetteer, gazetteer

Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    """`names` holds the keys by which sellers may name each category, `parents` its parent; both by slug."""

    names: dict[str, set[str]]
    parents: dict[str, str | None]

    # The slugs of each phrase that means all goods of a category: its own names, and synonyms that mean one of these.
    phrases: Mapping[Phrase, tuple[str, ...]]
    synonyms: Mapping[Phrase, tuple[Phrase, ...]]
    broader: frozenset[Phrase] = frozenset()  # whose synonyms are kinds of what they mean
    brands: tuple[str, ...] = ()  # keys of the brands that products have, or had a minute ago, in their order

    @property
    def places(self) -> Gazetteer:
        return gazetteer()

    single_words: tuple[str, ...] = ()  # names of categories and synonyms of one word

    @cached_property
    def category_names(self) -> list[tuple[str, tuple[str, ...]]]:
        """With their slugs, in the order of the alphabet."""
        return sorted((" ".join(phrase), slugs) for phrase, slugs in self.phrases.items())

    @cached_property
    def _slugs_of_name(self) -> dict[str, set[str]]:
        slugs: dict[str, set[str]] = {}
        for slug, names in self.names.items():
            for name in names:
                slugs.setdefault(name, set()).add(slug)
        return slugs

    @cached_property
    def _children(self) -> dict[str, set[str]]:
        children: dict[str, set[str]] = {}
        for slug, parent in self.parents.items():
            if parent is not None:
                children.setdefault(parent, set()).add(slug)
        return children

    def slugs_named(self, key: str) -> set[str]:
        return self._slugs_of_name.get(key, set())

    def keys_below(self, key: str) -> set[str]:
        """The key itself, and all names of the categories that it names and of their descendants."""
        slugs = set[str]()
        found = self.slugs_named(key)
        while found:
            slugs |= found
            found = set[str]().union(*(self._children.get(slug, ()) for slug in found)) - slugs
        return {key}.union(*(self.names[slug] for slug in slugs))
