"""Reading and writing the rows of a sheet."""

import csv
import io
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tis.errors import Unprocessable
from tis.marketplace.sheets.columns import COLUMNS
from tis.marketplace.sheets.rows import MAX_ROWS, guard, read_rows, unguard, write_rows
from tis.marketplace.tables import MAX_RUPIAH


def values_of(sheet: str) -> list[dict[str, Any]]:
    read = read_rows(sheet.encode())
    assert not read.problems
    return [row.values for row in read.rows]


def problems_of(sheet: str) -> list[tuple[int, str | None]]:
    return [(problem.row, problem.field) for problem in read_rows(sheet.encode()).problems]


def test_columns_may_be_in_any_order_and_missing() -> None:
    assert values_of("Price, SKU \n5000,A-1\n\n7000,\n") == [
        {"price": 5000, "sku": "A-1"},
        {"price": 7000, "sku": None},
    ]


def test_semicolons_and_a_byte_order_mark_are_accepted() -> None:
    assert values_of('\ufeffsku;name;tags\r\nA;"Laptop; baru";a,b\r\n') == [
        {"sku": "A", "name": "Laptop; baru", "tags": "a,b"}
    ]


@pytest.mark.parametrize(
    "written", ["15999000", "15.999.000", "15,999,000", "Rp15.999.000", "Rp 15.999.000", "rp. 15999000", "IDR 15999000"]
)
def test_prices_are_read_with_currency_and_thousands_separators(written: str) -> None:
    assert values_of(f'price;sku\n"{written}";A\n') == [{"price": 15_999_000, "sku": "A"}]


