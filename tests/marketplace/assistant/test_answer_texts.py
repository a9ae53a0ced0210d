"""Answers as buyers read them, in both languages."""

from dataclasses import replace
from string import Formatter
from typing import Any

import pytest

from tis.marketplace.assistant.answer_texts import AnswerText, render_answer
from tis.marketplace.assistant.goods import FoundGoods, ProductCard, TriedFilter
from tis.marketplace.assistant.limit_texts import limits_text
from tis.marketplace.assistant.viewers import Preferences, Viewer
from tis.marketplace.assistant.wording import language_of_text, rupiah, templates
from tis.marketplace.kit.geo import Point
from tis.marketplace.products.schemas import Fulfilment
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import ComparedThings, QueryContext, ShownProduct, StructuredQuery
from tis.marketplace.reading.vocabulary import Vocabulary

TUF = ProductCard(
    id=17,
    name="Laptop ASUS TUF",
    price=11_999_000,
    category="laptop",
    brand="ASUS",
    condition="new",
    available_quantity=3,
    supplier_id=4,
    supplier_name="Toko Maju",
    city="Jakarta Selatan",
    rating=4.6,
    rating_count=12,
    distance_km=3.2,
    fulfilment=Fulfilment(suggestion="pickup", reason="Toko hanya 3,2 km dari Anda: bisa diambil sendiri."),
)
NITRO = replace(
    TUF,
    id=23,
    name="Laptop Acer Nitro",
    price=10_499_000,
    brand="Acer",
    available_quantity=0,
    supplier_name="Bandung Komputer",
    city="Bandung",
    rating=None,
    rating_count=0,
    distance_km=116.0,
    fulfilment=None,
    condition="used",
)
FOUND = FoundGoods([TUF, NITRO], total=2)
NOTHING = FoundGoods([], total=0)
HERE, ENGLISH = Viewer(), Viewer(language="en")


def answer(found: FoundGoods = FOUND, viewer: Viewer = HERE, picks: Any = (), **fields: Any) -> AnswerText:
    return render_answer(found, picks, StructuredQuery(**fields), viewer)


def test_an_answer_says_what_was_found_and_of_each_product_what_is_known() -> None:
    said = answer(text="laptop", cities=["Jakarta"], max_price=12_000_000)
    assert said.sentences == [
        "Ada 2 produk untuk “laptop” di Jakarta sampai Rp 12.000.000.",
        "1. Laptop ASUS TUF: Rp 11.999.000, stok 3, Toko Maju (Jakarta Selatan), nilai 4,6 (12 ulasan)."
        " Toko hanya 3,2 km dari Anda: bisa diambil sendiri.",
        "2. Laptop Acer Nitro: Rp 10.499.000, stok habis, Bandung Komputer (Bandung), bekas, 116 km.",
    ]
    assert said.cited_ids == [17, 23] and 2 <= len(said.suggestions) <= 4
    english = answer(viewer=ENGLISH, text="laptop")
    assert english.sentences[0] == "There are 2 products for “laptop”."
    assert "Rp 10.499.000, sold out, Bandung Komputer (Bandung), used, 116 km." in english.sentences[2]


