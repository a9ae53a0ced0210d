"""What it costs to look up a misspelt word in a catalogue of 100,000 different words."""

import itertools
import random
import statistics
import time

from tis.database.database import Database
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.search.spelling import correct_spelling
from tis.marketplace.search.sql import run_many
from tis.marketplace.seed import commands as seed_commands

_CONSONANTS = "k l m n p r s t b d g h j w y c ng ny pr tr kr st".split()
_VOWELS = "a i u e o ai au an en un ar er is".split()
_NUM_SYLLABLES = [2, 2, 3, 3, 3, 4]


def look_up_typos(url: str, num_words: int = 100_000, num_typos: int = 300) -> str:
    """CPU of this process; that of a PostgreSQL is not in it."""
    market = Market(Database(url), MarketRules(jwt_secret="benchmarks sign nothing, but need a key"))
    seed_commands.bring_up_to_date(market.database)
    chance = random.Random(1)
    syllables = ["".join(pair) for pair in itertools.product(_CONSONANTS, _VOWELS)]
    words = dict.fromkeys(
        "".join(chance.choices(syllables, k=chance.choice(_NUM_SYLLABLES))) for _ in range(num_words * 6 // 5)
    )
    terms = list(words)[:num_words]
    rows = [{"term": term, "count": int(chance.paretovariate(1)) + 1} for term in terms]
    typed = [_with_slip(chance, word) for word in chance.choices(terms, k=num_typos)]
    with market.writing() as session:
        run_many(session, "INSERT INTO lexicon (term, count) VALUES (:term, :count)", rows)
    with market.reading() as session:
        vocabulary = market.search.vocabulary(session)
        costs = list[float]()
        for word in [*typed[:5], *typed]:
            start = time.process_time()
            correct_spelling(session, vocabulary, word)
            costs.append((time.process_time() - start) * 1000)
    market.close()
    p50, p95 = statistics.median(costs[5:]), statistics.quantiles(costs[5:], n=20)[-1]
    return f"\n{market.database.dialect}, {len(terms):,} words: a typo costs {p50:.2f} ms of CPU, p95 {p95:.2f} ms"


def _with_slip(chance: random.Random, word: str) -> str:
    place = chance.randrange(1, len(word) - 1)
    before, here, after = word[:place], word[place], word[place + 1 :]
    return chance.choice(
        (before + after, before + chance.choice("aeioun") + here + after, before + after[0] + here + after[1:])
    )