@pytest.mark.parametrize(
    "sheet",
    [
        "sku\tname\tprice\nA\tLaptop, baru\tRp349.000,00\n",
        "sep=;\nsku;name;price\nA;Laptop, baru;Rp349.000,00\n",
        '"sep=|"\r\nsku|name|price\r\nA|Laptop, baru|349,000.00\r\n',
        "SEP=\t\r\nsku\tname\tprice\r\nA\tLaptop, baru\tRp 349.000,-\r\n",
        '"sku";"name";"price (a, b, c)"\nA;Laptop, baru;349000,0\n',
    ],
    ids=["tabs", "sep", "sep in quotes", "sep of a tab", "commas in quotes"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_delimiters_and_encodings_of_spreadsheets_are_read(sheet: str, encoding: str) -> None:
    read = read_rows(sheet.encode(encoding))
    assert not read.problems and [row.number for row in read.rows] == [2]
    assert read.rows[0].values == {"sku": "A", "name": "Laptop, baru", "price": 349_000}


def test_the_header_may_be_indonesian() -> None:
    header = "Kode Barang*,NAMA_PRODUK,Harga (Rp),Stok,Kategori,Merek,Kondisi,Deskripsi,Tersedia\n"
    assert values_of(header + "A,Tas,50.000,3,tas,Merapi,Baru,Kulit,ya\n") == [
        {
            "sku": "A",
            "name": "Tas",
            "price": 50_000,
            "stock_quantity": 3,
            "category": "tas",
            "brand": "Merapi",
            "condition": "new",
            "description": "Kulit",
            "is_available": True,
        }
    ]


def test_columns_without_a_name_are_ignored_if_they_are_empty() -> None:
    assert values_of("name,,price,,\nTas,,50000,,\nTopi,,20000\n") == [
        {"name": "Tas", "price": 50_000},
        {"name": "Topi", "price": 20_000},
    ]
    read = read_rows(b"name,,price,,\nTas,x,50000,,\nTopi,,20000,,y\n")
    assert [(one.row, one.message) for one in read.problems] == [
        (2, "column 2 has no name, but has a cell here"),
        (3, "has 5 cells, the header has 3"),
    ]


def test_unknown_columns_are_refused_reported_or_ignored() -> None:
    sheet = b"nama,Catatan,harga\nTas,murah,50000\n"
    with pytest.raises(Unprocessable) as refused:
        read_rows(sheet)
    assert refused.value.message.startswith("row 1: unknown column `Catatan`; with `?ignore_unknown=1`")
    reported, ignored = read_rows(sheet, "report"), read_rows(sheet, "ignore")
    assert [(one.row, one.field) for one in reported.problems] == [(1, "Catatan")] and ignored.problems == []
    assert reported.rows == ignored.rows and ignored.rows[0].values == {"name": "Tas", "price": 50_000}
    assert [(one.position, one.column, one.field) for one in reported.columns] == [
        (1, "nama", "name"),
        (2, "Catatan", None),
        (3, "harga", "price"),
    ]


@pytest.mark.parametrize(
    "written",
    [
        "15.99",
        "15.999,50",
        "15.999.00",
        "15.999,000",
        "Rp349.000,000",
        "1.5999.000",
        "15,999.000",
        "12,5 juta",
        "0",
        "-5",
        "1e6",
        "NaN",
        "$5",
        "١٢",
        "9" * 17,
        "9" * 14,
    ]
    + [str(MAX_RUPIAH + 1)],
)
def test_ambiguous_prices_are_refused(written: str) -> None:
    assert problems_of(f"sku;price\nA;{written}\n") == [(2, "price")]


def test_booleans_and_conditions_have_synonyms() -> None:
    assert values_of("is_available,condition\nTRUE,Baru\ntidak,used\n") == [
        {"is_available": True, "condition": "new"},
        {"is_available": False, "condition": "used"},
    ]
    assert problems_of("is_available,condition\nmaybe,broken\n") == [(2, "is_available"), (2, "condition")]


def test_a_wrong_row_is_reported_and_the_others_are_read() -> None:
    sheet = read_rows(b"name,price\nA,1\n,2\nB,x\nC,3,4\nD\nE,5\n")
    assert [row.values.get("name") for row in sheet.rows] == ["A", None, "E"]
    assert [(one.row, one.field) for one in sheet.problems] == [(4, "price"), (5, None), (6, None)]


@pytest.mark.parametrize(
    ("sheet", "said"),
    [
        (b"", "row 1: the header is missing"),
        (b"\n\n", "row 1: the header is missing"),
        (b"name,prise\n", "row 1: unknown column `prise`"),
        (b"a,b\n", "row 1: no column has a known name"),
        (b"name,Name\n", "row 1: columns `name` and `Name` are both `name`"),
        (b"name,Harga,harga (Rp)\n", "row 1: columns `Harga` and `harga (Rp)` are both `price`"),
        (b"name" + b",x" * 100 + b"\n", "row 1: a sheet has at most 100 columns"),
        (b"name,price\nA,1\nB\xff,2\n", "row 3: this is not UTF-8"),
        ("name\nA\n".encode("utf-16") + b"x", "row 1: this is not UTF-16"),
        ("name\nA\n".encode("utf-32"), "row 1: contains a NUL"),
        (b"name,price\nA\0,1\n", "row 2: contains a NUL"),
        (b'name,price\nA,1\n"B,2\nC,3\n', "row 3: "),
        (b"name,price\n" + b"x" * 200_000 + b",1\n", "row 2: field larger than"),
        (
            b"price,stock\n" + b"x,y\n" * 25_001,
            "row 25002: more than 50,000 cells are wrong. The first: row 2, `price`: must",
        ),
        (b"name\n" + b"x\n" * (MAX_ROWS + 1), f"row {MAX_ROWS + 2}: a sheet has at most"),
    ],
    ids=range(15),
)
def test_an_invalid_sheet_is_refused_with_the_row_number(sheet: bytes, said: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        read_rows(sheet)
    assert refused.value.message.startswith(said)


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: ("name,price\n" + text).encode("utf-8", "ignore"))
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_rows(data)
    except Unprocessable as refused:
        assert refused.message.startswith("row ")


cells = st.text(max_size=30).map(lambda text: "'" * (len(text) % 3) + text) | st.sampled_from(
    ["=1+1", "'@x", "''-", "'", "fan;=HYPERLINK(1)", "a;'=1", "a\t=1", "\t\t=", 'a; "=1', "a\n-b", "a;'b"]
)

_SIGNS = ("=", "+", "-", "@")


@given(cells)
def test_no_cell_is_a_formula_and_each_round_trips(cell: str) -> None:
    assert not guard(cell).startswith((*_SIGNS, "\t", "\r"))
    assert unguard(guard(cell)) == cell
    assert not [part for part in re.split("[;\t\r\n]", guard(cell)) if part.lstrip(' "').startswith(_SIGNS)]


# As they are stored: without control characters, without blanks at their ends.
texts = st.text(st.characters(exclude_categories=["C"]) | st.just("\n"), max_size=40).map(str.strip)
words = (
    st.sampled_from(
        ["=cmd|' /C calc'!A0", "fan;=HYPERLINK(1)", 'fan;"=1+1;', "fan\n=1;", "'=x", "-5", '"', "a,b;c", "+62 812"]
    )
    | texts
).filter(bool)
short_words = words.map(lambda text: unicodedata.normalize("NFC", text[:9]).strip()).filter(bool)
products = st.fixed_dictionaries(
    {
        "name": words,
        "description": st.none() | words,
        "price": st.integers(1, MAX_RUPIAH),
        "stock_quantity": st.integers(0, 10**9),
        "category": words,
        "tags": st.none() | words,
        "sku": st.none() | words,
        "brand": st.none() | words,
        "condition": st.sampled_from(["new", "used"]),
        "is_available": st.booleans(),
        "pictures": st.none()
        | st.lists(st.sampled_from(["https://a.example/1.jpg", "http://a.example/?a=1,2;3"]), min_size=1, unique=True),
        "variant_group": st.none() | words,
        "variant_values": st.none()
        | st.lists(st.lists(short_words | st.just("a:;\\"), min_size=2, max_size=2), min_size=1, max_size=3),
    }
)


@given(st.lists(products, max_size=5))
def test_written_rows_are_read_back(goods: list[dict[str, Any]]) -> None:
    composed = [
        {name: unicodedata.normalize("NFC", value) if isinstance(value, str) else value for name, value in one.items()}
        for one in goods
    ]
    sheet = write_rows(composed, with_header=True)
    assert list(csv.reader(io.StringIO(sheet.removeprefix("\ufeff"), newline="")))[0] == list(COLUMNS)
    assert values_of(sheet) == composed


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@given(goods=st.lists(products, max_size=3))
def test_no_cell_is_a_formula_for_any_delimiter(delimiter: str, goods: list[dict[str, Any]]) -> None:
    sheet = io.StringIO(write_rows(goods), newline="")
    assert not [cell for cells in csv.reader(sheet, delimiter=delimiter) for cell in cells if cell.startswith(_SIGNS)]
