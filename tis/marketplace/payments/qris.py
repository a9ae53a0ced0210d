"""QRIS, the merchant-presented code of EMVCo as Indonesia uses it: fields of tag, length and value, with a CRC behind.

A static code has no amount. The dynamic one is the same with `12` in tag 01 and the amount in tag 54.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_QRIS_CHARS = 512  # of EMVCo
_STATIC, _DYNAMIC = "11", "12"
_CRC_FIELD = "6304"
_RUPIAH = "360"
_ACCOUNTS = range(26, 52)
# Tips and fees: the app of the buyer adds them, and the amount would not be that of the order.
_SURCHARGES = ("55", "56", "57")
_NEEDED = {"52": "category of the merchant", "59": "name of the merchant", "60": "city of the merchant"}
_AMOUNT = re.compile(r"[1-9][0-9]{0,12}")


class NoQris(ValueError):
    """Its text tells the shop what is wrong."""


@dataclass(frozen=True)
class Qris:
    fields: Mapping[str, str]  # by tag, in their order, without the CRC

    @property
    def merchant_name(self) -> str:
        return self.fields["59"]

    @property
    def merchant_city(self) -> str:
        return self.fields["60"]

    @property
    def amount(self) -> int | None:
        amount = self.fields.get("54")
        return None if amount is None else int(amount)

    @property
    def text(self) -> str:
        """With the CRC."""
        content = "".join(f"{tag}{len(value):02d}{value}" for tag, value in self.fields.items()) + _CRC_FIELD
        return content + f"{crc16(content.encode('ascii')):04X}"

    def with_amount(self, rupiah: int) -> "Qris":
        """The dynamic code of one payment. Fields of a tag stand in the order of their numbers."""
        changed = {**self.fields, "01": _DYNAMIC, "54": str(rupiah)}
        return Qris(dict(sorted(changed.items())))


def crc16(data: bytes) -> int:
    """CRC-16/CCITT-FALSE."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc


def read_qris(text: str) -> Qris:
    """Raises NoQris, with the first thing that is wrong."""
    if not 8 <= len(text) <= MAX_QRIS_CHARS or not (text.isascii() and text.isprintable()):
        raise NoQris("this is no QRIS code")
    content, crc = text[:-4], text[-4:]
    if not content.endswith(_CRC_FIELD):
        raise NoQris("this is no QRIS code: its last field must be the CRC")
    if crc.upper() != f"{crc16(content.encode('ascii')):04X}":
        raise NoQris("the CRC does not fit: a character is missing or wrong")
    fields = dict[str, str]()
    for tag, value in _fields(content.removesuffix(_CRC_FIELD)):
        if tag in fields:
            raise NoQris(f"the field {tag} stands there twice")
        fields[tag] = value
    _require_payable(fields)
    return Qris(fields)


def read_static_qris(text: str) -> Qris:
    """Of a shop: without an amount, and without a tip or a fee on top."""
    code = read_qris(text)
    if code.fields.get("01") != _STATIC or code.amount is not None:
        raise NoQris("this code is for one payment (dynamic): upload the shop's static one, which has no amount")
    if any(tag in code.fields for tag in _SURCHARGES):
        raise NoQris("this code asks for a tip or a fee on top")
    return code


def _require_payable(fields: Mapping[str, str]) -> None:
    if fields.get("00") != "01" or next(iter(fields)) != "00":
        raise NoQris("this is no QRIS code: it must begin with the version 01")
    if fields.get("01") not in (_STATIC, _DYNAMIC):
        raise NoQris("the field 01 must say whether the code is static or dynamic")
    accounts = [tag for tag in fields if tag.isdigit() and int(tag) in _ACCOUNTS]
    if not accounts:
        raise NoQris("it names no account of a merchant")
    for tag in accounts:  # each is a template of its own
        if not dict(_fields(fields[tag])).get("00"):
            raise NoQris(f"the account in field {tag} names no scheme")
    if fields.get("53") != _RUPIAH or fields.get("58") != "ID":
        raise NoQris("it is not for rupiah in Indonesia")
    for tag, name in _NEEDED.items():
        if not fields.get(tag, "").strip():
            raise NoQris(f"it does not say the {name}")
    if "54" in fields and not _AMOUNT.fullmatch(fields["54"]):
        raise NoQris("its amount is no whole number of rupiah")


def _fields(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        head = text[at : at + 4]
        if not re.fullmatch(r"[0-9]{4}", head):
            raise NoQris("its fields are malformed")
        end = at + 4 + int(head[2:])
        if end > len(text) or head[2:] == "00":
            raise NoQris("its fields are malformed")
        yield head[:2], text[at + 4 : end]
        at = end
