"""What a text says beside words to look for becomes filters: prices and a place."""

from dataclasses import replace

from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.reading.prices import said_prices
from tis.marketplace.search.city_filter import city_test
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.tables import MAX_RUPIAH

_MAX_WORDS = 25


def with_said_filters(query: ProductQuery) -> ProductQuery:
    """A filter that the query has already goes before what its text says."""
    return _with_said_place(_with_said_prices(query))


def _with_said_prices(query: ProductQuery) -> ProductQuery:
    if query.text is None or (query.min_price, query.max_price) != (None, None):
        return query
    said = said_prices(query.text)
    if said.least is None and said.most is None:
        return query
    least, most = (None if one is None else min(one, MAX_RUPIAH) for one in (said.least, said.most))
    return replace(query, text=said.text if said.text.strip() else None, min_price=least, max_price=most)


def _with_said_place(query: ProductQuery) -> ProductQuery:
    """Not if the text is nothing but a name: it may be that of a shop, or a hammer's (`palu`)."""
    if query.text is None or query.any_city or query.provinces:
        return query
    words = query.text.split()
    if len(words) > _MAX_WORDS:  # a pasted text names places for other reasons
        return query
    named = [place for place in gazetteer().named_in(words) if place.is_certain]
    if len(named) != 1:
        return query
    [place] = named
    rest = [*words[: place.start], *words[place.end :]]
    if not any(map(str.isalnum, "".join(rest))):
        return query
    said, own = " ".join(words[place.start : place.end]), place.places[0].name
    # A slip, or a city with its province: the filter knows the city alone.
    city = said if city_test(said) else own if len(place.places) == 1 else None
    return query if city is None else replace(query, text=" ".join(rest), city=city)
