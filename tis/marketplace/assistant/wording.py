"""Amounts and numbers as answers write them, in both languages. The only place that writes a currency."""

from tis.marketplace.products.delivery import Language

_CONDITIONS: dict[Language, dict[str, str]] = {
    "id": {"new": "baru", "used": "bekas"},
    "en": {"new": "new", "used": "used"},
}


def rupiah(amount: int) -> str:
    """`Rp 11.999.000` in both languages: that is how it stands on price tags."""
    return f"Rp {whole_text(amount, 'id')}"


def whole_text(number: int, language: Language) -> str:
    text = f"{number:,}"
    return text.replace(",", ".") if language == "id" else text


def decimal_text(number: float, language: Language) -> str:
    """Up to two places, none of them a zero at the end."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return text.replace(".", ",") if language == "id" else text


def measure_text(value: object, language: Language) -> str:
    """A value of an attribute as the seller gave it."""
    return decimal_text(value, language) if isinstance(value, float) else str(value)


def kilometres_text(kilometres: float, language: Language) -> str:
    return f"{decimal_text(kilometres, language)} km"


def condition_text(condition: str, language: Language) -> str:
    return _CONDITIONS[language].get(condition, condition)