def test_picks_come_in_their_order_with_the_words_of_the_model() -> None:
    query = StructuredQuery(text="laptop")
    whys = {23: "Ringan dan kencang.", 99: "x"}
    said = render_answer(FOUND, [23, 99, 23], query, HERE, intro="Ini pilihan saya.", whys=whys)
    assert said.sentences[0] == "Ini pilihan saya." and said.cited_ids == [23]
    assert said.sentences[1].startswith("1. Laptop Acer Nitro:") and said.sentences[1].endswith(
        "km. Ringan dan kencang."
    )
    many = FoundGoods([replace(TUF, id=n) for n in range(1, 9)], total=1000, total_is_exact=False)
    first = render_answer(many, [], query, HERE)
    assert first.cited_ids == [1, 2, 3]
    assert first.sentences[0] == "Ada lebih dari 1.000 produk untuk “laptop”; ini 3 yang paling cocok:"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_price": 10_498_999}, " di bawah Rp 10.499.000"),
        ({"max_price": 0}, " sampai Rp 0"),
        ({"min_price": 5_000_000, "max_price": 8_000_000}, " seharga Rp 5.000.000 sampai Rp 8.000.000"),
        ({"min_price": 5_000_000, "category": "washing-machine"}, " di kategori washing machine mulai Rp 5.000.000"),
        ({"text": "gaming", "category": "laptop"}, " di kategori laptop untuk “gaming”"),
        ({"text": "laptop gaming", "category": "laptop"}, " untuk “laptop gaming”"),
        ({"brands": ["asus", "acer"], "exclude_brands": ["msi"]}, " merek Asus atau Acer selain Msi"),
        ({"near_user": True, "radius_km": 7.5}, " dalam 7,5 km dari Anda"),
        ({"cities": ["Bandung"], "radius_km": 20}, " sampai 20 km dari Bandung"),
        ({"provinces": ["Bali"], "exclude_cities": ["Badung"]}, " di Bali di luar Badung"),
        ({"min_rating": 4.5, "condition": "used"}, " dalam kondisi bekas dengan nilai minimal 4,5"),
        ({"fulfilment": "pickup", "quantity": 5}, " yang bisa diambil sendiri dengan stok minimal 5"),
        ({"text": "teko [x](https://evil.example)"}, " untuk “teko x”"),
        ({}, ""),
    ],
)
def test_limits_are_said(fields: dict[str, Any], expected: str) -> None:
    assert limits_text(StructuredQuery(**fields), "id") == expected


@pytest.mark.parametrize(
    ("card", "quantity", "expected"),
    [
        (TUF, None, "Ya, Laptop ASUS TUF ada: stok 3."),
        (TUF, 2, "Ya, Laptop ASUS TUF cukup: stok 3, Anda butuh 2."),
        (TUF, 5, "Tidak cukup: stok Laptop ASUS TUF hanya 3, Anda butuh 5."),
        (NITRO, None, "Tidak, Laptop Acer Nitro sedang habis."),
    ],
)
def test_a_question_for_stock_gets_yes_or_no(card: ProductCard, quantity: int | None, expected: str) -> None:
    said = answer(FoundGoods([card], total=1), intent="stock", product_ids=[card.id], quantity=quantity)
    assert said.sentences[0] == expected and said.sentences[1].startswith(f"1. {card.name}: Rp ")


def test_a_comparison_names_the_best_of_each_kind() -> None:
    compare = ComparedThings(items=["a", "b"])
    said = answer(intent="compare", compare=compare)
    assert said.sentences[0] == "Perbandingan 2 produk:"
    assert said.sentences[3:] == [
        "Paling murah: Laptop Acer Nitro (Rp 10.499.000).",
        "Paling dekat: Laptop ASUS TUF (3,2 km).",
    ]
    alike = answer(FoundGoods([TUF, replace(TUF, id=2, rating=4.0)], total=2), intent="compare", compare=compare)
    assert alike.sentences[3:] == ["Nilai tertinggi: Laptop ASUS TUF (4,6)."]
    one = answer(FoundGoods([TUF], total=1, missing=["b"]), intent="compare", compare=compare, viewer=ENGLISH)
    assert one.sentences[:2] == [
        "I did not find b.",
        "I found only one, so there is nothing to compare it with:",
    ]


