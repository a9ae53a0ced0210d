"""What a text says beside words: measures, prices, places, words of politeness, and other spellings."""

import pytest

from tests.marketplace.search.conftest import BANDUNG, Catalogue
from tis.marketplace.reading.tokens import said_words
from tis.marketplace.search.index_entry import indexed_words
from tis.marketplace.search.query import ProductQuery


def read(catalogue: Catalogue, text: str) -> ProductQuery:
    with catalogue.market.reading() as session:
        return catalogue.search.read(session, ProductQuery(text=text)).query


@pytest.mark.parametrize(
    ("sellers", "buyers"),
    [
        ("RAM 16 GB", "ram 16gb"),
        ("RAM 16GB", "ram 16 gb"),
        ('Monitor 24"', "monitor 24 inci"),
        ("Monitor 15,6 inch", "monitor 15.6 inch"),
        ("Minyak 1,5 L", "minyak 1.5 liter"),
        ("Baterai 5.000 mAh", "baterai 5000mah"),
        ("Kipas 1/2 PK", "kipas 1/2pk"),
        ("Gula 1 kg", "gula 1 kilogram"),
    ],
)
def test_a_number_and_its_unit_are_one_word_in_every_spelling(catalogue: Catalogue, sellers: str, buyers: str) -> None:
    catalogue.put(sellers)
    catalogue.put(sellers.split()[0])
    found = catalogue.find(buyers)
    assert found.hits[0].product.name == sellers and found.corrected is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Kartu RTX4060", "rtx 4060"),
        ("Kartu RTX 4060", "rtx4060"),
        ("Router Wi-Fi", "wifi"),
        ("Router wifi", "wi-fi"),
        ("Mousepad", "mouse pad"),
        ("Sepatu lari", "sepatunya"),
        ("Buku tulis", "buku2"),
        ("Buku tulis", "buku-buku"),
        ("Laptop tipis", "laptops"),
    ],
)
def test_words_are_found_in_other_spellings(catalogue: Catalogue, name: str, text: str) -> None:
    catalogue.put(name)
    assert catalogue.names(text) == [name]


def test_a_unit_is_not_the_beginning_of_a_model(catalogue: Catalogue) -> None:
    catalogue.put("Kartu GB203 16GB")
    catalogue.put("Kartu GB203")
    assert catalogue.names("kartu 16gb")[0] == "Kartu GB203 16GB"
    assert catalogue.names("gb") == []


def test_a_sku_is_found_however_it_is_written(catalogue: Catalogue) -> None:
    catalogue.put("Rak besi", sku="RAK.B-1203")
    catalogue.put("Rak kayu", sku="RAK.B-1204")
    for text in ("RAK.B-1203", "rakb1203", "rak-b-1203", "1203"):
        assert catalogue.names(text)[0] == "Rak besi", text


def test_attributes_are_found(catalogue: Catalogue) -> None:
    catalogue.put("Komputer A", attributes={"ram_gb": 32, "gpu": "RTX 4050"})
    catalogue.put("Komputer B", attributes={"ram_gb": 8})
    assert catalogue.names("komputer 32 gb")[0] == catalogue.names("komputer rtx4050")[0] == "Komputer A"


def test_politeness_and_praise_are_not_required(catalogue: Catalogue) -> None:
    catalogue.put("Kipas meja")
    found = catalogue.find("min ada jual kipas meja yang murah ga ya?")
    assert [hit.product.name for hit in found.hits] == ["Kipas meja"] and not found.relaxed


def test_a_product_of_the_rarer_words_comes_first(catalogue: Catalogue) -> None:
    for number in range(8):
        catalogue.put(f"Tas hitam {number}")
    catalogue.put("Ransel Eiger")
    assert catalogue.names("eiger ransel hitam zzyzx")[0] == "Ransel Eiger"


def test_what_a_name_begins_with_is_what_it_is(catalogue: Catalogue) -> None:
    catalogue.put("Gelas untuk kopi", rating_rank=5.0)
    catalogue.put("Kapal Api Kopi bubuk", brand="Kapal Api")
    assert catalogue.names("kopi") == ["Kapal Api Kopi bubuk", "Gelas untuk kopi"]


def test_one_of_the_tools_is_not_all_of_them(catalogue: Catalogue) -> None:
    catalogue.put("Obeng", category="tools")
    catalogue.put("Palu besi", category="tools")
    assert catalogue.names("palu") == ["Palu besi"]
    assert sorted(catalogue.names("perkakas")) == ["Obeng", "Palu besi"]


def test_a_brand_beside_a_noun_is_no_noun(catalogue: Catalogue) -> None:
    catalogue.put("Laptop tipis", brand="HP", category="laptop")
    catalogue.put("Galaxy", category="smartphone")
    assert catalogue.names("hp") == ["Galaxy", "Laptop tipis"]
    assert catalogue.names("laptop hp")[0] == "Laptop tipis"


def test_goods_of_either_kind_are_found(catalogue: Catalogue) -> None:
    catalogue.put("Laptop tipis", brand="HP", category="laptop")
    catalogue.put("Galaxy", category="smartphone")
    catalogue.put("Kursi", category="furniture")
    assert (
        sorted(catalogue.names("laptop atau hp"))
        == sorted(catalogue.names("hp atau laptop"))
        == ["Galaxy", "Laptop tipis"]
    )


