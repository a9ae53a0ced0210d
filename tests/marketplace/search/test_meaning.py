"""What a buyer means: the noun that says the goods, measures in any unit, broader words, refusals, pasted texts."""

import pytest

from tests.marketplace.search.conftest import Catalogue
from tis.marketplace.search.expansions import equal_measures
from tis.marketplace.search.main_noun import wished_clauses
from tis.marketplace.search.suggestions import suggest


@pytest.mark.parametrize("text", ["tas laptop", "laptop bag", "tas buat laptop", "tas untuk laptop"])
def test_a_bag_for_a_laptop_is_a_bag_in_both_languages(catalogue: Catalogue, text: str) -> None:
    for number in range(3):
        catalogue.put(f"Tas laptop {number}", category="tas")
        catalogue.put(f"Laptop gaming {number}", description="bonus tas")
    assert [name.split()[0] for name in catalogue.names(text)] == ["Tas"] * 3 + ["Laptop"] * 3


def test_of_a_known_phrase_that_no_shop_has_the_words_are_looked_for(catalogue: Catalogue) -> None:
    catalogue.put("Laptop kantor", category="laptop")
    found = catalogue.find("laptop bag")
    assert found.relaxed and [hit.product.name for hit in found.hits] == ["Laptop kantor"]


def test_what_is_inside_is_asked_for_by_its_name(catalogue: Catalogue) -> None:
    for number in range(5):
        catalogue.put(f"Laptop kantor {number} SSD 512GB", category="laptop")
    for number in range(3):
        catalogue.put(f"SSD NVMe {number}", description="penyimpanan cepat")
    assert catalogue.names("ssd laptop")[0].startswith("SSD")
    assert catalogue.names("laptop ssd")[0].startswith("Laptop")


def test_a_name_that_begins_with_the_noun_but_means_other_goods_comes_last(catalogue: Catalogue) -> None:
    for number in range(4):
        catalogue.put(f"Kopi bubuk {number}", category="minuman")
    catalogue.put("Kopi Table bundar", category="mebel")
    assert catalogue.names("kopi")[-1] == "Kopi Table bundar"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kabel 200 cm", "Kabel HDMI 2 meter"),
        ("kabel 2m", "Kabel HDMI 2 meter"),
        ("beras sekilo", "Beras merah 1 kg"),
        ("beras 1000 gram", "Beras merah 1 kg"),
        ("kopi setengah kilo", "Kopi gayo 500 gr"),
        ("kopi 5 ons", "Kopi gayo 500 gr"),
        ("bank 20 Ah", "Power bank 20000 mAh"),
    ],
)
def test_a_measure_is_found_in_other_units(catalogue: Catalogue, text: str, name: str) -> None:
    for one in ("Kabel HDMI 2 meter", "Beras merah 1 kg", "Kopi gayo 500 gr", "Power bank 20000 mAh"):
        catalogue.put(one)
    assert catalogue.names(text)[0] == name


def test_equal_measures_are_exact() -> None:
    assert list(equal_measures("1d5l")) == ["1500ml"] and list(equal_measures("500g")) == ["0d5kg", "1s2kg"]
    assert not [*equal_measures("15inch"), *equal_measures("laptop"), *equal_measures("9" * 40 + "kg")]


def test_a_broader_word_finds_its_kinds_and_they_do_not_find_each_other(catalogue: Catalogue) -> None:
    catalogue.put("Beras pulen")
    catalogue.put("Minyak goreng")
    assert sorted(catalogue.names("sembako")) == ["Beras pulen", "Minyak goreng"]
    assert catalogue.names("beras") == ["Beras pulen"]


def test_what_is_not_wanted_is_not_looked_for(catalogue: Catalogue) -> None:
    for name in ("Kursi kantor roda", "Kursi kantor", "Bor tanpa kabel", "Bor kabel"):
        catalogue.put(name)
    assert catalogue.find("kursi kantor tanpa roda").relaxed is False
    assert catalogue.names("bor tanpa kabel")[0] == "Bor tanpa kabel", "this is a word of its own"


PASTED = """Halo kak, mau cari sepatu lari buat lomba bulan depan, ukurannya 42, warna terserah yang penting ringan.
Sandal gunung sama sepatu hiking udah punya, jadi ga usah ditawarin. Kalau ada kirim foto sepatu larinya ya, makasih."""


def test_of_a_pasted_text_the_wish_is_looked_for(catalogue: Catalogue) -> None:
    for name in ("Sandal gunung ringan", "Foto lomba ringan", "Sepatu hiking gunung", "Sepatu lari ringan"):
        catalogue.put(name)
    assert catalogue.names(PASTED)[0] == "Sepatu lari ringan"
    assert not any("hiking" in clause for clause in wished_clauses(PASTED))


def test_the_vocabulary_knows_brands_and_suggests_them(catalogue: Catalogue) -> None:
    for brand in ("Asus", "Asrock", None, "Bosch"):
        catalogue.put("Barang", brand=brand)
    catalogue.limit_search()  # brands are read again after a minute
    with catalogue.market.reading() as session:
        vocabulary = catalogue.search.vocabulary(session)
        suggested = suggest(session, catalogue.search, "as")
    assert vocabulary.brands == ("asrock", "asus", "bosch")
    assert [one.text for one in suggested if one.kind == "brand"] == ["asrock", "asus"]


def test_a_text_of_nothing_but_refusals_is_looked_for_as_it_is() -> None:
    assert wished_clauses("jangan sandal, bukan sepatu") == ["jangan sandal, bukan sepatu"]