def test_where_nothing_is_found_the_tried_searches_are_counted() -> None:
    query = StructuredQuery(text="laptop", cities=["Jakarta"], max_price=5_000_000)
    tried = [
        TriedFilter("max_price", 2, True, query.model_copy(update={"max_price": 6_250_000})),
        TriedFilter("max_price", 100, False, query.model_copy(update={"max_price": None})),
        TriedFilter("city", 1, True, query.model_copy(update={"radius_km": 40.0})),
        TriedFilter("city", 7, True, query.model_copy(update={"cities": []})),
    ]
    found = replace(NOTHING, relaxations=tried, nearest_place="Jakarta", nearest=[NITRO])
    said = render_answer(found, [17], query, HERE)
    assert said.sentences == [
        "Maaf, tidak ada produk untuk “laptop” di Jakarta sampai Rp 5.000.000.",
        "Sampai Rp 6.250.000: 2 produk.",
        "Tanpa batas harga: lebih dari 100 produk.",
        "Sampai 40 km dari Jakarta: 1 produk.",
        "Di semua kota: 7 produk.",
        "Yang terdekat dari Jakarta:",
        "1. Laptop Acer Nitro: Rp 10.499.000, stok habis, Bandung Komputer (Bandung), bekas, 116 km dari Jakarta.",
    ]
    assert said.cited_ids == [23] and said.suggestions[:2] == ["Maksimal Rp 6.250.000", "Di kota lain"]
    english = render_answer(found, [], query, ENGLISH).sentences
    assert english[1:4] == [
        "Up to Rp 6.250.000: 2 products.",
        "Without a price limit: more than 100 products.",
        "Up to 40 km from Jakarta: 1 product.",
    ]
    assert answer(NOTHING, text="zzz").sentences[-1].startswith("Coba dengan kata lain")
    assert answer(NOTHING, product_ids=[4]).sentences == ["Maaf, produk itu tidak ada lagi."]


def test_words_that_do_not_match_are_owned_up_to() -> None:
    partly = replace(FOUND, total=0, unverified_words=True, corrected="laptop ungu")
    said = answer(partly, text="leptop ungu").sentences
    assert said[:2] == [
        "Saya mencari “laptop ungu”.",
        "Tidak ada produk yang cocok dengan semua kata Anda untuk “leptop ungu”; ini yang paling mendekati:",
    ]
    tried = TriedFilter("city", 4, True, StructuredQuery())
    elsewhere = replace(
        partly, relaxations=[tried], nearest_place="Bandung", nearest=[replace(TUF, id=5, fulfilment=None)]
    )
    also = answer(elsewhere, text="leptop ungu")
    assert also.sentences[4:6] == ["Di semua kota: 4 produk.", "Yang terdekat dari Bandung:"]
    assert also.cited_ids == [17, 23, 5] and also.sentences[6].endswith("3,2 km dari Bandung, nilai 4,6 (12 ulasan).")
    whole = answer(replace(partly, total=1), text="x")
    assert whole.sentences[1] == "Ada satu produk untuk “x”:" and whole.cited_ids == [17]
    picked = answer(replace(partly, total=1), picks=[17, 23])
    assert picked.sentences[1] == "Hanya 1 yang cocok dengan semua kata Anda; sisanya mendekati:"


def test_without_a_place_no_nearness_is_claimed() -> None:
    far = FoundGoods([replace(TUF, distance_km=None, fulfilment=None)], total=1)
    assert answer(far, near_user=True).sentences[0] == "Lokasi Anda belum saya ketahui, jadi jarak tidak dihitung."
    assert "Lokasi" not in answer(FOUND, near_user=True).sentences[0]


def test_preferences_are_said_where_they_are_met() -> None:
    likes = Preferences(brands=["acer"], condition="used", city="Kota Bandung", max_price=11_000_000)
    last = answer(viewer=Viewer(preferences=likes)).sentences[-1]
    met = "merek Acer, paling mahal Rp 11.000.000, di Bandung, kondisi bekas"
    assert last == f"Laptop Acer Nitro sesuai preferensi Anda: {met}."
    assert "preferensi" not in " ".join(answer(viewer=Viewer(preferences=Preferences(brands=["hp"]))).sentences)


def test_small_talk_is_answered_with_what_the_assistant_can_do() -> None:
    hello = answer(intent="other", text="halo")
    assert hello.sentences[0].startswith("Halo! Saya bisa") and hello.cited_ids == [] and len(hello.suggestions) == 3
    assert answer(intent="other", text="makasih ya").sentences == ["Sama-sama! Ada lagi yang bisa saya carikan?"]
    query = StructuredQuery(intent="other")
    assert render_answer(FOUND, [17], query, HERE, sentence="oke, terima kasih").sentences[0].startswith("Sama-sama!")
    assert answer(intent="other", text="thanks", viewer=ENGLISH).sentences[0].startswith("You are welcome!")


