"""What `exclude_terms` mean to a text index: the words as they are given, without synonyms and corrections."""

from collections.abc import Iterable
from dataclasses import dataclass

from tis.marketplace.reading.tokens import said_words


@dataclass(frozen=True)
class ExcludedPhrase:
    """With `in_order` its words follow each other; else they may stand anywhere."""

    words: tuple[str, ...]
    in_order: bool = True

    @property
    def is_text(self) -> bool:
        return self.in_order and len(self.words) > 1


def excluded_phrases(terms: Iterable[str]) -> tuple[ExcludedPhrase, ...]:
    phrases: dict[ExcludedPhrase, None] = {}
    for term in terms:
        said = said_words(term)
        spellings = [[one.word for one in said]]
        if any(one.parts for one in said):  # `wi-fi` is indexed as wifi, and as two words
            spellings.append([part for one in said for part in one.parts or (one.word,)])
        for words in spellings:
            phrase = tuple(words)
            # Measures are indexed behind the other words: `16 GB` as 16gb.
            in_order = not any(letter.isdigit() for word in phrase for letter in word)
            if phrase:
                phrases[ExcludedPhrase(phrase, in_order)] = None
    return tuple(phrases)
