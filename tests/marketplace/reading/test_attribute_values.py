"""How names and values of attributes are compared."""

import pytest

from tis.marketplace.reading.attribute_values import (
    AttributeValue,
    attribute_key,
    attribute_label,
    attribute_value,
)


@pytest.mark.parametrize(
    ("name", "value", "number", "key"),
    [
        ("ram_gb", 16, 16, "16"),
        ("ram_gb", 16.0, 16, "16"),
        ("ram_gb", "16", 16, "16"),
        ("ram_gb", "16 GB", 16, "16"),
        ("ram_gb", "16GB", 16, "16"),
        ("storage_gb", "1 TB", 1000, "1000"),
        ("weight_kg", "900 gram", 0.9, "0.9"),
        ("weight_kg", "1,5", 1.5, "1.5"),
        ("screen_inch", '15.6"', 15.6, "15.6"),
        ("battery_mah", "5.000 mAh", 5000, "5000"),
        ("power_pk", "1/2 PK", 0.5, "0.5"),
        ("garansi_tahun", "2 tahun", 2, "2"),
        ("ram", "16 GB", 16, "16gb"),  # a unit that the name does not say: also equal to `16gb` alone
        ("temperature", -5, -5, "-5"),
        ("x", 0.1 + 0.2, 0.1 + 0.2, "0.30000000000000004"),
        ("x", -0.0, 0, "0"),
        # no numbers
        ("garansi", "2 tahun", None, "2tahun"),
        ("ram_gb", "16 tahun", None, "16tahun"),
        ("ram_gb", "5000 mAh", None, "5000mah"),
        ("version", "5.1.2", None, "5.1.2"),
        ("gpu", "RTX 4050", None, "rtx4050"),
        ("gpu", "rtx4050", None, "rtx4050"),
        ("color", "  Café  Noir ", None, "cafe noir"),
        ("size", "36-42", None, "36-42"),
        ("class", "A+", None, "a+"),
        ("wifi", True, None, "true"),
    ],
)
def test_a_value_is_a_number_or_a_text(name: str, value: object, number: float | None, key: str) -> None:
    read = attribute_value(name, value)
    assert read is not None and (read.number, read.key) == (number, key)
    assert str(read.number) != "-0.0"


def test_labels_are_as_the_seller_wrote_them() -> None:
    assert attribute_value("gpu", " RTX  4050 ") == AttributeValue(None, "rtx4050", "RTX 4050")
    assert attribute_value("ram", "16 GB") == AttributeValue(16, "16gb", "16 GB")
    assert attribute_value("storage_gb", "1 TB") == AttributeValue(1000, "1000", "1000")


@pytest.mark.parametrize("value", [None, "", "  ", [1], float("nan"), float("inf"), 10**400])
def test_what_has_no_value_is_left_out(value: object) -> None:
    assert attribute_value("x", value) is None


def test_names_have_one_key_and_a_label() -> None:
    assert attribute_key("RAM (GB)") == attribute_key("ram_gb") == attribute_key(" Ram-GB ") == "ram_gb"
    assert attribute_key("★") == ""
    labels = {"ram_gb": "RAM (GB)", "screen_inch": "Screen (inch)", "kapasitas_baterai_mah": "Kapasitas baterai (mAh)"}
    labels |= {"gpu": "GPU", "keys": "Keys", "layar_inci": "Layar (inch)", "ukuran_layar": "Ukuran layar", "gb": "Gb"}
    assert {key: attribute_label(key) for key in labels} == labels
