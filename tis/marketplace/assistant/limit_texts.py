"""What a query asks for in words, what a tried relaxation changes, and follow-ups that a buyer may click."""

from collections.abc import Iterator, Sequence

from tis.marketplace.assistant.answer_templates import TEMPLATES
from tis.marketplace.assistant.clean_text import clean_text
from tis.marketplace.assistant.goods import FoundGoods, TriedRelaxation, Viewer
from tis.marketplace.assistant.wording import condition_text, decimal_text, kilometres_text, rupiah, whole_text
from tis.marketplace.products.delivery import Language
from tis.marketplace.reading.structured_query import StructuredQuery

MAX_SUGGESTIONS = 4
_MAX_NAMES = 3
_MAX_SAID_CHARS = 80


def limits_text(query: StructuredQuery, language: Language) -> str:
    """Begins with a space, or is empty: `di Jakarta di bawah Rp 12.000.000`."""
    return "".join(_limits(query, language))


def _limits(query: StructuredQuery, language: Language) -> Iterator[str]:
    words = TEMPLATES[language]
    text = clean_text(query.text, _MAX_SAID_CHARS)
    kind = clean_text((query.category or "").replace("-", " "), _MAX_SAID_CHARS)
    if kind and kind not in text.casefold():
        yield words["kind"].format(category=kind)
    if text:
        yield words["said"].format(text=text)
    if query.sku:
        yield words["sku"].format(sku=clean_text(query.sku, _MAX_SAID_CHARS))
    if query.exclude_terms:
        yield words["without terms"].format(names=joined_names(query.exclude_terms, language))
    if query.brands:
        yield words["brands"].format(names=joined_names([brand.title() for brand in query.brands], language))
    if query.exclude_brands:
        yield words["without brands"].format(
            names=joined_names([one.title() for one in query.exclude_brands], language)
        )
    if query.condition:
        yield words["in condition"].format(condition=condition_text(query.condition, language))
    places = [*query.cities, *query.provinces]
    if places and query.radius_km is not None and not query.near_user:
        yield words["around"].format(
            km=kilometres_text(query.radius_km, language), names=joined_names(places, language)
        )
    elif places and query.near_cities:
        name = "nearest first" if query.sort in (None, "distance") else "near cities"
        yield words[name].format(names=joined_names(places, language))
    elif places:
        yield words["cities"].format(names=joined_names(places, language))
    if query.radius_km is not None and (query.near_user or not places):
        yield words["near"].format(km=kilometres_text(query.radius_km, language))
    if query.exclude_cities:
        yield words["without cities"].format(names=joined_names(query.exclude_cities, language))
    yield from _prices(query, language)
    if query.min_rating is not None:
        yield words["rated"].format(stars=decimal_text(query.min_rating, language))
    if query.fulfilment:
        yield words[query.fulfilment]
    if query.quantity is not None and query.quantity > 1:
        yield words["quantity"].format(count=whole_text(query.quantity, language))


def _prices(query: StructuredQuery, language: Language) -> Iterator[str]:
    words, least, most = TEMPLATES[language], query.min_price, query.max_price
    if least is not None and most is not None:
        yield words["range"].format(least=rupiah(least), limit=rupiah(most))
    elif most is not None and most % 1000 == 999:  # cheaper than what was shown
        yield words["under"].format(limit=rupiah(most + 1))
    elif most is not None:
        yield words["up to"].format(limit=rupiah(most))
    elif least is not None:
        yield words["from"].format(least=rupiah(least))


