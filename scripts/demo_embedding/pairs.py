"""What the small embedding model and the small reranker learn: which sentence means which goods, in two languages.

All of it is the repository's own: what goods are for (`uses.csv`, written for this), the synonyms and categories of the
marketplace, and the words of its generated catalogue.
"""

import csv
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_MARKETPLACE = REPOSITORY / "tis" / "marketplace"
_WANTS_ID = (
    "{}",
    "{}",
    "sesuatu untuk {}",
    "alat untuk {}",
    "alat buat {}",
    "barang untuk {}",
    "buat {}",
    "untuk {}",
    "yang bisa {}",
    "biar {}",
    "barang yang bikin {}",
    "butuh sesuatu buat {}",
    "cari alat biar {}",
    "saya mau {}",
    "supaya {}",
    "apa yang cocok untuk {}",
)
_WANTS_EN = (
    "{}",
    "{}",
    "something to {}",
    "something for this: {}",
    "a thing to {}",
    "I need something to {}",
    "I want to {}",
    "to {}",
    "for when I {}",
    "what do I use to {}",
    "help me {}",
    "what can {}",
    "something that will {}",
)
_EXTRAS = "baru murah original promo garansi resmi portabel mini besar hitam putih usb premium ready stok".split()
_ANY_LABELS = ("accessories", "lainnya", "kebutuhan rumah", "aksesori, terbaru", "home, promo")
_SPEAKS_OF_USE = ("{}", "Cocok untuk {}.", "Untuk {}.", "Membantu {}.", "Great to {}.", "For when you {}.")


@dataclass(frozen=True)
class Goods:
    """A kind of goods: what it is called, what it is for, and what else sellers write of it."""

    names: tuple[str, ...]
    uses_id: tuple[str, ...] = ()
    uses_en: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    brands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """`goods` numbers the kind: two pairs of one kind are no examples of what differs."""

    query: str
    product: str
    goods: int


class Lessons:
    """Draws pairs; the same random numbers draw the same pairs."""

    def __init__(self) -> None:
        self.goods = [*_goods_with_uses(), *_goods_of_catalogue(), *_goods_of_synonyms()]
        self._num_with_uses = sum(bool(one.uses_id) for one in self.goods)
        brands = sorted({brand for one in self.goods for brand in one.brands})
        self._brands = tuple(brands)

    def texts(self) -> Iterator[str]:
        """Everything that a tokenizer should have words for."""
        for one in self.goods:
            yield from (*one.names, *one.uses_id, *one.uses_en, *one.words, *one.brands)
        yield from (text.replace("{}", " ") for text in (*_WANTS_ID, *_WANTS_EN, *_SPEAKS_OF_USE))
        yield " ".join((*_EXTRAS, *_ANY_LABELS))

    def draw(self, numbers: random.Random) -> Pair:
        """Every second pair is of goods whose use is known."""
        knows_use = numbers.random() < 0.55
        number = numbers.randrange(self._num_with_uses) if knows_use else numbers.randrange(len(self.goods))
        goods = self.goods[number]
        use = _use(goods, numbers) if goods.uses_id and numbers.random() < 0.75 else None
        query = _wanted(goods, use, numbers) if use else numbers.choice(goods.names)
        return Pair(query, self._product(goods, numbers, use), number)

    def product(self, number: int, numbers: random.Random) -> str:
        return self._product(self.goods[number], numbers, None)

    def _product(self, goods: Goods, numbers: random.Random, said: str | None) -> str:
        """As a seller writes it. What the query says is seldom in it: then the words would be enough."""
        parts = [numbers.choice(goods.names)]
        if numbers.random() < 0.4:
            parts.append(numbers.choice(goods.brands or self._brands))
        if numbers.random() < 0.3:
            parts.append(f"{numbers.choice('ABCDGKMRSTX')}{numbers.randrange(1, 900)}")
        parts += numbers.sample(_EXTRAS, numbers.randrange(3))
        if numbers.random() < 0.3:
            parts.append(numbers.choice(goods.names))
        if goods.words and numbers.random() < 0.6:
            parts += numbers.sample(goods.words, min(len(goods.words), numbers.randrange(1, 5)))
        text = " ".join(parts)
        if numbers.random() < 0.5:
            text += ". " + numbers.choice((*_ANY_LABELS, *goods.names))
        others = [one for one in (*goods.uses_id, *goods.uses_en) if one != said]
        if others and numbers.random() < 0.4:
            text += ". " + numbers.choice(_SPEAKS_OF_USE).format(numbers.choice(others))
        return text


def _use(goods: Goods, numbers: random.Random) -> str:
    return numbers.choice(goods.uses_id if numbers.random() < 0.5 else goods.uses_en)


def _wanted(goods: Goods, use: str, numbers: random.Random) -> str:
    """Sometimes with a word left out, so that no single word is all that is learned."""
    words = use.split()
    if len(words) > 2 and numbers.random() < 0.3:
        words.pop(numbers.randrange(len(words)))
    return numbers.choice(_WANTS_ID if use in goods.uses_id else _WANTS_EN).format(" ".join(words))


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _split(text: str, sign: str = "|") -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(sign) if one.strip())


def _goods_with_uses() -> Sequence[Goods]:
    return [
        Goods(_split(row["goods_id"]) + _split(row["goods_en"]), _split(row["uses_id"]), _split(row["uses_en"]))
        for row in _rows(Path(__file__).with_name("uses.csv"))
    ]


def _goods_of_catalogue() -> Sequence[Goods]:
    categories = {row["slug"]: row for row in _rows(_MARKETPLACE / "taxonomy" / "categories.csv")}
    return [
        Goods(
            (*_split(row["names"]), categories[row["category"]]["name_id"], categories[row["category"]]["name_en"]),
            words=tuple(row["words"].split()),
            brands=_split(row["brands"]),
        )
        for row in _rows(_MARKETPLACE / "seed" / "products.csv")
    ]


def _goods_of_synonyms() -> Sequence[Goods]:
    """A row that leads one way names a group of goods: its words are no names of each other."""
    rows = _rows(_MARKETPLACE / "taxonomy" / "synonyms.csv")
    return [Goods((row["term"], *_split(row["means"], ","))) for row in rows if not row["is_broader"]]
