"""Searching by words: what matches, and in which order."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text as sql

from tests.marketplace.search.conftest import JAKARTA, Catalogue
from tis.marketplace.columns import now
from tis.marketplace.reading.tokens import tokenize


def test_words_match_in_any_order(catalogue: Catalogue) -> None:
    catalogue.put("Laptop ASUS gaming")
    catalogue.put("Laptop kantor")
    catalogue.put("Meja gaming")
    assert catalogue.names("gaming laptop") == catalogue.names("LAPTOP   Gaming") == ["Laptop ASUS gaming"]


def test_words_match_in_name_tags_brand_category_and_description(catalogue: Catalogue) -> None:
    catalogue.put("Zenbook 14", brand="ASUS", tags="tipis,ringan", category="ultrabook", description="Layar OLED")
    for text in ("zenbook asus", "ringan tipis", "ultrabook oled", "asus zenbook ringan ultrabook oled 14"):
        assert catalogue.names(text) == ["Zenbook 14"], text
    assert not catalogue.names("zenbook toshiba nusantara") or catalogue.find("zenbook toshiba nusantara").relaxed


def test_accents_and_character_width_do_not_matter(catalogue: Catalogue) -> None:
    catalogue.put("Kopi Café Crème")
    assert catalogue.names("cafe creme") == catalogue.names("ＣＡＦÉ") == ["Kopi Café Crème"]


def test_the_last_word_matches_as_a_prefix(catalogue: Catalogue) -> None:
    catalogue.put("Keyboard mekanik")
    assert catalogue.names("mekanik key") == catalogue.names("keyb") == ["Keyboard mekanik"]
    # Earlier words do not match as prefixes.
    assert catalogue.names("mek keyboard") == ["Keyboard mekanik"] and catalogue.find("mek keyboard").relaxed


def test_matches_in_the_name_rank_before_labels_and_description(catalogue: Catalogue) -> None:
    catalogue.put("Kabel", description="untuk monitor")
    catalogue.put("Lengan", tags="monitor")
    catalogue.put("Monitor 27 inci")
    assert catalogue.names("monitor") == ["Monitor 27 inci", "Lengan", "Kabel"]


def test_products_of_the_category_that_the_text_names_rank_first(catalogue: Catalogue) -> None:
    catalogue.put("Tas laptop", category="bag", rating_rank=5.0)
    catalogue.put("ASUS ROG Strix", category="laptop")
    assert catalogue.names("laptop") == ["ASUS ROG Strix", "Tas laptop"]
    assert catalogue.names("tas laptop")[0] == "Tas laptop"


def test_within_a_tier_the_better_rated_product_ranks_first(catalogue: Catalogue) -> None:
    catalogue.put("Kipas biasa", rating_rank=3.0)
    catalogue.put("Kipas bagus", rating_rank=4.5)
    assert catalogue.names("kipas") == ["Kipas bagus", "Kipas biasa"]


def test_synonyms_match_in_both_directions(catalogue: Catalogue) -> None:
    catalogue.synonym("sepeda kumbang", "onthel")
    catalogue.put("Onthel tua")
    catalogue.put("Sepeda kumbang baru")
    assert sorted(catalogue.names("sepeda kumbang")) == sorted(catalogue.names("onthel"))
    assert len(catalogue.names("onthel")) == 2


def test_a_synonym_of_a_category_matches_products_without_the_word(catalogue: Catalogue) -> None:
    catalogue.put("Galaxy A55", category="Smartphone")
    assert catalogue.names("ponsel galaxy") == ["Galaxy A55"]


def test_a_new_synonym_works_without_reindexing(catalogue: Catalogue) -> None:
    catalogue.put("Galaxy A55", category="smartphone")
    assert not catalogue.names("telpon pintar")
    catalogue.synonym("telpon pintar", "smartphone", "smartphone")
    assert catalogue.names("telpon pintar") == ["Galaxy A55"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lapotp", "laptop"),
        ("laptob", "laptop"),
        ("kyeboard mekanik", "keyboard mekanik"),
        ("keybaord", "keyboard"),
        ("mekanikk laptpo", "mekanik laptop"),
        ("aptop", "laptop"),  # nothing else is as close
    ],
)
def test_a_typo_is_corrected_and_the_correction_is_returned(catalogue: Catalogue, typed: str, meant: str) -> None:
    catalogue.put("Laptop keyboard mekanik")
    found = catalogue.find(typed)
    assert (found.corrected, [hit.product.name for hit in found.hits]) == (meant, ["Laptop keyboard mekanik"])


def test_the_more_common_of_two_equally_close_words_is_the_correction(catalogue: Catalogue) -> None:
    for name in ("Kabel HDMI", "Kabel data", "Kamel"):
        catalogue.put(name)
    assert catalogue.find("kavel").corrected == "kabel"


@pytest.mark.parametrize("text", ["kabel", "kab", "rtx3060", "tv"])
def test_known_words_prefixes_numbers_and_short_words_are_not_corrected(catalogue: Catalogue, text: str) -> None:
    for name in ("Kabel HDMI", "Kartu RTX4060"):
        catalogue.put(name)
    assert catalogue.find(text).corrected is None


def test_a_rare_word_is_looked_for_with_the_common_one_that_it_is_like_unless_it_is_in_a_name(
    catalogue: Catalogue,
) -> None:
    for number in range(5):
        catalogue.put(f"Kulkas besar {number}")
    catalogue.put("Spon", description="cocok untuk kullkas")
    found = catalogue.find("kullkas")
    assert (found.corrected, found.did_you_mean, len(found.hits)) == (None, "kulkas", 6), "beside the word as it is"
    catalogue.put("Bosar")
    assert catalogue.names("bosar") == ["Bosar"], "the common word is only offered"
    assert (catalogue.find("bosar").corrected, catalogue.find("bosar").did_you_mean) == (None, "besar")


def test_words_are_dropped_only_if_no_product_matches_all(catalogue: Catalogue) -> None:
    catalogue.put("Laptop gaming")
    catalogue.put("Laptop kantor")
    exact, relaxed = catalogue.find("laptop gaming"), catalogue.find("laptop gaming zzyzx")
    assert (len(exact.hits), exact.relaxed) == (1, False)
    assert ([hit.product.name for hit in relaxed.hits], relaxed.relaxed) == (["Laptop gaming"], True)
    assert catalogue.find("qqqq zzyzx").hits == []


def test_words_that_no_product_combines_match_any(catalogue: Catalogue) -> None:
    catalogue.put("Teko merah")
    catalogue.put("Gelas biru")
    found = catalogue.find("teko gelas")
    assert found.relaxed and len(found.hits) == found.total == 2


@pytest.mark.parametrize(
    "text",
    ['"', "'", "*", "lap*", "NEAR(laptop gaming)", "^laptop", "-laptop", "laptop AND", "OR",
     "NOT laptop", "(", "{name}:x", "name:laptop", "%", "_", "\0", "lap\0top",
     "💻", "\ud800", "§laptop", "¤334x1147", ":*", "laptop & !gaming",
     "laptop | x", "\\", "';DROP TABLE products;--", "a" * 500, "x " * 250, 
     " ".join(map(chr, range(97, 123))), " ".join(f"w{n}" for n in range(120)),
      "।", "ﷺ", "½", "İ", "ß"],
)  # fmt: skip
def test_no_text_is_interpreted_as_query_syntax(catalogue: Catalogue, text: str) -> None:
    catalogue.put("Teko merah", category="laptop")
    assert catalogue.names(text) in ([], ["Teko merah"])
    assert not {"%", "_", "*", "§laptop!", "\0"} & {text} or catalogue.names(text) == []


def test_punctuation_between_words_does_not_matter(catalogue: Catalogue) -> None:
    catalogue.put("Laptop gaming")
    assert catalogue.names('"laptop" -gaming*') == catalogue.names("laptop/gaming") == ["Laptop gaming"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_no_text_makes_a_search_fail(catalogue: Catalogue, text: str) -> None:
    catalogue.find(text)
    catalogue.find(text, origin=None, category="laptop")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(min_size=1, max_size=40).filter(lambda name: "\0" not in name and name.isprintable()))
def test_a_product_is_found_by_any_name(catalogue: Catalogue, name: str) -> None:
    product_id = catalogue.put(name)
    if tokenize(name):
        assert product_id in [hit.product.id for hit in catalogue.find(name).hits]


def test_a_change_is_searchable_at_once_and_the_old_text_is_not(catalogue: Catalogue) -> None:
    product_id = catalogue.put("Teko merah", description="keramik")
    catalogue.change(product_id, name="Gelas merah", description=None)
    assert catalogue.names("gelas") == ["Gelas merah"] and catalogue.names("teko") == catalogue.names("keramik") == []
    assert catalogue.find("keramikk").corrected is None, "a word that no product contains any more"
    catalogue.change(product_id, deleted_at=now())
    assert catalogue.names("gelas", available_only=False) == []


def test_products_of_a_suspended_supplier_are_hidden_until_it_is_active_again(catalogue: Catalogue) -> None:
    shop = catalogue.shop()
    catalogue.put("Teko merah", shop=shop)
    catalogue.change_shop(shop, status="suspended")
    assert catalogue.names("teko") == catalogue.names() == catalogue.names(available_only=False) == []
    catalogue.change_shop(shop, status="active", latitude=JAKARTA[0] + 1)
    assert catalogue.names("teko") == ["Teko merah"]


def test_a_fully_reserved_product_is_hidden_until_a_unit_is_released(catalogue: Catalogue) -> None:
    product_id = catalogue.put("Teko merah", on_hand=2)
    catalogue.change(product_id, reserved=2)
    assert catalogue.names("teko") == catalogue.names() == []
    assert catalogue.names("teko", available_only=False) == ["Teko merah"]
    catalogue.change(product_id, reserved=1)
    assert catalogue.names("teko") == ["Teko merah"]


def test_a_rebuild_repairs_a_damaged_index(catalogue: Catalogue) -> None:
    catalogue.put("Teko merah")
    before = catalogue.find("teko")
    with catalogue.market.writing() as session:
        session.execute(sql("UPDATE product_search SET price = 7, words_digest = 0"))
        session.execute(sql("DELETE FROM product_words"))
    with catalogue.market.writing() as session:
        catalogue.search.rebuild(session)
    assert catalogue.find("teko") == before and catalogue.names(max_price=7) == []