def test_the_said_word_comes_before_its_synonyms(catalogue: Catalogue) -> None:
    catalogue.put("Botol minum", rating_rank=5.0)
    catalogue.put("Tumbler baja")
    assert catalogue.names("tumbler") == ["Tumbler baja", "Botol minum"]


def test_a_price_in_the_text_is_a_filter(catalogue: Catalogue) -> None:
    catalogue.put("Kipas kecil", price=150_000)
    catalogue.put("Kipas besar", price=900_000)
    assert catalogue.names("kipas di bawah 200 ribu") == ["Kipas kecil"]
    assert catalogue.names("kipas di atas 500rb") == ["Kipas besar"]
    assert len(catalogue.names("kipas di bawah 200 ribu", max_price=1_000_000)) == 2, "the filter of the query counts"


def test_a_place_in_the_text_is_a_filter(catalogue: Catalogue) -> None:
    catalogue.put("Kopi bubuk")
    catalogue.put("Kopi biji", shop=catalogue.shop("Bandung", BANDUNG))
    assert catalogue.names("kopi di bandung") == catalogue.names("kopi bdg") == ["Kopi biji"]


@pytest.mark.parametrize(
    ("text", "least", "most", "rest"),
    [
        ("hp di bawah 2 juta", None, 2_000_000, "hp"),
        ("laptop 8-10jt", 8_000_000, 10_000_000, "laptop"),
        ("sepatu sekitar 500 ribu", 400_000, 600_000, "sepatu"),
        ("laptop 10 jutaan", 10_000_000, 10_999_999, "laptop"),
        ("baju 200 ribuan", 200_000, 299_999, "baju"),
        ("hp 2jt5", None, 2_500_000, "hp"),
        ("tas goban", None, 50_000, "tas"),
        ("mouse seratus lima puluh ribu", None, 150_000, "mouse"),
        ("hp lima sampai delapan juta", 5_000_000, 8_000_000, "hp"),
        ("laptop 5 juta ke atas", 5_000_000, None, "laptop"),
        ("laptop 500 dollar", None, None, "laptop 500 dollar"),
        ("under Rp 1.500.000 headset", None, 1_500_000, "headset"),
        ("meja max 750000", None, 750_000, "meja"),
        ("kipas mulai dari 300rb", 300_000, None, "kipas"),
        ("laptop 1.000.000 - 2 juta", 1_000_000, 2_000_000, "laptop"),
        ("laptop 500.000 sampai 2 juta", 500_000, 2_000_000, "laptop"),
        ("monitor ga lebih dari 2 jt", None, 2_000_000, "monitor"),
        ("hp maksimal dua setengah juta", None, 2_500_000, "hp"),
        ("sepatu tujuh ratus lima puluh ribu", None, 750_000, "sepatu"),
        ("cream under two hundred thousand", None, 200_000, "cream"),
        ("printer sejuta", None, 1_000_000, "printer"),
        ("meja dua laci", None, None, "meja dua laci"),
        ("tv 4k", None, None, "tv 4k"),
        ("iphone 15 128gb", None, None, "iphone 15 128gb"),
        ("beras 5 kg", None, None, "beras 5 kg"),
    ],
)
def test_prices_as_buyers_write_them(
    catalogue: Catalogue, text: str, least: int | None, most: int | None, rest: str
) -> None:
    said = read(catalogue, text)
    assert (said.min_price, said.max_price, said.text) == (least, most, rest)


def test_a_misspelt_place_and_one_with_its_province_are_filters(catalogue: Catalogue) -> None:
    catalogue.put("Kopi bubuk")
    catalogue.put("Kopi biji", shop=catalogue.shop("Bandung", BANDUNG))
    for text in ("kopi di bandng", "kopi bandung jawa barat"):
        assert catalogue.names(text) == ["Kopi biji"], text


def test_attributes_of_any_size_are_indexed(catalogue: Catalogue) -> None:
    catalogue.put("Lampu", attributes={"umur_jam": 10**400, "daya_w": 9.5, "sinar_lumen": 1_000_000})
    assert catalogue.names("lampu 9,5 watt") == catalogue.names("lampu 1000000 lumen") == ["Lampu"]


def test_the_cheapest_are_those_that_were_asked_for(catalogue: Catalogue) -> None:
    catalogue.put("Helm baja", price=900_000)
    catalogue.put("Ember baja", price=10_000)
    assert catalogue.names("helm baja") == ["Helm baja", "Ember baja"]
    assert catalogue.names("helm baja", sort="price_asc") == ["Helm baja"]


def test_a_short_page_is_no_reason_to_drop_words(catalogue: Catalogue) -> None:
    for number in range(6):
        catalogue.put(f"Laptop gaming {number}")
    assert not catalogue.find("laptop gaming", limit=2).relaxed


def test_text_of_any_letters_has_words() -> None:
    assert indexed_words("१२ gb ﷺ ½ kg") and said_words("१२ gb ﷺ ½ kg")
    assert indexed_words("-") == "" and said_words("- ... /") == []
