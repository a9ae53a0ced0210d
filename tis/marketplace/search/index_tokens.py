"""Tokens that stand beside the words of a product in the index. No word equals one: their signs are not letters."""

from tis.marketplace.reading.tokens import tokenize


def category_token(key: str) -> str | None:
    """Of the category that a product is in, or that a text names."""
    words = tokenize(key)
    return "§" + "·".join(words) if words else None


def head_token(word: str) -> str:
    """Of the word that a product's name begins with, behind its brand: a "Gelas kopi" is no coffee."""
    return f"§·{word}"


def is_head_token(token: str) -> bool:
    return token.startswith("§·")


def shop_token(word: str) -> str:
    """Of a word of the shop's name, city or province. It stands behind the cell."""
    return f"¶·{word}"


def is_cell_token(token: str) -> bool:
    return token.startswith("¤")


def is_of_shop(token: str) -> bool:
    return token.startswith(("¤", "¶"))


def cell_token(row: int, column: int) -> str:
    """Token of a grid cell of a quarter of a degree, about 28 km."""
    return f"¤{row}x{column}"
