"""Types of the fields in requests, with their limits and checks."""

import math
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from email_validator import EmailNotValidError, validate_email
from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from tis.marketplace.tables import MAX_RUPIAH


def email_key(email: str) -> str:
    """Equal for all spellings of one mailbox. Dots and +tags are kept: their meaning differs between providers."""
    return unicodedata.normalize("NFKC", email).casefold()


def key_of(words: str) -> str:
    """Equal for spellings of a city or category that count as the same."""
    return " ".join(unicodedata.normalize("NFKC", words).casefold().split())


def _clean(value: str) -> str:
    """Removes control, zero-width and direction-changing characters, which mislead readers and models."""
    visible = (c for c in unicodedata.normalize("NFC", value) if c in "\n\t" or unicodedata.category(c) not in _HIDDEN)
    return "".join(visible).strip()


MAX_ID = 2**63 - 1  # of a BIGINT column
_MAX_EMAIL_CHARS = 320
MAX_ALT_CHARS = 300
MAX_ATTRIBUTES = 50  # of a product
MAX_STOCK = 1_000_000_000
_PHONE_REGION = "ID"  # for numbers without a country code
_HIDDEN = ("Cc", "Cf", "Cs", "Co")
# Letters that show nothing: fillers of Hangul, and of braille.
_NO_BLANKS = str.maketrans("", "", "\u115f\u1160\u3164\uffa0\u2800")


def _not_empty(value: str) -> str:
    if not value.translate(_NO_BLANKS).strip():
        raise ValueError("must not be empty")
    return value


def _whole(value: Any) -> Any:
    """Accepts 15999000.0 for 15999000, and no fractions of a rupiah."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    if isinstance(value, float):
        if not math.isfinite(value) or value != int(value):
            raise ValueError("must be a whole number")
        return int(value)
    return value


def _phone_number(value: str) -> str:
    """E.164 for a valid number; a number that is only possible stays as typed, as numbering plans change often."""
    from phonenumbers import (
        NumberParseException,
        PhoneNumberFormat,
        format_number,
        is_possible_number,
        is_valid_number,
        parse,
    )

    try:
        number = parse(value, _PHONE_REGION)
    except NumberParseException:
        raise ValueError("not a telephone number") from None
    if not is_possible_number(number):
        raise ValueError("not a telephone number: too short, too long, or of no country")
    return format_number(number, PhoneNumberFormat.E164) if is_valid_number(number) else value


def _email(value: str) -> str:
    try:
        email = validate_email(value, check_deliverability=False, test_environment=True).normalized
    except EmailNotValidError as error:
        raise ValueError(f"not an e-mail address: {error}") from None
    if len(email_key(email)) > _MAX_EMAIL_CHARS:  # one letter of Arabic is eighteen as it is compared
        raise ValueError(f"must have at most {_MAX_EMAIL_CHARS} characters")
    return email


def text_up_to(max_chars: int) -> Any:
    return Annotated[str, *_up_to(max_chars), AfterValidator(_not_empty)]


def _up_to(max_chars: int) -> tuple[Any, ...]:
    def check_length(value: str) -> str:
        # NFC may lengthen a text: some letters of Hebrew and Hindi become two or three.
        if max(len(value), len(key_of(value))) > max_chars:
            raise ValueError(f"must have at most {max_chars} characters")
        return value

    return Field(max_length=max_chars), AfterValidator(_clean), AfterValidator(check_length)


def words_up_to(max_chars: int) -> Any:
    """For values that are compared and not stored; may be empty."""
    return Annotated[str, *_up_to(max_chars)]


Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Name = text_up_to(200)
Title = text_up_to(255)
# Why a product is not offered, or a talk does not go on.
ClosedReason = Literal["product_gone", "shop_closed", "shop_suspended"]
ShortName = text_up_to(100)  # of a category, a brand, an attribute
City = text_up_to(100)
VERIFIED_DESCRIPTION = "`true`: only shops with the badge: its person showed an identity card"
CITY_FILTER_DESCRIPTION = (
    "a city, regency or province, with or without Kota or Kab., also a short name: `jaksel`, `jabar`, `jabodetabek`; "
    "or a part of a name"
)
PLACE_CODE_DESCRIPTION = (
    "of the province (two digits) or city or regency (four) that `city` and `province` name, by the Ministry of Home "
    "Affairs; null if that is not clear"
)
Keyword = text_up_to(100)
PhoneNumber = Annotated[str, *_up_to(32), AfterValidator(_not_empty), AfterValidator(_phone_number)]
Address = text_up_to(500)
LongText = Annotated[str, *_up_to(20_000)]
Tags = Annotated[str, *_up_to(1000)]
TypedEmail = words_up_to(320)
Words = words_up_to(100)  # of a filter
Sku = text_up_to(100)
ReviewText = text_up_to(5000)
ReasonText = text_up_to(500)  # why an admin did something
AltText = text_up_to(MAX_ALT_CHARS)  # what a picture shows
AxisName = text_up_to(40)  # what variants differ in
AxisText = text_up_to(60)
Reason = text_up_to(200)  # why a shop corrects its stock, or refuses a reservation or an order
AnswerText = text_up_to(2000)  # of a shop, to a review
Email = Annotated[str, Field(max_length=_MAX_EMAIL_CHARS), AfterValidator(_email)]
Price = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=MAX_RUPIAH)]
Fee = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=MAX_RUPIAH, strict=True)]
Stock = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=MAX_STOCK)]
# No farther: in UTC, the first and the last hours of the calendar are no dates.
Moment = Annotated[AwareDatetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(3000, 1, 1, tzinfo=UTC))]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]


def abbreviated_name(name: str) -> str:
    """First name and initial; of a single word, which may be the family name, the initial.

    Some people's name is their e-mail address: the part behind the @ is never shown.
    """
    words = name.partition("@")[0].split()
    if not words:
        return "?"
    initial = f"{words[-1][0].upper()}."
    return initial if len(words) == 1 else f"{words[0]} {initial}"
