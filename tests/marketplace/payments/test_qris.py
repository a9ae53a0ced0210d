"""The QRIS code of a shop: what is taken, what is refused with a reason, and the amount in it."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marketplace.payments.codes import qris_text, sealed
from tis.marketplace.payments.qris import MAX_QRIS_CHARS, NoQris, Qris, crc16, read_qris, read_static_qris
from tis.marketplace.tables import MAX_RUPIAH

AMOUNTS = st.integers(1, MAX_RUPIAH // 10)
NAMES = st.text(string.ascii_uppercase + string.digits + " .-", min_size=1, max_size=25).filter(str.strip)


def test_the_crc_is_that_of_the_standard() -> None:
    assert crc16(b"123456789") == 0x29B1


def test_the_code_of_a_shop_says_who_is_paid() -> None:
    code = read_static_qris(qris_text())
    assert (code.merchant_name, code.merchant_city, code.amount) == ("TOKO CONTOH", "PONTIANAK", None)
    assert code.text == qris_text()


def test_a_crc_in_small_letters_is_the_same() -> None:
    text = qris_text()
    assert read_qris(text[:-4] + text[-4:].lower()).text == text


@given(AMOUNTS, NAMES)
@settings(deadline=None)
def test_a_code_with_an_amount_reads_back_as_the_same_shop_and_that_amount(amount: int, name: str) -> None:
    code = read_static_qris(qris_text(f59=name))
    asked = code.with_amount(amount)
    read = read_qris(asked.text)
    assert read == asked and read.amount == amount and read.fields["01"] == "12"
    assert {tag: value for tag, value in read.fields.items() if tag not in ("01", "54")} == {
        tag: value for tag, value in code.fields.items() if tag != "01"
    }
    assert list(read.fields) == sorted(read.fields)


@given(AMOUNTS, st.data())
@settings(deadline=None, max_examples=300)
def test_one_changed_digit_never_passes(amount: int, data: st.DataObject) -> None:
    text = read_qris(qris_text()).with_amount(amount).text
    at = data.draw(st.sampled_from([number for number, one in enumerate(text) if one.isdigit()]))
    other = data.draw(st.sampled_from([one for one in string.digits if one != text[at]]))
    with pytest.raises(NoQris):
        read_qris(text[:at] + other + text[at + 1 :])


@given(st.text(max_size=MAX_QRIS_CHARS + 10))
def test_any_text_is_a_code_or_is_refused_with_a_reason(text: str) -> None:
    for one in (text, sealed(text) if text.isascii() else text):
        try:
            read_qris(one)
        except NoQris as reason:
            assert str(reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no QRIS code"),
        ("https://example.com/pay", "last field must be the CRC"),
        (qris_text()[:-1] + "x", "CRC does not fit"),
        (qris_text(f53="840"), "not for rupiah"),
        (qris_text(f58="SG"), "not for rupiah"),
        (qris_text(f26="", f51=""), "names no account"),
        (qris_text(f26="0104abcd"), "names no scheme"),
        (qris_text(f26="00"), "malformed"),
        (qris_text(f59=""), "name of the merchant"),
        (qris_text(f60=" "), "city of the merchant"),
        (qris_text(f00="02"), "version 01"),
        (qris_text(f01="12", f54="1000"), "upload the shop's static one"),
        (qris_text(f54="1000"), "upload the shop's static one"),
        (qris_text(f54="10.50"), "no whole number"),
        (qris_text(f54="0"), "no whole number"),
        (qris_text(f55="02", f56="500"), "a tip or a fee"),
        (sealed("000201010211000201"), "twice"),
        (sealed("0002"), "malformed"),
        (sealed("x" * 600), "no QRIS code"),
        ("\N{FULLWIDTH DIGIT ZERO}" * 20, "no QRIS code"),
    ],
)
def test_what_is_wrong_with_a_code_is_said(text: str, reason: str) -> None:
    with pytest.raises(NoQris, match=reason):
        read_static_qris(text)


def test_a_code_does_not_change_when_an_amount_is_put_in() -> None:
    code = Qris(dict(read_qris(qris_text()).fields))
    code.with_amount(5)
    assert code.amount is None
