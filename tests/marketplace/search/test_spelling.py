"""Misspelt words: the closest word of the catalogue, as a plain comparison with all of them finds it."""

import random
from collections.abc import Mapping

import pytest
from rapidfuzz.distance import DamerauLevenshtein
from sqlalchemy import insert

from tests.marketplace.search.conftest import Catalogue
from tis.marketplace.search.spelling import correct_spelling
from tis.marketplace.tables import Lexeme


def closest_of_all(word: str, counts: Mapping[str, int], other_words: tuple[str, ...]) -> str | None:
    max_distance = 1 if len(word) < 8 else 2
    same_first = {term for term in counts if term[0] == word[0] and term.isalpha()}
    others = {term for term in counts if term[0] != word[0]}
    for terms, most in (({*same_first, *other_words}, max_distance), (others, 1)):
        near = [(DamerauLevenshtein.distance(word, term), -counts.get(term, 0), term) for term in terms - {word}]
        if found := [one for one in near if one[0] <= most]:
            return min(found)[2]
    return None


def with_slips(chance: random.Random, word: str) -> str:
    for _ in range(chance.randrange(1, 3)):
        place = chance.randrange(len(word))
        before, here, after = word[:place], word[place], word[place + 1 :]
        others = (before + after, before + chance.choice("xab") + after, f"{before}{here}x{after}")
        word = chance.choice([*others, before + after[:1] + here + after[1:]])
    return word


@pytest.mark.parametrize("seed", range(2))
def test_the_closest_word_is_found_wherever_the_slips_are(catalogue: Catalogue, seed: int) -> None:
    chance = random.Random(seed)

    def some_word(letters: str) -> str:
        return chance.choice("abc") + "".join(chance.choices(letters, k=chance.randrange(2, 11)))

    counts = {some_word("abcdé" if number % 9 else "ab1"): chance.randrange(1, 4) for number in range(200)}
    typed = [some_word("abcd") for _ in range(30)] + [with_slips(chance, term) for term in counts if term.isalpha()]
    words = [word for word in typed if len(word) > 3]
    with catalogue.market.writing() as session:
        session.execute(insert(Lexeme), [{"term": term, "count": count} for term, count in counts.items()])
        vocabulary = catalogue.search.vocabulary(session)
        found = {word: correct_spelling(session, vocabulary, word) for word in words}
    assert found == {word: closest_of_all(word, counts, vocabulary.single_words) for word in words}
    assert len(set(found.values())) > 60


def test_a_word_of_the_vocabulary_is_found_that_no_product_has(catalogue: Catalogue) -> None:
    with catalogue.market.reading() as session:
        vocabulary = catalogue.search.vocabulary(session)
        assert "keyboard" in vocabulary.single_words
        assert correct_spelling(session, vocabulary, "keybaord") == "keyboard"
