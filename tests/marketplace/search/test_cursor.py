"""Cursors: what they contain, that a client cannot make one, and that another version's is rejected or harmless."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.marketplace.search.conftest import JAKARTA, Catalogue
from tis.errors import BadRequest
from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.geo import Point
from tis.marketplace.search.cursor import ListPosition, decode_cursor, encode_cursor, query_bytes
from tis.marketplace.search.query import PageRequest, ProductQuery, Sort
from tis.marketplace.search.text_query import Term, TermGroup, TextQuery, UnderstoodText

KEY = CursorKey(b"a secret")
SORTS: list[Sort | None] = [None, *get_args(Sort)]
QUERY = ProductQuery(text="teko", sort="relevance")
POSITION = ListPosition(UnderstoodText(TextQuery((TermGroup((Term(("teko",), True),)),))), 7, 3.5, 1, 90)


def test_a_decoded_cursor_equals_the_position_it_was_made_of() -> None:
    assert decode_cursor(encode_cursor(POSITION, QUERY, KEY), QUERY, KEY) == POSITION


@pytest.mark.parametrize("cursor", ["", "x", "💻", "\0", "a" * 9000, "AAAAAAAAAAAAAAAA", "=", "e30", "%00"])
def test_garbage_is_rejected(cursor: str) -> None:
    with pytest.raises(BadRequest):
        decode_cursor(cursor, QUERY, KEY)


def test_a_cursor_of_another_list_is_rejected() -> None:
    cursor = encode_cursor(POSITION, QUERY, KEY)
    for other in (ProductQuery(text="teko"), ProductQuery(text="teko", sort="relevance", max_price=1), ProductQuery()):
        with pytest.raises(BadRequest):
            decode_cursor(cursor, other, KEY)
    for changed in (cursor[:-1], cursor[:-1] + "A", ("B" if cursor[0] == "A" else "A") + cursor[1:]):
        with pytest.raises(BadRequest):
            decode_cursor(changed, QUERY, KEY)


def test_only_the_key_of_the_server_makes_a_cursor() -> None:
    for key in (CursorKey(), CursorKey(b"another secret")):
        with pytest.raises(BadRequest):
            decode_cursor(encode_cursor(POSITION, QUERY, key), QUERY, KEY)
    assert decode_cursor(encode_cursor(POSITION, QUERY, KEY), QUERY, CursorKey(b"a secret")) == POSITION


@pytest.mark.parametrize("word", ['x" OR "y', "lap*", "", "two words", "x'", "UPPER", "a\0b"])
def test_a_cursor_of_another_version_injects_no_query_syntax(word: str) -> None:
    for text_query in (
        TextQuery((TermGroup((Term((word,)),)),)),
        TextQuery((TermGroup((Term(("x",)),), ("§" + word,)),)),
    ):
        forged = encode_cursor(ListPosition(UnderstoodText(text_query), 7), QUERY, KEY)
        if word == "" and text_query.groups[0].category_tokens:
            continue
        with pytest.raises(BadRequest):
            decode_cursor(forged, QUERY, KEY)


@pytest.mark.parametrize(
    "payload",
    [
        b"{}",
        b"null",
        b'{"understood":{},"product_id":NaN}',
        b'{"understood":{},"product_id":7,"value":NaN}',
        b'{"understood":{},"product_id":7,"value":1e999}',
        b'{"understood":{},"product_id":9223372036854775808}',
        b'{"understood":{},"product_id":7,"max_product_id":9223372036854775808}',
        b'{"understood":{},"product_id":7,"tier":-1}',
        b'{"understood":{},"product_id":7,"ring":6}',
        b'{"understood":{"text_query":{"groups":[{"terms":[]}]}},"product_id":7}',
        b'{"understood":{"text_query":{"groups":[{"terms":[{"words":[]}]}]}},"product_id":7}',
        b'{"understood":{"text_query":{"groups":[{"terms":[],"category_tokens":["\xc2\xa7a b"]}]}},"product_id":7}',
        b"\xff",
    ],
)
def test_a_cursor_of_another_version_with_invalid_fields_is_rejected(payload: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_cursor(KEY.encode(payload, query_bytes(QUERY)), QUERY, KEY)


odd: st.SearchStrategy[object] = st.sampled_from(
    [None, 0, 7, -1, 1.5, 2**63, 1e300, "", "teko", "§teko", "x*", '"', [], {}, True]
)


def up_to_two(of: st.SearchStrategy[object]) -> st.SearchStrategy[list[object]]:
    return st.lists(of, max_size=2)


terms = st.fixed_dictionaries(
    {"words": up_to_two(st.sampled_from(["teko", "besar", "x*", ""]))}, optional={"is_prefix": odd}
)
groups = st.fixed_dictionaries(
    {"terms": up_to_two(terms)},
    optional={"category_tokens": up_to_two(st.sampled_from(["§teko", "§rice·cooker", "teko"]))},
)
text_queries = st.fixed_dictionaries({"groups": up_to_two(groups)}, optional={"match_any": odd})
resolved = st.fixed_dictionaries(
    {},
    optional={
        "text_query": text_queries | odd,
        "corrected": odd,
        "categories": up_to_two(odd) | odd,
        "cities": up_to_two(odd) | odd,
    },
)
payloads = st.fixed_dictionaries(
    {"understood": resolved, "product_id": st.sampled_from([0, 7]) | odd},
    optional={"value": odd, "tier": odd, "ring": odd | st.sampled_from([4, 5, 6]), "max_product_id": odd},
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=payloads, sort=st.sampled_from(SORTS), text=st.sampled_from(["teko", None]))
def test_any_cursor_of_another_version_is_answered_or_rejected(
    catalogue: Catalogue, payload: object, sort: Sort | None, text: str | None
) -> None:
    query = ProductQuery(text=text, category="dapur", city="Jakarta", origin=Point(*JAKARTA), sort=sort)
    sorted_query = replace(query, sort="relevance") if text and sort is None else query
    sorted_query = replace(sorted_query, sort=None) if text is None and sort == "relevance" else sorted_query
    raw = json.dumps(payload, ensure_ascii=False).encode()
    cursor = catalogue.search.cursor_key.encode(raw, query_bytes(sorted_query))
    with catalogue.market.reading() as session, suppress(BadRequest):
        catalogue.search.find(session, query, PageRequest(5, cursor=cursor))
