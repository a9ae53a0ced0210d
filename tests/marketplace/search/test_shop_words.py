"""Products are found by the words of their shop's name, city and province, behind all that say the words themselves."""

from typing import Any

import pytest

from tests.marketplace.search.conftest import BANDUNG, Catalogue, lock_supplier
from tests.marketplace.search.test_index import assert_index_agrees
from tis.errors import BadRequest
from tis.marketplace.columns import now
from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.principal import Principal
from tis.marketplace.search.cursor import ListPosition, decode_cursor, encode_cursor
from tis.marketplace.search.query import PageRequest, ProductQuery
from tis.marketplace.search.supplier_index import index_supplier_words
from tis.marketplace.search.text_query import Term, TermGroup, TextQuery, UnderstoodText
from tis.marketplace.suppliers.deletion import erase_supplier
from tis.marketplace.tables import Supplier


def named_shop(catalogue: Catalogue, name: str, city: str = "Jakarta", **values: Any) -> int:
    shop = catalogue.shop(city, business_name=name, **values)
    with catalogue.market.writing() as session:
        index_supplier_words(session, [shop])
    return shop


def rename(catalogue: Catalogue, shop: int, **values: Any) -> None:
    """As the service does it."""
    with catalogue.market.writing() as session:
        row = lock_supplier(session, shop)
        for name, value in values.items():
            setattr(row, name, value)
        catalogue.search.refresh_supplier(session, shop)
        index_supplier_words(session, [shop])


def test_goods_of_a_shop_follow_those_that_say_its_name_themselves(catalogue: Catalogue) -> None:
    sinar = named_shop(catalogue, "Sinar Laptop Surabaya", "Surabaya")
    catalogue.put("Mouse Logitech", category="mouse", shop=sinar)
    catalogue.put("Tas untuk Laptop Lenovo", category="tas", shop=sinar, rating_rank=5)
    catalogue.put("Laptop Lenovo", category="laptop", shop=sinar, rating_rank=4)
    other = named_shop(catalogue, "Toko Maju", "Surabaya")
    catalogue.put("Laptop Asus", category="laptop", description="bonus lampu sinar", shop=other)
    catalogue.put("Laptop Dell", category="laptop", shop=other)
    for text in ("laptop sinar", "laptop sinar surabaya", "laptop dari toko Sinar di Surabaya"):
        assert catalogue.names(text) == ["Laptop Asus", "Laptop Lenovo", "Tas untuk Laptop Lenovo", "Laptop Dell"]


def test_what_is_wanted_comes_before_other_goods_of_the_shop(catalogue: Catalogue) -> None:
    shop = named_shop(catalogue, "Barokah Sejahtera")
    catalogue.put("Laptop Lenovo", category="laptop", shop=shop)
    catalogue.put("Gelas kaca", category="dapur", shop=shop)
    catalogue.put("Laptop Dell", category="laptop", shop=named_shop(catalogue, "Toko Maju"))
    assert catalogue.names("laptop toko barokah") == ["Laptop Lenovo", "Laptop Dell", "Gelas kaca"]
    assert catalogue.names("laptop barokah sejahtera")[0] == "Laptop Lenovo"


def test_a_word_for_goods_does_not_mean_shops(catalogue: Catalogue) -> None:
    jaya = named_shop(catalogue, "Toko Laptop Jaya 5 kg Murah")
    catalogue.put("Mouse Logitech", category="mouse", shop=jaya)
    catalogue.put("Laptop Asus", category="laptop", shop=named_shop(catalogue, "Sentosa"))
    assert catalogue.names("laptop") == catalogue.names("laptop murah") == ["Laptop Asus"]
    assert catalogue.names("toko") == catalogue.names("5 kg") == []


def test_a_single_word_means_the_shop_only_if_no_goods_have_it(catalogue: Catalogue) -> None:
    shop = named_shop(catalogue, "Toko Barokah")
    catalogue.put("Beras 5 kg", shop=shop)
    found = catalogue.find("barokah")
    assert [hit.product.name for hit in found.hits] == ["Beras 5 kg"]
    assert (found.corrected, found.relaxed, found.total) == (None, False, 1)
    catalogue.put("Kurma Barokah", shop=named_shop(catalogue, "Toko Lain"))
    assert catalogue.names("barokah") == ["Kurma Barokah"]
    assert catalogue.names("beras toko barokah")[0] == "Beras 5 kg"


