"""What a query asks for in words, what a tried relaxation changes, and follow-ups that a buyer may click."""

from collections.abc import Iterator, Sequence

from tis.marketplace.assistant.clean_text import clean_text
from tis.marketplace.assistant.goods import FoundGoods, TriedFilter
from tis.marketplace.assistant.wording import (
    condition_text,
    decimal_text,
    kilometres_text,
    rupiah,
    say,
    templates,
    whole_text,
)
from tis.marketplace.products.delivery import Language
from tis.marketplace.reading.measures import units, with_spaced_measures
from tis.marketplace.reading.structured_query import StructuredQuery

MAX_SUGGESTIONS = 4
_MAX_NAMES = 3
_MAX_SAID_CHARS = 80


def limits_text(query: StructuredQuery, language: Language, category_name: str = "") -> str:
    """Begins with a space, or is empty: `di Jakarta di bawah Rp 12.000.000`."""
    return "".join(say(language, name, **values) for name, values in _limits(query, language, category_name))


def _limits(query: StructuredQuery, language: Language, category_name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The templates and what fills them."""
    text = clean_text(with_spaced_measures(query.text), _MAX_SAID_CHARS)
    kind = clean_text(category_name or (query.category or "").replace("-", " "), _MAX_SAID_CHARS)
    if kind and kind not in text.casefold():
        yield "kind", {"category": kind}
    if text:
        yield "said", {"text": text}
    if query.sku:
        yield "sku", {"sku": clean_text(query.sku, _MAX_SAID_CHARS)}
    if query.exclude_terms:
        yield "without terms", {"names": joined_names(query.exclude_terms, language)}
    if query.brands:
        yield "brands", {"names": joined_names([one.title() for one in query.brands], language)}
    if query.exclude_brands:
        yield "without brands", {"names": joined_names([one.title() for one in query.exclude_brands], language)}
    if query.condition:
        yield "in condition", {"condition": condition_text(query.condition, language)}
    if query.on_promotion:
        yield "on promotion", {}
    places = [*query.cities, *query.provinces]
    names = joined_names(places, language)
    kilometres = "" if query.radius_km is None else kilometres_text(query.radius_km, language)
    if places and kilometres and not query.near_user:
        yield "around", {"km": kilometres, "names": names}
    elif places and query.near_cities:
        yield "nearest first" if query.sort in (None, "distance") else "near cities", {"names": names}
    elif places:
        yield "cities", {"names": names}
    if kilometres and (query.near_user or not places):
        yield "near", {"km": kilometres}
    if query.exclude_cities:
        yield "without cities", {"names": joined_names(query.exclude_cities, language)}
    least, most = query.min_price, query.max_price
    if least is not None and most is not None:
        yield "range", {"least": rupiah(least), "limit": rupiah(most)}
    elif most is not None and most % 1000 == 999:  # cheaper than what was shown
        yield "under", {"limit": rupiah(most + 1)}
    elif most is not None:
        yield "up to", {"limit": rupiah(most)}
    elif least is not None:
        yield "from", {"least": rupiah(least)}
    if query.min_rating is not None:
        yield "rated", {"stars": decimal_text(query.min_rating, language)}
    for limit in query.measures:
        number = decimal_text(limit.least if limit.least is not None else limit.most or 0, language)
        unit = units()[limit.unit].label if limit.unit in units() else ""
        name = "measured from" if limit.least is not None else "measured to"
        yield name, {"name": say(language, f"fact {limit.attribute}"), "value": f"{number} {unit}".strip()}
    if query.fulfilment:
        yield query.fulfilment, {}
    if query.quantity is not None and query.quantity > 1:
        yield "quantity", {"count": whole_text(query.quantity, language)}


def relaxation_text(query: StructuredQuery, tried: TriedFilter, language: Language) -> str:
    """What the tried search changes: `Sampai Rp 15.000.000`."""
    changed = tried.query
    if tried.without == "max_price" and changed.max_price is not None:
        return say(language, "price up to", limit=rupiah(changed.max_price))
    if tried.without == "city" and changed.cities and changed.radius_km is not None:
        km = kilometres_text(changed.radius_km, language)
        return say(language, "city up to", km=km, names=joined_names(changed.cities, language))
    if tried.without == "radius_km" and changed.radius_km is not None:
        return say(language, "radius up to", km=kilometres_text(changed.radius_km, language))
    text = clean_text(with_spaced_measures(query.text), _MAX_SAID_CHARS)
    first, *rest = (say(language, f"without {name}", text=text) for name in tried.without.split(" and "))
    return ", ".join((first, *(one[0].lower() + one[1:] for one in rest)))


def suggestions_of(
    found: FoundGoods, cited_ids: Sequence[int], query: StructuredQuery, language: Language
) -> list[str]:
    """Two to four sentences that the rules understand as the next turn."""
    offered = list(dict.fromkeys(_relaxing(found, language)))[:2] if len(found.cards) < 3 else []
    going_on = (say(language, name) for name in _going_on(found, cited_ids, query))
    return list(dict.fromkeys((*offered, *going_on)))[:MAX_SUGGESTIONS]


def _relaxing(found: FoundGoods, language: Language) -> Iterator[str]:
    """One for each filter: the smallest change that finds something."""
    seen = set[str]()
    for tried in found.relaxations:
        if tried.without in seen or tried.query.radius_km is not None:
            continue
        seen.add(tried.without)
        name = f"relax {tried.without}"
        if tried.without == "max_price" and tried.query.max_price is not None:
            yield say(language, "follow-up up to", limit=rupiah(tried.query.max_price))
        elif name in templates()[language]:
            yield say(language, name)


def _going_on(found: FoundGoods, cited_ids: Sequence[int], query: StructuredQuery) -> Iterator[str]:
    """Names of templates."""
    if not found.cards:
        yield from ("example 1", "example 2", "example 3")
        return
    if len(cited_ids) > 1 and query.intent != "compare":
        yield "follow-up compare"
    if query.sort != "price_asc":
        yield "follow-up cheaper"
    if query.sort != "distance" and any(card.distance_km is not None for card in found.cards):
        yield "follow-up nearer"
    if query.intent != "stock":
        yield "follow-up stock"
    if query.sort != "rating":
        yield "follow-up rating"


def joined_names(names: Sequence[str], language: Language) -> str:
    shown = [clean_text(name, _MAX_SAID_CHARS) for name in names[:_MAX_NAMES]]
    joined = say(language, "or").join(shown)
    return joined if len(names) <= _MAX_NAMES else f"{joined}, …"