def test_both_languages_have_the_same_templates() -> None:
    for name, template in templates()["id"].items():
        english = templates()["en"][name]
        fields = [{field for _, field, _, _ in Formatter().parse(text)} for text in (template, english)]
        assert template and english and fields[0] - {None} == fields[1] - {None}, name
        assert "Rp" not in template and "Rp" not in english
    assert (rupiah(11_999_000), rupiah(500), rupiah(0)) == ("Rp 11.999.000", "Rp 500", "Rp 0")


VOCABULARY = Vocabulary({"laptop": {"laptop"}}, {"laptop": None}, {("laptop",): ("laptop",)}, {})


@pytest.mark.parametrize("language", ["id", "en"])
def test_the_rules_understand_each_suggestion(language: Any) -> None:
    before = StructuredQuery(
        category="laptop", text="gaming", brands=["asus"], cities=["Jakarta"], max_price=12_000_000
    )
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("max_price", {"max_price": 15_000_000}),
        ("city", {"cities": []}),
        ("brand", {"brands": []}),
    )
    shown = [ShownProduct(id=card.id, name=card.name, price=card.price) for card in (TUF, NITRO)]
    context = QueryContext(previous=before, last_results=shown)
    for without, change in changes:
        tried = TriedFilter(without, 3, True, before.model_copy(update=change))
        said = render_answer(replace(NOTHING, relaxations=[tried]), [], before, Viewer(language=language))
        assert parse_query(said.suggestions[0], context, VOCABULARY).query == tried.query
    for query in (before, StructuredQuery(category="laptop", sort="price_asc", product_ids=[17])):
        for sentence in render_answer(FOUND, [], query, Viewer(language=language)).suggestions:
            understood = parse_query(sentence, context, VOCABULARY).query
            assert understood.intent != "other" and understood != before, sentence


@pytest.mark.parametrize("language", ["id", "en"])
def test_a_suggestion_is_answered_in_its_own_language(language: Any) -> None:
    other: Any = "en" if language == "id" else "id"
    suggestions = [
        text for name, text in templates()[language].items() if name.startswith(("follow-up ", "relax ", "example "))
    ]
    assert len(suggestions) == 13
    for sentence in suggestions:
        assert language_of_text(sentence, other) == language, sentence


def test_nothing_is_not_said_of_all_products() -> None:
    assert answer(NOTHING, sku="LAP-1").sentences[0] == "Maaf, tidak ada produk dengan SKU LAP-1."
    assert answer(NOTHING, exclude_terms=["merah"]).sentences[0] == "Maaf, tidak ada produk tanpa “merah”."
    assert answer(NOTHING, near_user=True).sentences[1] == "Maaf, tidak ada produk yang cocok."
    assert answer(FoundGoods([], total=0, missing=["a", "b"]), intent="compare").sentences == [
        "Tidak saya temukan: a atau b."
    ]


def test_a_radius_that_filters_nothing_is_not_claimed() -> None:
    at_home = Viewer(origin=Point(-6.2, 106.8))
    unknown = answer(replace(FOUND, cards=[replace(TUF, distance_km=None)]), radius_km=3, text="teko")
    assert unknown.sentences[:2] == [
        "Lokasi Anda belum saya ketahui, jadi jarak tidak dihitung.",
        "Ada 2 produk untuk “teko”; ini 1 yang paling cocok:",
    ]
    assert "dalam 3 km dari Anda" in answer(viewer=at_home, radius_km=3).sentences[0]
    assert "Lokasi" not in answer(NOTHING, viewer=at_home, radius_km=3).sentences[0]
    assert "km" not in answer(cities=["Bandung", "Surabaya"], radius_km=5).sentences[0]
