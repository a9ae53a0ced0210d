"""The columns of a sheet of products: their names in headers, English or Indonesian, and how their cells are read."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from tis.errors import Unprocessable
from tis.marketplace.kit.fields import AxisName, AxisText, LongText, Price, ShortName, Sku, Stock, Tags, Title
from tis.marketplace.pictures.service import MAX_PICTURES
from tis.marketplace.variants.schemas import MAX_AXES
from tis.network.url import NoUrl, read_url

MAX_COLUMNS = 100
_MAX_SHOWN_CHARS = 100


class ColumnMapping(BaseModel):
    """What a column of the sheet is read as; `field` is null for one that is ignored."""

    position: int
    column: str
    field: str | None


@dataclass(frozen=True)
class Header:
    """`fields` has the field of each column: None for an unknown one, an empty text for one without a name."""

    names: list[str]
    fields: list[str | None]

    @property
    def mapping(self) -> list[ColumnMapping]:
        return [
            ColumnMapping(position=place, column=name, field=field)
            for place, (name, field) in enumerate(zip(self.names, self.fields, strict=True), start=1)
            if name or field
        ]

    @property
    def unknown(self) -> list[str]:
        return [name for name, field in zip(self.names, self.fields, strict=True) if field is None]


def read_header(number: int, cells: Sequence[str], chosen: Sequence[str | None] | None = None) -> Header:
    """`number` is the row that the header is in. `chosen` has the field of each column, whatever its name."""
    names = [_shown(cell) for cell in without_blank_end(cells)]
    if len(names) > MAX_COLUMNS:
        raise Unprocessable(f"row {number}: a sheet has at most {MAX_COLUMNS} columns")
    if chosen is not None:
        return _chosen_header(number, names, chosen)
    fields = [FIELD_OF_NAME.get(_key_of(name)) if name else "" for name in names]
    for place, field in enumerate(fields):
        if field and (first := fields.index(field)) < place:
            raise Unprocessable(f"row {number}: columns `{names[first]}` and `{names[place]}` are both `{field}`")
    return Header(names, fields)


def guessed_fields(cells: Sequence[str]) -> list[str | None]:
    """By the names of the columns; of two for one field, the first is it."""
    guessed = [FIELD_OF_NAME.get(_key_of(_shown(cell))) for cell in without_blank_end(cells)]
    return [None if field in guessed[:place] else field for place, field in enumerate(guessed)]


def parse_columns(columns: str) -> list[str | None]:
    """`name,price,,sku`."""
    fields = [field.strip() or None for field in columns.split(",")]
    named = [field for field in fields if field]
    if unknown := [field for field in named if field not in COLUMNS]:
        raise Unprocessable(f"columns: `{unknown[0][:_MAX_SHOWN_CHARS]}` is no field; there are {', '.join(COLUMNS)}")
    if twice := [field for field in named if named.count(field) > 1]:
        raise Unprocessable(f"columns: `{twice[0]}` stands for two columns")
    if not named:
        raise Unprocessable(f"columns: name the field of one column at least; there are {', '.join(COLUMNS)}")
    return fields


def _chosen_header(number: int, names: list[str], chosen: Sequence[str | None]) -> Header:
    if any(chosen[len(names) :]):
        raise Unprocessable(f"row {number}: columns has {len(chosen)} fields, the header {len(names)} cells")
    return Header(names, [*chosen[: len(names)], *[None] * (len(names) - len(chosen))])


def without_blank_end(cells: Sequence[str]) -> Sequence[str]:
    """Spreadsheets write empty cells behind the last column."""
    length = len(cells)
    while length and not cells[length - 1].strip():
        length -= 1
    return cells[:length]


def _shown(cell: str) -> str:
    return " ".join(cell.split())[:_MAX_SHOWN_CHARS]


def _key_of(name: str) -> str:
    """Without units in brackets, marks and punctuation: `Harga (Rp)*` is `harga`, `stock_quantity` `stock quantity`."""
    words = re.sub(r"\([^)]*\)", " ", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(re.sub(r"[\W_]+", " ", words).split())


_NAMES = {
    "name": "name, product, product name, title, nama, nama produk, nama barang, produk, barang, judul",
    "description": "description, deskripsi, deskripsi produk, keterangan",
    "price": "price, unit price, harga, harga jual, harga satuan, harga barang, harga produk",
    "stock_quantity": "stock quantity, stock, quantity, qty, stok, stok barang, jumlah, jumlah stok, persediaan",
    "category": "category, kategori, kategori produk, kategori barang",
    "tags": "tags, tag, label, kata kunci",
    "sku": "sku, product code, item code, kode, kode sku, kode barang, kode produk",
    "brand": "brand, merek, merk",
    "condition": "condition, kondisi, kondisi barang",
    "is_available": "is available, available, tersedia, dijual, aktif",
    "pictures": "pictures, picture, images, image, picture urls, image urls, foto, foto produk, gambar, url foto, "
    "url gambar",
    "variant_group": "variant group, group, grup varian, kelompok varian, grup, produk induk",
    "variant_values": "variant values, variant, variants, options, varian, nilai varian, pilihan",
}
FIELD_OF_NAME = {name: field for field, names in _NAMES.items() for name in names.split(", ")}


def _number(cell: str) -> int:
    """Takes separators between groups of three digits, and `,00`, `.00` or `,-` at the end; no other fraction."""
    match = _NUMBER.fullmatch(cell)
    if not match:
        raise ValueError("must be a whole number, such as 15999000, 15.999.000 or 15.999.000,00")
    return int(re.sub(r"[.,]", "", match[1]))


_NUMBER = re.compile(
    r"([0-9]{1,16}|[0-9]{1,3}(?:\.[0-9]{3}){1,5}(?!\.)|[0-9]{1,3}(?:,[0-9]{3}){1,5}(?!,))(?:[.,](?:0{1,2}|-))?"
)
_CURRENCY = re.compile(r"^(?:rp\.?|idr)\s*", re.IGNORECASE)


def _one_of(words: dict[str, Any]) -> Callable[[str], Any]:
    def parse(cell: str) -> Any:
        if cell.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return words[cell.lower()]

    return parse


def _stock(cell: str) -> int:
    return int(_STOCK.validate_python(_number(cell)))


def _price(cell: str) -> int:
    return int(_PRICE.validate_python(_number(_CURRENCY.sub("", cell))))


def _pictures(cell: str) -> list[str]:
    """URLs, with spaces or line breaks between them."""
    urls = list(dict.fromkeys(cell.split()))
    if len(urls) > MAX_PICTURES:
        raise ValueError(f"must have at most {MAX_PICTURES} URLs")
    for url in urls:
        try:
            if not url.startswith("/api/"):
                read_url(url, any_port=True)
        except NoUrl:
            raise ValueError(f"must be http(s) URLs with spaces between them, which {url[:60]!r} is not") from None
    return urls


def _variant_values(cell: str) -> list[list[str]]:
    """`ukuran: 42; warna: merah`. A list of pairs, as a database may put the fields of an object in another order."""
    pairs = [_split(one, ":", 2) for one in _split(cell, ";") if one.strip()]
    if not 1 <= len(pairs) <= MAX_AXES or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"must be one to {MAX_AXES} axes with their values, such as `ukuran: 42; warna: merah`")
    named = ([re.sub(r"\\([\\;:])", r"\1", side).strip() for side in pair] for pair in pairs)
    return [[_AXIS_NAME.validate_python(name), _AXIS_VALUE.validate_python(value)] for name, value in named]


def _split(text: str, sign: str, most: int = MAX_AXES + 1) -> list[str]:
    """At signs without a backslash before them, into so many parts at most."""
    parts, letters = [""], iter(text)
    for letter in letters:
        if letter == sign and len(parts) < most:
            parts.append("")
        else:
            parts[-1] += letter + (next(letters, "") if letter == "\\" else "")
    return parts


def variant_values_text(pairs: Iterable[Sequence[str]]) -> str:
    """What `_variant_values` reads."""
    return "; ".join(": ".join(re.sub(r"([\\;:])", r"\\\1", side) for side in pair) for pair in pairs)


_AXIS_NAME: TypeAdapter[str] = TypeAdapter(AxisName)
_AXIS_VALUE: TypeAdapter[str] = TypeAdapter(AxisText)
_STOCK: TypeAdapter[int] = TypeAdapter(Stock)
_PRICE: TypeAdapter[int] = TypeAdapter(Price)
_CONDITIONS = {"new": "new", "used": "used", "baru": "new", "bekas": "used"}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "ya": True, "tidak": False}
COLUMNS: dict[str, Callable[[str], Any]] = {
    "name": TypeAdapter(Title).validate_python,
    "description": TypeAdapter(LongText).validate_python,
    "price": _price,
    "stock_quantity": _stock,
    "category": TypeAdapter(ShortName).validate_python,
    "tags": TypeAdapter(Tags).validate_python,
    "sku": TypeAdapter(Sku).validate_python,
    "brand": TypeAdapter(ShortName).validate_python,
    "condition": _one_of(_CONDITIONS),
    "is_available": _one_of(_BOOLEANS),
    "pictures": _pictures,
    "variant_group": TypeAdapter(Title).validate_python,
    "variant_values": _variant_values,
}
NULLABLE = frozenset({"description", "tags", "sku", "brand", "pictures", "variant_group", "variant_values"})