def test_the_city_and_province_of_a_shop_are_words_too(catalogue: Catalogue) -> None:
    aceh = named_shop(catalogue, "Kopi Kita", "Takengon", province="Aceh")
    catalogue.put("Kopi arabika", shop=aceh)
    catalogue.put("Kopi robusta", shop=named_shop(catalogue, "Maju"))
    for text in ("kopi takengon", "kopi arabika aceh"):
        assert catalogue.names(text)[0] == "Kopi arabika"


def test_the_word_of_a_shop_is_no_misspelt_word_of_goods(catalogue: Catalogue) -> None:
    for number in range(6):
        catalogue.put(f"Lampu sinar {number}", shop=named_shop(catalogue, f"Toko {number}"))
    catalogue.put("Lampu tidur", shop=named_shop(catalogue, "Sinyar"))
    found = catalogue.find("lampu sinyar")
    assert found.corrected is None and found.hits[0].product.name == "Lampu tidur"
    assert catalogue.find("lampu sinnar").corrected == "lampu sinar"


def test_the_words_follow_a_shop_that_is_renamed_or_moves(catalogue: Catalogue) -> None:
    shop = named_shop(catalogue, "Sinar Abadi")
    catalogue.put("Gembor", shop=shop)
    catalogue.put("Ember", shop=shop)
    rename(catalogue, shop, business_name="Gemilang")
    assert catalogue.names("gembor gemilang") == ["Gembor", "Ember"] and catalogue.names("sinar") == []
    catalogue.change(catalogue.find("ember").hits[0].product.id, name="Ember besar")
    assert catalogue.names("gemilang") == ["Ember besar", "Gembor"]
    latitude, longitude = BANDUNG
    rename(catalogue, shop, city="Lembang", city_key="lembang", latitude=latitude, longitude=longitude)
    assert len(catalogue.names("gemilang")) == len(catalogue.names("lembang")) == 2
    rename(catalogue, shop, business_name="Deleted supplier", status="suspended")
    assert catalogue.names("gemilang") == []
    assert_index_agrees(catalogue)


def test_pages_totals_and_facets_include_goods_of_the_shop(catalogue: Catalogue) -> None:
    shop, other = named_shop(catalogue, "Sinar Jaya"), named_shop(catalogue, "Toko Lain")
    for number in range(6):
        catalogue.put(f"Gelas {number}", shop=shop, price=10 - number)
        catalogue.put(f"Gelas sinar {number}", shop=other, price=100)
    first = catalogue.find("gelas sinar", limit=4)
    pages, following = [first], first.next_cursor
    with catalogue.market.reading() as session:
        while following:
            page = PageRequest(4, cursor=following)
            pages.append(catalogue.search.find(session, ProductQuery("gelas sinar"), page))
            following = pages[-1].next_cursor
        facets = catalogue.search.facets(session, ProductQuery("gelas sinar"), ["price"]).facets["price"]
    names = [hit.product.name for page in pages for hit in page.hits]
    assert len(names) == len(set(names)) == first.total == sum(one.count for one in facets) == 12
    assert all("sinar" in name for name in names[:6]) and not first.relaxed
    assert catalogue.names("gelas sinar", sort="price_asc")[0] == "Gelas 5"


def test_a_rebuild_repairs_the_words_of_a_shop(catalogue: Catalogue) -> None:
    shop = named_shop(catalogue, "Sinar Abadi")
    catalogue.put("Gembor", shop=shop)
    with catalogue.market.writing() as session:
        session.get_one(Supplier, shop).business_name = "Gemilang"
        catalogue.search.rebuild(session)
    assert_index_agrees(catalogue)


@pytest.mark.parametrize("token", ["¶·a b", "¶x", "x", "¶·", '¶·"', "§·laptop"])
def test_a_cursor_with_a_forged_token_of_a_shop_is_rejected(token: str) -> None:
    key, query = CursorKey(), ProductQuery("teko")
    group = TermGroup((Term(("teko",)),), shop_tokens=(token,))
    forged = encode_cursor(ListPosition(UnderstoodText(TextQuery((group,))), 7), query, key)
    with pytest.raises(BadRequest):
        decode_cursor(forged, query, key)


def test_a_shop_that_was_closed_and_is_then_deleted_leaves_no_words(catalogue: Catalogue) -> None:
    shop = named_shop(catalogue, "Sinar Abadi")
    product = catalogue.put("Gembor", shop=shop)
    rename(catalogue, shop, deleted_at=now())
    with catalogue.market.writing() as session:
        erase_supplier(session, Principal(is_open=True), catalogue.search, lock_supplier(session, shop))
        [tokens] = catalogue.search.index.shop_tokens(session, [product]).values()
    assert "¶·deleted" in tokens and not {"¶·sinar", "¶·abadi"} & tokens
