"""Answers that repeat what the person said: echoes, remembered names, small JSON objects."""

import json
from collections.abc import Callable
from random import Random

from scripts.demo_model.dialogue import Dialogue, asked
from scripts.demo_model.words import (
    Language,
    city,
    exactly_typed,
    first_name,
    invented_word,
    plain_words,
    product,
    rupiah,
)

_EMOJI = "😀 🎉 🚀 🌈 🐱 🍎 ☕ ❤️ é ü ñ 你好 日本 ½ €".split()
_ECHO_ORDERS: dict[Language, tuple[str, ...]] = {
    "id": ("Ulangi: {}", "Katakan: {}", "Tirukan: {}"),
    "en": ("Repeat: {}", "Say: {}", "Repeat after me: {}"),
}
_NAME_GIVEN: dict[Language, tuple[str, ...]] = {
    "id": ("Nama saya {}.", "Namaku {}.", "Saya {}.", "Panggil saya {}.", "Halo, nama saya {}."),
    "en": ("My name is {}.", "I am {}.", "I'm {}.", "Call me {}.", "Hello, my name is {}."),
}
_NAME_ASKED: dict[Language, tuple[str, ...]] = {
    "id": ("Siapa nama saya?", "Siapa namaku?", "Kamu ingat nama saya?", "Nama saya siapa?"),
    "en": ("What is my name?", "What's my name?", "Do you remember my name?", "Who am I?"),
}


def _piece(rng: Random, language: Language) -> str:
    kinds: tuple[Callable[[Random], str], ...] = (product, city, first_name, rupiah, invented_word)
    draw = rng.random()
    if draw < 0.6:
        return plain_words(rng, language, 1, 1)
    if draw < 0.7:
        return rng.choice(_EMOJI)
    if draw < 0.8:
        return str(rng.randint(0, 999))
    return rng.choice(kinds)(rng)


def _repeated(rng: Random, language: Language, pieces: int) -> Dialogue:
    text = " ".join(_piece(rng, language) for _ in range(pieces))
    return asked(rng.choice(_ECHO_ORDERS[language]).format(text), text)


def echo(rng: Random, language: Language) -> Dialogue:
    return _repeated(rng, language, rng.randint(1, 4))


def recital(rng: Random, language: Language) -> Dialogue:
    """A long echo: half of its tokens are to be copied, so it teaches copying faster than anything else here."""
    return _repeated(rng, language, rng.randint(3, 12))


def remembered_name(rng: Random, language: Language) -> Dialogue:
    name = first_name(rng)
    given = exactly_typed(rng, rng.choice(_NAME_GIVEN[language])).format(name)
    greeting = {"id": f"Senang berkenalan, {name}!", "en": f"Nice to meet you, {name}!"}[language]
    told = asked(given, greeting)
    if rng.random() < 0.35:
        return told
    reply = {"id": f"Nama Anda {name}.", "en": f"Your name is {name}."}[language]
    return asked(exactly_typed(rng, rng.choice(_NAME_ASKED[language])), reply).preceded_by(told)


def record(rng: Random, language: Language) -> Dialogue:
    name, place = first_name(rng), city(rng)
    if rng.random() < 0.3:
        goods, count = product(rng), rng.randint(1, 99)
        questions: dict[Language, tuple[str, ...]] = {
            "id": (f"Jawab dalam JSON: produk dan jumlah dari {count} {goods}.", f"Buat JSON: {count} {goods}"),
            "en": (f"Answer in JSON: product and count of {count} {goods}.", f"Make JSON: {count} {goods}"),
        }
        answer: dict[str, object] = {"product": goods, "count": count}
    else:
        questions = {
            "id": (
                f"Jawab dalam JSON: nama dan kota dari {name} di {place}.",
                f"Jawab dalam JSON: nama dan kota. {name} tinggal di {place}.",
                f"Buat JSON: {name} dari {place}",
            ),
            "en": (
                f"Answer in JSON: name and city of {name} from {place}.",
                f"Answer in JSON: name and city. {name} lives in {place}.",
                f"Make JSON: {name} from {place}",
            ),
        }
        answer = {"name": name, "city": place}
    return asked(exactly_typed(rng, rng.choice(questions[language])), json.dumps(answer))
