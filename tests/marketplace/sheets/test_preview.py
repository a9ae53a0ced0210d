"""A sheet is looked at before it is imported: its columns are chosen, its wrong cells are mended."""

import json
from typing import Any

import httpx2
import pytest

from tests.marketplace.sheets.test_routes import counts, goods_of
from tests.marketplace.sheets.test_xlsx import workbook
from tests.marketplace.shop import Shop

# By names that mean nothing, two for one field, and one without a name.
SHEET = (
    "Kode,Nama Barang,Judul,Rp,,Rak\nA,Tas,Tas kulit,50000,tas,7\nB,Topi,,abc,topi,8\nC,Baju,Baju biru,9000,baju,9\n"
)
COLUMNS = "sku,name,,price,category"


def send(client: httpx2.Client, shop: int, sheet: str | bytes, edits: Any = None, **options: Any) -> httpx2.Response:
    data = sheet.encode() if isinstance(sheet, str) else sheet
    form = {} if edits is None else {"edits": edits if isinstance(edits, str) else json.dumps(edits)}
    headers = options.pop("headers", {})
    path = f"/api/suppliers/{shop}/products/import"
    return client.post(path, files={"file": ("goods", data)}, data=form, params=options, headers=headers)


def problems(answer: httpx2.Response) -> list[tuple[int, str | None]]:
    return [(one["row"], one["field"]) for one in answer.json()["errors"]]


def test_a_preview_guesses_columns_and_takes_any_header(laptop: httpx2.Client, shop: Shop) -> None:
    answer = send(laptop, shop.id, SHEET, dry_run=1, preview=9)
    assert answer.status_code == 200, answer.text
    assert [(one["position"], one["field"]) for one in answer.json()["columns"]] == [
        (1, "sku"),
        (2, "name"),
        (3, None),
        (4, None),
        (6, None),
    ]
    assert answer.json()["num_rows"] == 3
    assert answer.json()["rows"][0] == {"row": 2, "cells": ["A", "Tas", "Tas kulit", "50000", "tas", "7"]}
    nothing = send(laptop, shop.id, "x,y\n1,2\n3,4\n", dry_run=1, preview=1)
    assert nothing.status_code == 200 and counts(nothing) == (0, 0, 0, 0)
    assert nothing.json()["rows"] == [{"row": 2, "cells": ["1", "2"]}] and nothing.json()["num_rows"] == 2
    assert send(laptop, shop.id, "x,y\n1,2\n", dry_run=1).status_code == 422


def test_columns_are_what_the_client_says(laptop: httpx2.Client, shop: Shop) -> None:
    checked = send(laptop, shop.id, SHEET, dry_run=1, preview=9, columns=COLUMNS)
    assert counts(checked) == (2, 0, 0, 1) and problems(checked) == [(3, "price")]
    assert [one["field"] for one in checked.json()["columns"]] == ["sku", "name", None, "price", "category", None]
    done = send(laptop, shop.id, SHEET, columns=COLUMNS, partial=1)
    assert counts(done) == (2, 0, 0, 1) and {"columns", "rows", "num_rows"}.isdisjoint(done.json())
    assert goods_of(shop, shop.id)["A"].name == "Tas"
    other = shop.supplier()
    assert counts(send(laptop, other, SHEET, columns=" sku , ,name,price,category", partial=1)) == (2, 0, 0, 1)
    assert goods_of(shop, other)["A"].name == "Tas kulit"


@pytest.mark.parametrize(
    "columns,said",
    [
        ("name,prize", "`prize` is no field"),
        ("name,price,name", "`name` stands for two columns"),
        (",,", "name the field of one column"),
        ("name,,,,,,price", "columns has 7 fields, the header 6 cells"),
    ],
)
def test_columns_that_make_no_sense_are_refused(laptop: httpx2.Client, shop: Shop, columns: str, said: str) -> None:
    answer = send(laptop, shop.id, SHEET, columns=columns)
    assert answer.status_code == 422 and said in answer.json()["detail"]


