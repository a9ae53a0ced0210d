"""What the name of a product says that it is, against the kind that a buyer asks for."""

import pytest

from tis.marketplace.reading.goods_kinds import wanted_kind
from tis.marketplace.reading.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("text", "category", "name", "is_of_kind"),
    [
        ("printer", None, "Canon iP2770 Printer Inkjet", True),
        ("printer", None, "Tinta Printer Universal 100ml", False),
        ("printer", None, "Kabel Printer USB 3m", False),
        ("", "refrigerator", "Kulkas Samsung 2 Pintu", True),
        ("", "refrigerator", "Kopi Susu Literan", False),
        ("kursi gaming", "furniture", "Kursi Kantor Roda", True),
        ("kursi gaming", "furniture", "Office Chair Mesh", True),
        ("kursi gaming", "furniture", "Meja Belajar Anak Set Kursi", False),
        ("electric drill", "tools", "Mesin Bor Tangan 10mm", True),
        ("electric drill", "tools", "Mata Bor Set 13 pcs", False),
        ("", "laptop", "Tas Laptop 14 inch", False),
        ("", "laptop", "Laptop Stand Aluminium", False),
        ("", "laptop", "Axioo Hype 5 AMD Ryzen 5", None),
        ("tenda", None, "Tenda Camping 4 Orang", True),
        ("helm", None, "Kaca Helm Bogo", False),
        ("rice cooker", None, "Rice Cooker Mini Anak Kos", True),
        ("kipas meja", "fan", "Kipas Angin Meja 9 Inch", True),
        ("playstation 5", None, "Rak Buku 5 Tingkat", False),
    ],
)
def test_the_noun_of_a_name_says_what_it_is(
    vocabulary: Vocabulary, text: str, category: str | None, name: str, is_of_kind: bool | None
) -> None:
    kind = wanted_kind(text, category, vocabulary)
    assert kind is not None and kind.holds(name, None, vocabulary) is is_of_kind


def test_a_brand_is_no_noun(vocabulary: Vocabulary) -> None:
    kind = wanted_kind("tenda", None, vocabulary)
    assert kind is not None
    assert (kind.holds("Tenda F3 Router N300", "Tenda", vocabulary), kind.holds("Tenda Dome", "Eiger", vocabulary)) == (
        False,
        True,
    )


def test_words_that_say_no_goods_ask_for_any(vocabulary: Vocabulary) -> None:
    assert wanted_kind("merah murah", None, vocabulary) is None
