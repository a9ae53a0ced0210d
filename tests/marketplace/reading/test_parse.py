"""What the rules read in a single sentence."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marketplace.reading.conftest import Parse
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, QueryContext
from tis.marketplace.reading.vocabulary import Vocabulary

LAPTOP: dict[str, Any] = {"category": "laptop"}
AROUND_JAKARTA = ["Jakarta", "Bogor", "Depok", "Tangerang", "Tangerang Selatan"]
MILLION = 1_000_000


def test_the_sentence_of_the_readme(parse: Parse) -> None:
    assert parse("Saya butuh laptop gaming di Jakarta, budget 12 juta") == {
        "category": "laptop",
        "text": "gaming",
        "max_price": 12 * MILLION,
        "cities": ["Jakarta"],
    }


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("di bawah 5 juta", None, 5 * MILLION),
        ("ga lebih dari 12,5 juta", None, 12_500_000),
        ("di atas 10 juta", 10 * MILLION, None),
        ("5-8 juta", 5 * MILLION, 8 * MILLION),
        ("lima sampai delapan juta", 5 * MILLION, 8 * MILLION),
        ("2jt5", None, 2_500_000),
        ("2 juta 500 ribu", None, 2_500_000),
        ("setengah juta", None, 500_000),
        ("sejuta", None, MILLION),
        ("goban", None, 50_000),
        ("2 jutaan", 2 * MILLION, 3 * MILLION - 1),
        ("sekitar 500rb", 400_000, 600_000),
        ("harga 5 juta", None, 5 * MILLION),
        ("Rp 15.999.000", None, 15_999_000),
        ("under 10 million", None, 10 * MILLION),
        ("under 5m", None, 5 * MILLION),
        ("150k", None, 150_000),
        ("3 juta ke atas", 3 * MILLION, None),
        ("minimal 3 juta maksimal 4 juta", 3 * MILLION, 4 * MILLION),
        ("max 4jt", None, 4 * MILLION),
    ],
)
def test_money(parse: Parse, said: str, least: int | None, most: int | None) -> None:
    found = parse(f"laptop {said}")
    assert (found.pop("min_price", None), found.pop("max_price", None), found) == (least, most, LAPTOP)


@pytest.mark.parametrize(
    "said",
    [
        "laptop yang lagi promo",
        "laptop diskon",
        "ada laptop yang sedang diskon ga?",
        "laptop lagi obral",
        "laptop harga promo",
        "laptops on sale",
        "laptops that are on sale now",
        "discounted laptop",
        "laptop on promotion",
    ],
)
def test_goods_on_promotion(parse: Parse, said: str) -> None:
    assert parse(said) == {**LAPTOP, "on_promotion": True}


@pytest.mark.parametrize("said", ["laptop ga harus diskon", "laptop tidak perlu promo", "laptop for sale"])
def test_what_asks_for_no_promotion(parse: Parse, said: str) -> None:
    assert "on_promotion" not in parse(said)


def test_a_promotion_asked_for_later_keeps_the_goods(parse: Parse) -> None:
    previous = {"category": "laptop", "max_price": 12 * MILLION}
    assert parse("yang lagi promo aja", previous=previous) == {**previous, "on_promotion": True}


@pytest.mark.parametrize("said", ["budget $500", "300 dollar", "under 200 usd", "RM 400"])
def test_no_other_currency_is_rupiah(parse: Parse, said: str) -> None:
    assert parse(f"laptop {said}") == LAPTOP


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("laptop RTX 4060", "rtx 4060"),
        ("laptop ram 16 GB", "ram 16gb"),
        ("laptop 15,6 inch", "15,6inch"),
        ("laptop core i5 gen 12", "core i5 gen 12"),
    ],
)
def test_numbers_of_models_and_measures_are_no_prices(parse: Parse, said: str, text: str) -> None:
    assert parse(said) == LAPTOP | {"text": text}


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("laptop jaksel", {"cities": ["Jakarta Selatan"]}),
        ("laptop di bdg atau jogja", {"cities": ["Bandung", "Yogyakarta"]}),
        ("laptop di bandung aja ada", {"cities": ["Bandung"]}),
        ("laptop di Jawa Barat", {"provinces": ["Jawa Barat"]}),
        ("laptop bekas malang", {"cities": ["Malang"], "condition": "used"}),
        ("laptop selain di Jakarta", {"exclude_cities": ["Jakarta"]}),
        ("laptop di luar Jakarta dan Bekasi", {"exclude_cities": ["Jakarta", "Bekasi"]}),
        ("laptop kirim ke Surabaya", {"fulfilment": "delivery"}),
        ("laptop terdekat", {"near_user": True, "sort": "distance"}),
        ("laptop dekat rumah saya", {"near_user": True}),
        ("laptop di jabodetabek kecuali Bekasi", {"cities": AROUND_JAKARTA, "exclude_cities": ["Bekasi"]}),
        ("laptop kurang dari 5 km dari sini", {"near_user": True, "radius_km": 5.0}),
    ],
)
def test_places(parse: Parse, said: str, fields: dict[str, Any]) -> None:
    assert parse(said) == LAPTOP | fields


@pytest.mark.parametrize(
    ("said", "cities"),
    [
        ("laptop medan atau bandung murah", ["Medan", "Bandung"]),
        ("laptop jakarta medan surabaya", ["Jakarta", "Medan", "Surabaya"]),
        ("medan, jakarta atau surabaya laptop", ["Medan", "Jakarta", "Surabaya"]),
        ("palu jakarta", ["Jakarta"]),
        ("batik solo jakarta", ["Jakarta"]),
    ],
)
def test_beside_a_city_a_word_that_is_one_too_is_in_the_list(parse: Parse, said: str, cities: list[str]) -> None:
    assert parse(said)["cities"] == cities


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("laptop atau hp", {"text": "laptop atau hp"}),
        ("hp atau laptop", {"text": "hp atau laptop"}),
        ("laptop, hp, tablet", {"text": "laptop atau hp atau tablet"}),
        ("laptop or phone", {"text": "laptop atau phone"}),
        ("laptop asus atau hp", {"category": "laptop", "brands": ["asus", "hp"]}),
        ("laptop hp atau asus", {"category": "laptop", "brands": ["hp", "asus"]}),
        ("casing hp atau laptop", {"category": "phone-case", "text": "laptop"}),
    ],
)
def test_of_several_goods_any_is_wanted(parse: Parse, said: str, fields: dict[str, Any]) -> None:
    assert parse(said) == fields


def test_words_that_are_places_too(parse: Parse) -> None:
    assert parse("palu") == {"category": "tools", "text": "palu"}
    assert parse("palu di palu") == {"category": "tools", "text": "palu", "cities": ["Palu"]}
    assert parse("kopi toraja") == {"category": "coffee", "text": "toraja"}
    assert parse("batik solo")["text"] == "batik solo"
    assert parse("tas kulit asli garut") == {"category": "bag", "text": "kulit garut"}


@pytest.mark.parametrize(
    ("said", "category", "text"),
    [
        ("tas laptop", "bag", "laptop"),
        ("laptop bag", "bag", "laptop"),
        ("charger laptop", "charger", "laptop"),
        ("casing iphone 15", "phone-case", "iphone 15"),
        ("meja belajar anak", "furniture", "meja belajar anak"),
        ("office chair", "furniture", "office chair"),
        ("tinta printer", None, "tinta printer"),
        ("mouse pad", None, "mouse pad"),
        ("rak sepatu", "furniture", "rak sepatu"),
        ("sepatu lari pria", "shoes", "lari pria"),
        ("laptop buat desain", "laptop", "desain"),
        ("leptop gamming", "laptop", "gaming"),
        ("smart tv 43 inch", "tv", "smart 43inch"),
        ("mouse tanpa kabel", "mouse", "wireless"),
    ],
)
def test_the_main_noun_says_the_category(parse: Parse, said: str, category: str | None, text: str) -> None:
    found = parse(said)
    assert (found.get("category"), found["text"]) == (category, text)


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("printer hp", {"category": "printer", "brands": ["hp"]}),
        ("hp samsung", {"category": "smartphone", "brands": ["samsung"]}),
        ("hp oppo", {"category": "smartphone", "brands": ["oppo"]}),
        ("semen tiga roda", {"category": "cement", "brands": ["tiga roda"]}),
        ("laptop samsumg", {"category": "laptop", "brands": ["samsung"]}),
        ("laptop kecuali asus dan acer", {"category": "laptop", "exclude_brands": ["asus", "acer"]}),
        ("laptop, jangan yang merk asus", {"category": "laptop", "exclude_brands": ["asus"]}),
        ("hp samsung kecuali samsung a03", {"brands": ["samsung"], "exclude_terms": ["samsung a03"]}),
        ("laptop bukan gaming", {"category": "laptop", "exclude_terms": ["gaming"]}),
        ("laptop garansi resmi", {"category": "laptop", "text": "garansi"}),
    ],
)
def test_brands_and_what_is_not_wanted(parse: Parse, said: str, fields: dict[str, Any]) -> None:
    assert parse(said) == {"category": "smartphone"} | fields


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("laptop ga mahal", {"sort": "price_asc"}),
        ("laptop murmer", {"sort": "price_asc"}),
        ("laptop hemat listrik", {"text": "hemat listrik"}),
        ("laptop harga tertinggi", {"sort": "price_desc"}),
        ("laptop terbaru", {"sort": "newest"}),
        ("laptop rating tertinggi", {"sort": "rating"}),
        ("laptop rating minimal 4,5", {"min_rating": 4.5}),
        ("laptop bintang 4 ke atas", {"min_rating": 4.0}),
        ("laptop baru, bukan bekas", {"condition": "new"}),
        ("laptop baru atau bekas", {}),
        ("laptop second hand", {"condition": "used"}),
        ("laptop bisa diambil di toko", {"fulfilment": "pickup"}),
        ("laptop termasuk yang habis", {"in_stock": False}),
        ("laptop ready stock", {"in_stock": True}),
        ("laptop habis juga gapapa", {"in_stock": False}),
        ("butuh 10 laptop", {"quantity": 10}),
        ("ada 50 laptop?", {"quantity": 50}),
        ("laptop stoknya lebih dari 10", {"quantity": 10, "in_stock": True}),
        ("2 lusin laptop", {"quantity": 24}),
        ("tolong rekomendasikan laptop", {"intent": "recommend"}),
    ],
)
def test_other_wishes(parse: Parse, said: str, fields: dict[str, Any]) -> None:
    assert parse(said) == LAPTOP | fields


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("stok SKU RNJ-G15 masih ada?", {"intent": "stock", "in_stock": True, "sku": "RNJ-G15"}),
        ("produk 17", {"product_ids": [17]}),
        ("bandingkan id 3 dan 5", {"intent": "compare", "compare": {"product_ids": [3, 5]}}),
        ("halo kak", {"intent": "other"}),
        ("makasih banyak ya", {"intent": "other"}),
        ("jam buka tokonya?", {"intent": "other"}),
    ],
)
def test_codes_and_small_talk(parse: Parse, said: str, fields: dict[str, Any]) -> None:
    assert parse(said) == fields


def test_things_that_are_compared(parse: Parse) -> None:
    for said in ("bandingkan acer nitro dan asus tuf", "mending acer nitro atau asus tuf?", "acer nitro vs asus tuf"):
        found = parse(said)
        assert (found["intent"], found["compare"]["items"]) == ("compare", ["acer nitro", "asus tuf"]), said


def test_each_field_names_its_words_as_they_were_typed(vocabulary: Vocabulary) -> None:
    parsed = parse_query("Laptop 2jt5 di Bandung", QueryContext(), vocabulary)
    assert {one.field: one.words for one in parsed.explain} == {
        "max_price": "2jt5",
        "cities": "di Bandung",
        "category": "Laptop",
    }
    assert parsed.exact_category
    assert not parse_query("labtop", QueryContext(), vocabulary).exact_category


WORDS = (
    "di ke dan atau jakarta kecuali bukan 5 juta rb - , km nomor 2 vs satu dua unit gb sku a-1 $ rating yang #".split()
)


@settings(max_examples=15)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)))
def test_no_sentence_fails(vocabulary: Vocabulary, said: str) -> None:
    parsed = parse_query(said, QueryContext(), vocabulary)
    assert len(parsed.query.text) <= MAX_QUERY_CHARS


def test_a_brand_is_named_as_the_catalogue_spells_it(vocabulary: Vocabulary) -> None:
    known = replace(vocabulary, brands=("nippon paint", "yong ma"))
    for said, brand in (("magic com yongma", "yong ma"), ("cat tembok nippon", "nippon paint")):
        assert parse_query(said, QueryContext(), known).query.brands == [brand]


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("laptop tidak di jakarta", {"exclude_cities": ["Jakarta"]}),
        ("laptop yang ga di jakarta", {"exclude_cities": ["Jakarta"]}),
        ("laptop yang tidak dari Bandung", {"exclude_cities": ["Bandung"]}),
        ("laptop ada ga di jakarta", {"cities": ["Jakarta"]}),
        ("laptop ada tidak di jakarta?", {"cities": ["Jakarta"]}),
        ("laptop rated 4 or better", {"min_rating": 4.0}),
        ("laptop stok minimal 3", {"quantity": 3}),
        ("laptop harga 10 juta sampai 5 juta", {"max_price": 10 * MILLION}),
        ("laptop with at least 5 in stock", {"quantity": 5}),
    ],
)
def test_what_careless_readers_take_for_the_opposite(parse: Parse, said: str, fields: dict[str, Any]) -> None:
    found = parse(said)
    assert {name: value for name, value in found.items() if name not in ("intent", "in_stock")} == LAPTOP | fields


@pytest.mark.parametrize("said", ["yang nomor 12", "nomor 2 masih ada?", "bandingkan nomor 8 dan 9"])
@pytest.mark.parametrize("shown", [[], [{"id": 7}]])
def test_numbers_of_no_list_are_no_words(parse: Parse, said: str, shown: list[dict[str, Any]]) -> None:
    assert parse(said, previous=LAPTOP, last_results=shown) == {"intent": "other"}


def test_a_number_beside_a_noun_is_a_size(parse: Parse) -> None:
    assert "42" in parse("sepatu nomor 42")["text"]