def test_a_preview_shows_wrong_rows_first(laptop: httpx2.Client, shop: Shop) -> None:
    """Also those that are wrong only beside other rows."""
    rows = [f"S{number},Tas,{5000 + number},tas" for number in range(40)]
    rows[30] = "S30,Tas,no,tas"
    rows[35] = "S2,Tas,1000,tas"
    sheet = "\n".join(["sku,name,price,category", *rows])
    answer = send(laptop, shop.id, sheet, dry_run=1, preview=4)
    assert problems(answer) == [(32, "price"), (37, "sku")]
    assert [one["row"] for one in answer.json()["rows"]] == [2, 3, 32, 37]
    assert [one["row"] for one in send(laptop, shop.id, sheet, dry_run=1, preview=1).json()["rows"]] == [32]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_mended_cells_take_the_place_of_those_in_the_file(laptop: httpx2.Client, shop: Shop, kind: str) -> None:
    supplier = shop.supplier()
    rows: list[list[Any]] = [
        ["sku", "name", "price", "category"],
        ["A", "Tas", "abc", "tas"],
        ["B", None, 9000, "topi"],
    ]
    sheet = workbook(*rows) if kind == "xlsx" else "\n".join(",".join(str(one or "") for one in row) for row in rows)
    checked = send(laptop, supplier, sheet, dry_run=1, preview=9)
    assert problems(checked) == [(2, "price"), (3, "name")]
    edits = [[2, 3, "7.000"], [3, 2, "first try"], [3, 2, "Topi"]]
    again = send(laptop, supplier, sheet, edits, dry_run=1, preview=9)
    assert counts(again) == (2, 0, 0, 0) and again.json()["rows"][0]["cells"] == ["A", "Tas", "7.000", "tas"]
    assert counts(send(laptop, supplier, sheet, edits)) == (2, 0, 0, 0)
    goods = goods_of(shop, supplier)
    assert (goods["A"].price, goods["B"].name) == (7000, "Topi")


def test_a_row_that_is_too_short_can_be_mended(laptop: httpx2.Client, shop: Shop) -> None:
    sheet = "name,price,category\nTas,5000\n"
    assert problems(send(laptop, shop.id, sheet, dry_run=1, preview=1)) == [(2, None)]
    assert counts(send(laptop, shop.id, sheet, [[2, 3, "tas"]], dry_run=1)) == (1, 0, 0, 0)


@pytest.mark.parametrize(
    "edits",
    ["no json", "{}", [[1, 2]], [[0, 1, "a"]], [[2, 101, "a"]], [[2, 1, 5]], [[9, 1, "a"]], [[2, 1, "a"]] * 1001],
)
def test_edits_that_make_no_sense_are_refused(laptop: httpx2.Client, shop: Shop, edits: Any) -> None:
    supplier = shop.supplier()
    answer = send(laptop, supplier, "name,price,category\nTas,5000,tas\n", edits)
    assert answer.status_code == 422 and answer.json()["detail"].startswith("edits: ")
    assert goods_of(shop, supplier) == {}


def test_other_edits_under_the_same_key_are_another_request(laptop: httpx2.Client, shop: Shop) -> None:
    supplier, sheet = shop.supplier(), "name,price,category\nTas,5000,tas\n"
    key = {"Idempotency-Key": f"edits-{supplier}"}
    first = send(laptop, supplier, sheet, [[2, 2, "6000"]], headers=key)
    again = send(laptop, supplier, sheet, [[2, 2, "6000"]], headers=key)
    assert counts(first) == (1, 0, 0, 0) and again.headers["idempotent-replayed"] == "true"
    assert send(laptop, supplier, sheet, [[2, 2, "7000"]], headers=key).status_code == 422
    assert [one.price for one in goods_of(shop, supplier).values()] == [6000]


def test_the_imports_of_a_shop_are_listed_newest_first(laptop: httpx2.Client, shop: Shop) -> None:
    path = f"/api/suppliers/{shop.id}/products/imports"
    assert laptop.get(path).json() == []
    ids = []
    for number in range(2):
        rows = "".join(f"Tas {number} {row},5000,tas,https://pictures.invalid/{row}.jpg\n" for row in range(2))
        answer = send(laptop, shop.id, "name,price,category,pictures\n" + rows)
        assert answer.status_code == 202, answer.text
        ids.append(answer.json()["id"])
    listed = laptop.get(path).json()
    assert [one["id"] for one in listed] == ids[::-1]
    assert listed[0]["rows"] == 2 and listed[0]["created"] == 2 and "errors" not in listed[0]
