"""What is shown when few products match all words: behind them those whose matching words weigh most.

A word that few products have says more than one that many have: its weight is the logarithm of that. The products of
the rarest words are read with the words that each has; each set of words that occurs is a stage of the relaxed query.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.index_tokens import category_token, head_token
from tis.marketplace.search.spelling import document_counts
from tis.marketplace.search.sql import MAX_PRODUCT_ID, id_list, run, run_once
from tis.marketplace.search.supplier_index import shop_counts
from tis.marketplace.search.text_query import MAX_STAGES, TermGroup, TextMatch, TextQuery

_LEAST_SHARE = 0.3  # of the weight of all words, that a product must match
_ENOUGH = 10  # so many products are shown, whatever they weigh
_WEIGHT_OF_NOUNS = 2
_WEIGHT_OF_KIND = 0.75  # of the weight of all words
_WEIGHT_OF_LABELS = 0.3
_WEIGHT_OF_SHOPS = 0.5  # words that no product has: goods of other shops come before other goods of the shop
_LEAST_SHARE_OF_HEADS = 0.3  # of the products with a word, whose name it must begin
_MAX_READ_PER_GROUP = 2000  # a more common word finds no products, and is only looked for in those of the others
_MAX_READ = 6000
_MAX_COMPARED = 500  # products in which common words are looked for

FindIds = Callable[[TextMatch, int], Sequence[int]]  # the ids of products that match, at most the number given


def relaxed_query(
    session: Session, index: TextIndex, query: TextQuery, find_ids: FindIds, *, are_all_matched: bool
) -> TextQuery | None:
    """None if no product matches any word. `are_all_matched`: some products match all words."""
    [(num_products,)] = run_once(session, MAX_PRODUCT_ID)
    counts = _counts(session, query.groups)
    if any(not count and _is_phrase(group) for group, count in counts.items()):
        # No shop has a "laptop bag": then its words are looked for.
        words = (
            TextQuery.of_words(*group.terms[0].words).groups if not count and _is_phrase(group) else [group]
            for group, count in counts.items()
        )
        counts = _counts(session, list(dict.fromkeys(group for groups in words for group in groups)))
    if not are_all_matched:
        # "kursi kerja dari rumah": a word that shops and goods have means goods.
        counts = {replace(group, shop_tokens=()) if count else group: count for group, count in counts.items()}
    of_shops = _counts_of_shops(session, [group for group in counts if not counts[group]], num_products or 1)
    counts |= of_shops
    groups = [group for group in counts if counts[group]]
    if not groups:
        return None
    heads = _head_counts(session, groups)
    weights = [
        _rarity(counts[group], heads[group], num_products or 1)
        * (_WEIGHT_OF_LABELS if _is_label(groups, number) else 1)
        * (_WEIGHT_OF_SHOPS if group in of_shops else 1)
        for number, group in enumerate(groups)
    ]
    for number, group in enumerate(groups):
        if group.is_kind:
            weights[number] = round(_WEIGHT_OF_KIND * (sum(weights) - weights[number]))
    found, common = _found_by_rare_words(groups, [counts[group] for group in groups], find_ids)
    if common and found:
        best = sorted(found, key=lambda one: (-_weight(found[one], weights), one))[:_MAX_COMPARED]
        # Reading what these products say is cheaper than a look into the text index for each common word.
        for one, tokens in _tokens(session, index, sorted(best)).items():
            found[one] |= sum(1 << number for number in common if _says(tokens, groups[number]))
    num_with = Counter(found.values())
    least, num_shown, stages = _LEAST_SHARE * sum(weights), 0, list[int]()
    for one in sorted(num_with, key=lambda one: (-_weight(one, weights), one)):
        if len(stages) == MAX_STAGES or (num_shown >= _ENOUGH and _weight(one, weights) < least):
            break
        stages.append(one)
        num_shown += num_with[one]
    return TextQuery(tuple(groups), tuple(stages), query.heads, query.likely_categories) if stages else None


def _found_by_rare_words(
    groups: Sequence[TermGroup], counts: Sequence[int], find_ids: FindIds
) -> tuple[dict[int, int], list[int]]:
    """The rare groups that each product matches, by its id; and the common groups, which are not looked for."""
    found: Counter[int] = Counter()
    num_read, common = 0, list[int]()
    for number in sorted(range(len(groups)), key=lambda one: (counts[one], one)):
        if groups[number].is_kind or (found and (counts[number] > _MAX_READ_PER_GROUP or num_read > _MAX_READ)):
            common.append(number)
            continue
        ids = find_ids(TextMatch(TextQuery((groups[number],)), "text"), _MAX_READ_PER_GROUP)
        if not ids and groups[number].shop_tokens:
            ids = find_ids(TextMatch(TextQuery((groups[number],))), _MAX_READ_PER_GROUP)
        num_read += len(ids)
        for one in ids:
            found[one] |= 1 << number
    # More products may have a word by their shop than are read.
    return found, common + [number for number, one in enumerate(groups) if one.shop_tokens and number not in common]


def _tokens(session: Session, index: TextIndex, product_ids: Sequence[int]) -> dict[int, set[str]]:
    tokens = index.indexed_words(session, product_ids)
    for product_id, of_shop in index.shop_tokens(session, product_ids).items():
        tokens[product_id] |= of_shop
    sql = f"SELECT product_id, category_key FROM product_search WHERE product_id IN {id_list(product_ids)}"
    for product_id, category in run(session, sql):
        tokens[product_id].add(category_token(category) or "")
    return tokens


def _says(tokens: set[str], group: TermGroup) -> bool:
    if not tokens.isdisjoint((*group.category_tokens, *group.shop_tokens)):
        return True
    for term in group.terms:
        *whole, last = term.words
        is_last_said = last in tokens or (term.is_prefix and any(token.startswith(last) for token in tokens))
        if is_last_said and tokens.issuperset(whole):
            return True
    return False


def _is_phrase(group: TermGroup) -> bool:
    return not group.is_kind and not group.category_tokens and len(group.terms[0].words) > 1


def _rarity(count: int, num_heads: int, num_products: int) -> int:
    """A noun that names of products begin with says more: who asks for a lamp for a kitchen wants a lamp."""
    is_noun = num_heads >= _LEAST_SHARE_OF_HEADS * count
    return round(100 * math.log1p(num_products / count) * (_WEIGHT_OF_NOUNS if is_noun else 1)) + 1


def _is_label(groups: Sequence[TermGroup], number: int) -> bool:
    """In `laptop ram 16gb ssd 512gb`, the measures say what `ram` and `ssd` name."""
    if not 0 < number < len(groups) - 1 or groups[number + 1].is_kind or groups[number].is_kind:
        return False
    own, following = (group.terms[0].words[0] for group in groups[number : number + 2])
    return following[0].isdecimal() and not own[0].isdecimal()


def _weight(groups: int, weights: Sequence[float]) -> float:
    return sum(weight for number, weight in enumerate(weights) if groups >> number & 1)


def _counts(session: Session, groups: Sequence[TermGroup]) -> dict[TermGroup, int]:
    """How many products match each group, or a number near it; 0 only if none does."""
    counts = document_counts(session, [word for group in groups for term in group.terms for word in term.words])

    def count(group: TermGroup) -> int:
        if group.is_kind:
            return 1
        most = max(min(counts.get(word, 0) for word in term.words) for term in group.terms)
        return most or int(bool(group.category_tokens) or (group.terms[0].is_prefix and not group.shop_tokens))

    return {group: count(group) for group in groups}


def _counts_of_shops(session: Session, groups: Sequence[TermGroup], num_products: int) -> dict[TermGroup, int]:
    """How many products the shops of each group have, if all shops have as many."""
    words = {group: group.terms[0].words[0] for group in groups if group.shop_tokens}
    if not words:
        return {}
    shops = shop_counts(session, list(words.values()))
    [(num_shops,)] = run(session, "SELECT max(id) FROM suppliers")
    return {
        group: max(1, num_products * shops[word] // (num_shops or 1)) for group, word in words.items() if word in shops
    }


def _head_counts(session: Session, groups: Sequence[TermGroup]) -> dict[TermGroup, int]:
    tokens = {group: [head_token(term.words[0]) for term in group.terms] for group in groups}
    counts = document_counts(session, [token for own in tokens.values() for token in own])
    return {group: sum(counts.get(token, 0) for token in own) for group, own in tokens.items()}