def relaxation_text(query: StructuredQuery, tried: TriedRelaxation, language: Language) -> str:
    """What the tried search changes: `Sampai Rp 15.000.000`."""
    words, changed = TEMPLATES[language], tried.query
    if tried.without == "max_price" and changed.max_price is not None:
        return words["price up to"].format(limit=rupiah(changed.max_price))
    if tried.without == "city" and changed.cities and changed.radius_km is not None:
        km = kilometres_text(changed.radius_km, language)
        return words["city up to"].format(km=km, names=joined_names(changed.cities, language))
    if tried.without == "radius_km" and changed.radius_km is not None:
        return words["radius up to"].format(km=kilometres_text(changed.radius_km, language))
    first, *rest = (words[f"without {name}"] for name in tried.without.split(" and "))
    text = clean_text(query.text, _MAX_SAID_CHARS)
    return ", ".join((first, *(one[0].lower() + one[1:] for one in rest))).format(text=text)


def suggestions_of(found: FoundGoods, picks: Sequence[int], query: StructuredQuery, viewer: Viewer) -> list[str]:
    """Two to four sentences that the rules understand as the next turn."""
    language = viewer.language
    offered = [*_relaxing(found, language)][:2] if len(found.cards) < 3 else []
    for sentence in _going_on(found, picks, query, viewer):
        if sentence not in offered:
            offered.append(sentence)
    return offered[:MAX_SUGGESTIONS]


def _relaxing(found: FoundGoods, language: Language) -> Iterator[str]:
    """One for each filter: the smallest change that finds something."""
    seen = set[str]()
    for tried in found.relaxations:
        if tried.without in seen or tried.query.radius_km is not None:
            continue
        seen.add(tried.without)
        if tried.without == "max_price" and tried.query.max_price is not None:
            yield _FOLLOW_UPS[language]["up to"].format(limit=rupiah(tried.query.max_price))
        elif sentence := _RELAXING[language].get(tried.without):
            yield sentence


def _going_on(found: FoundGoods, picks: Sequence[int], query: StructuredQuery, viewer: Viewer) -> Iterator[str]:
    words = _FOLLOW_UPS[viewer.language]
    if not found.cards:
        yield from _EXAMPLES[viewer.language]
        return
    if len(picks) > 1 and query.intent != "compare":
        yield words["compare"]
    if query.sort != "price_asc":
        yield words["cheaper"]
    if query.sort != "distance" and any(card.distance_km is not None for card in found.cards):
        yield words["nearer"]
    if query.intent != "stock":
        yield words["stock"]
    if query.sort != "rating":
        yield words["rating"]


_RELAXING: dict[Language, dict[str, str]] = {
    "id": {
        "max_price": "Tanpa batas harga",
        "city": "Di kota lain",
        "province": "Di kota lain",
        "brand": "Merek apa saja",
    },
    "en": {"max_price": "Any price", "city": "Any city", "province": "Any city", "brand": "Any brand"},
}
_FOLLOW_UPS: dict[Language, dict[str, str]] = {
    "id": {
        "compare": "Bandingkan nomor 1 dan 2",
        "cheaper": "Yang lebih murah",
        "nearer": "Yang lebih dekat",
        "stock": "Nomor 1 masih ada?",
        "rating": "Ratingnya lebih tinggi",
        "up to": "Maksimal {limit}",
    },
    "en": {
        "compare": "Compare number 1 and 2",
        "cheaper": "Cheaper ones",
        "nearer": "Closer ones",
        "stock": "Is number 1 in stock?",
        "rating": "Better rated",
        "up to": "Up to {limit}",
    },
}
_EXAMPLES: dict[Language, tuple[str, ...]] = {
    "id": ("Laptop gaming di Jakarta, budget 12 juta", "HP bekas di bawah 2 juta", "Monitor terdekat dari saya"),
    "en": ("Gaming laptop in Jakarta, budget 12 million", "Used phone under 2 million", "Monitors near me"),
}


def joined_names(names: Sequence[str], language: Language) -> str:
    shown = [clean_text(name, _MAX_SAID_CHARS) for name in names[:_MAX_NAMES]]
    joined = TEMPLATES[language]["or"].join(shown)
    return joined if len(names) <= _MAX_NAMES else f"{joined}, …"
