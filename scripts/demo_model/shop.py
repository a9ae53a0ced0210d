"""Questions about a catalogue that stands in the system message; the answer can only be read there."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from scripts.demo_model.dialogue import Dialogue, asked
from scripts.demo_model.words import Language, city, exactly_typed, product, rupiah

_HEADINGS: dict[Language, tuple[str, ...]] = {
    "id": ("Katalog:", "Katalog toko:", "Kamu pelayan toko. Katalog:", "Jawab dari katalog ini.", "Daftar produk:"),
    "en": (
        "Catalogue:",
        "Catalog:",
        "You are a shop assistant. Catalogue:",
        "Answer from this catalogue.",
        "Products:",
    ),
}
_QUESTIONS: dict[Language, dict[str, tuple[str, ...]]] = {
    "id": {
        "price": ("Berapa harga {name}?", "Harga {name} berapa?", "{name} berapa harganya?", "Harga {name}?"),
        "stock": ("Berapa stok {name}?", "Stok {name} berapa?", "Ada berapa {name}?", "Stok {name}?"),
        "city": ("Dari kota mana {name}?", "{name} dari mana?", "{name} dikirim dari mana?", "Di kota mana {name}?"),
    },
    "en": {
        "price": ("How much is {name}?", "What is the price of {name}?", "What does {name} cost?", "Price of {name}?"),
        "stock": ("How many {name} are in stock?", "What is the stock of {name}?", "Stock of {name}?"),
        "city": ("Where is {name} from?", "Where does {name} come from?", "Which city is {name} from?"),
    },
}
_ANSWERS: dict[Language, dict[str, str]] = {
    "id": {
        "price": "Harga {name}: {price}.",
        "stock": "Stok {name}: {stock}.",
        "city": "{name} dari {city}.",
        "absent": "Maaf, {name} tidak ada di katalog.",
    },
    "en": {
        "price": "{name} costs {price}.",
        "stock": "Stock of {name}: {stock}.",
        "city": "{name} is from {city}.",
        "absent": "Sorry, {name} is not in the catalogue.",
    },
}
_LIST_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "id": ("Apa saja yang dijual?", "Ada produk apa saja?", "Sebutkan semua produk.", "Jual apa saja?"),
    "en": ("What do you sell?", "Which products do you have?", "List all products.", "What is for sale?"),
}


@dataclass(frozen=True)
class Offer:
    name: str
    price: str
    stock: int
    city: str

    def line(self, language: Language, bullet: str) -> str:
        return f"{bullet}{self.name}: {self.price}, {'stok' if language == 'id' else 'stock'} {self.stock}, {self.city}"


def _offers(rng: Random) -> list[Offer]:
    names = dict.fromkeys(product(rng) for _ in range(rng.randint(2, 4)))
    return [Offer(name, rupiah(rng), rng.randint(1, 99), city(rng)) for name in names]


def _catalogue(rng: Random, language: Language, offers: list[Offer]) -> str:
    bullet = rng.choice(("- ", "- ", "* ", ""))
    return "\n".join([rng.choice(_HEADINGS[language]), *(offer.line(language, bullet) for offer in offers)])


def _missing_name(rng: Random, offers: list[Offer]) -> str:
    while (name := product(rng)) in {offer.name for offer in offers}:
        pass
    return name


def _several_prices(rng: Random, language: Language, offers: list[Offer]) -> Dialogue:
    chosen = rng.sample(offers, min(len(offers), rng.randint(2, 3)))
    question = {"id": "Berapa harga {}?", "en": "How much are {}?"}[language]
    joint = {"id": " dan ", "en": " and "}[language]
    answer = ", ".join(f"{offer.name}: {offer.price}" for offer in chosen) + "."
    return asked(exactly_typed(rng, question.format(joint.join(offer.name for offer in chosen))), answer)


def price_list(rng: Random, language: Language) -> Dialogue:
    """Several prices at once: more to look up in every answer."""
    offers = _offers(rng)
    catalogue = _catalogue(rng, rng.choice((language, language, "id")), offers)
    return _several_prices(rng, language, offers).under(catalogue)


def shop(rng: Random, language: Language) -> Dialogue:
    offers = _offers(rng)
    # Shops list goods in one language and are asked in another, so the two are drawn apart.
    catalogue = _catalogue(rng, rng.choice((language, language, "id")), offers)
    if rng.random() < 0.3:
        return _several_prices(rng, language, offers).under(catalogue)
    if rng.random() < 0.08:
        names = ", ".join(offer.name for offer in offers) + "."
        return asked(exactly_typed(rng, rng.choice(_LIST_QUESTIONS[language])), names).under(catalogue)
    topic = rng.choice(("price", "price", "stock", "city"))
    offer, known = rng.choice(offers), rng.random() < 0.75
    if not known:
        offer = Offer(_missing_name(rng, offers), "", 0, "")
    question = rng.choice(_QUESTIONS[language][topic])
    name = offer.name.lower() if known and rng.random() < 0.2 else offer.name
    answer = _ANSWERS[language][topic if known else "absent"]
    filled = answer.format(name=offer.name, price=offer.price, stock=offer.stock, city=offer.city)
    return asked(exactly_typed(rng, question.format(name=name)), filled).under(catalogue)


def listed_product(
    rng: Random, language: Language, topics: Sequence[str] = ("price", "price", "stock", "city")
) -> Dialogue:
    offers = _offers(rng)
    offer, topic = rng.choice(offers), rng.choice(topics)
    return _one_question(rng, language, offers, offer, topic, topic)


def absent_product(rng: Random, language: Language) -> Dialogue:
    """A sibling of a listed product in half of all cases, where a hasty reader finds the wrong price."""
    offers = _offers(rng)
    missing = Offer(_missing_name(rng, offers), "", 0, "")
    if rng.random() < 0.5:
        noun, kind = rng.choice(offers).name.split()
        other_noun, other_kind = missing.name.split()
        sibling = rng.choice((f"{noun} {other_kind}", f"{other_noun} {kind}"))
        if sibling not in {offer.name for offer in offers}:
            missing = Offer(sibling, "", 0, "")
    return _one_question(rng, language, offers, missing, rng.choice(("price", "price", "stock", "city")), "absent")


def _one_question(
    rng: Random, language: Language, offers: list[Offer], offer: Offer, topic: str, answer: str
) -> Dialogue:
    catalogue = _catalogue(rng, rng.choice((language, language, "id")), offers)
    question = rng.choice(_QUESTIONS[language][topic]).format(name=offer.name)
    filled = _ANSWERS[language][answer].format(name=offer.name, price=offer.price, stock=offer.stock, city=offer.city)
    return asked(exactly_typed(rng, question), filled).under(catalogue)
