"""A sheet makes groups of variants, changes them and takes products out of them; an export of them imports again."""

import csv
import io

import httpx2
import pytest

from tests.marketplace.sheets.test_routes import counts, goods_of, send
from tests.marketplace.shop import Shop

HEADER = "sku,name,price,stock_quantity,category,variant_group,variant_values\n"
SHOES = HEADER + (
    "S-41,Sepatu 41,399000,3,shoes,Sepatu Rinjani,ukuran: 41; warna: merah\n"
    "S-42,Sepatu 42,410000,2,shoes,sepatu rinjani,warna: merah; Ukuran: 42\n"
    "TAS,Tas,99000,1,bag,,\n"
)


def groups_of(client: httpx2.Client, shop: int) -> dict[str, list[tuple[str, dict[str, str]]]]:
    groups = client.get(f"/api/suppliers/{shop}/product-groups").json()
    return {one["name"]: [(two["sku"], two["values"]) for two in one["variants"]] for one in groups}


def test_rows_that_name_one_group_are_its_variants(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    assert counts(send(laptop, supplier, SHOES, dry_run=1)) == (3, 0, 0, 0) and groups_of(laptop, supplier) == {}
    answer = send(laptop, supplier, SHOES)
    assert answer.status_code == 200 and counts(answer) == (3, 0, 0, 0), answer.text
    assert groups_of(laptop, supplier) == {
        "Sepatu Rinjani": [
            ("S-41", {"ukuran": "41", "warna": "merah"}),
            ("S-42", {"ukuran": "42", "warna": "merah"}),
        ]
    }
    assert laptop.get(f"/api/products?supplier_id={supplier}").headers["x-total-count"] == "2"
    assert counts(send(laptop, supplier, SHOES)) == (0, 0, 3, 0)


def test_an_export_of_variants_imports_again(laptop: httpx2.Client, shop: Shop) -> None:
    supplier, other = shop.supplier(), shop.supplier()
    strange = HEADER + 'X,Cat,5000,1,paint,"A; B","ke;set: satu\\; dua"\n'.replace("ke;set", "ke\\;set")
    for sheet in (SHOES, strange):
        assert send(laptop, supplier, sheet).status_code == 200
    exported = laptop.get(f"/api/suppliers/{supplier}/products/export").content
    rows = list(csv.DictReader(io.StringIO(exported.decode("utf-8-sig"))))
    cells = [(row["sku"], row["variant_group"], row["variant_values"]) for row in rows]
    assert cells == [
        ("S-41", "Sepatu Rinjani", "ukuran: 41; warna: merah"),
        ("S-42", "Sepatu Rinjani", "ukuran: 42; warna: merah"),
        ("TAS", "", ""),
        ("X", "A; B", "ke\\;set: satu\\; dua"),
    ]
    assert counts(send(laptop, supplier, exported)) == (0, 0, 4, 0)
    assert counts(send(laptop, other, exported)) == (4, 0, 0, 0)
    assert groups_of(laptop, other) == groups_of(laptop, supplier)
    assert groups_of(laptop, other)["A; B"] == [("X", {"ke;set": "satu; dua"})]


def test_a_sheet_changes_values_swaps_them_and_takes_products_out(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    send(laptop, supplier, SHOES)
    columns = "sku,variant_group,variant_values\n"
    swapped = columns + "S-41,Sepatu Rinjani,ukuran: 42\nS-42,Sepatu Rinjani,ukuran: 41\n"
    assert counts(send(laptop, supplier, swapped)) == (0, 2, 0, 0)
    assert dict(groups_of(laptop, supplier)["Sepatu Rinjani"])["S-41"] == {"ukuran": "42", "warna": "merah"}
    moved = columns + "S-41,,\nS-42,Sepatu Rinjani,\nTAS,Tas,warna: hitam\n"
    assert counts(send(laptop, supplier, moved)) == (0, 2, 1, 0)
    assert {name: [sku for sku, _ in rows] for name, rows in groups_of(laptop, supplier).items()} == {
        "Sepatu Rinjani": ["S-42"],
        "Tas": ["TAS"],
    }
    assert counts(send(laptop, supplier, "sku,variant_group\nS-42,\nTAS,\n")) == (0, 2, 0, 0)
    assert groups_of(laptop, supplier) == {}
    assert goods_of(shop, supplier)["S-42"].attributes == {"ukuran": "41", "warna": "merah"}


@pytest.mark.parametrize(
    "cells,field,message",
    [
        ("Sepatu Rinjani,ukuran: 41; warna: MERAH", "variant_values", "are those of another variant of the group"),
        ("Sepatu Rinjani,ukuran: 43", "variant_values", "A variant of this group needs a value of `warna`."),
        ("Sepatu Rinjani,bahan: kulit", "variant_values", "`bahan` is no axis of the group, which has ukuran, warna"),
        ("New,", "variant_values", "is needed in the first row of a new group, such as `ukuran: 42; warna: merah`"),
        (",ukuran: 43", "variant_group", "is needed where `variant_values` is given"),
        ("New,43", "variant_values", "must be one to 3 axes with their values, such as `ukuran: 42; warna: merah`"),
        ("New,a: 1; b: 2; c: 3; d: 4", "variant_values", "must be one to 3 axes with their values"),
    ],
)
def test_a_row_with_wrong_values_is_named(
    laptop: httpx2.Client, shop: Shop, cells: str, field: str, message: str
) -> None:
    supplier = shop.supplier()
    send(laptop, supplier, SHOES)
    answer = send(laptop, supplier, f"{HEADER}S-43,Sepatu 43,399000,3,shoes,{cells}\n")
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["row"], error["field"]) == (2, field) and message in error["message"]
    assert "S-43" not in goods_of(shop, supplier)


def test_two_rows_with_the_same_values_are_named(laptop: httpx2.Client, shop: Shop) -> None:
    sheet = HEADER + "A,a,1,1,c,G,size: 1\nB,b,1,1,c,G,size: 01\nC,c,1,1,c,G,size: 1\n"
    answer = send(laptop, shop.supplier(), sheet)
    assert [(one["row"], one["message"]) for one in answer.json()["errors"]] == [
        (3, "are the same as in row 2"),
        (4, "are the same as in row 2"),
    ]
