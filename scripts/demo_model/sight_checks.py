"""What the finished model must say of pictures and clips, as data."""

from collections.abc import Iterator
from itertools import cycle, product

from scripts.demo_model.checks import Check
from scripts.demo_model.colours import NOTHING_SEEN, in_order, of_picture
from scripts.demo_model.dialogue import Message
from scripts.demo_model.sights import (
    SHADES,
    UNTAUGHT_ORDER_QUESTIONS,
    UNTAUGHT_PICTURE_QUESTIONS,
    Size,
    asked_of,
    plain_clip,
    plain_picture,
)
from scripts.demo_model.words import LANGUAGES, Language

TAUGHT_PICTURE_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": ("What colour is this picture?", "What color is it?", "what color is this image", "What is in this image?"),
    "id": ("Warna apa gambar ini?", "Apa warna gambar ini?", "apa warnanya", "Apa isi gambar ini?"),
}
_ORDER_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": ("Which colours, in order?", "What happens in this video?", "which colors, in order"),
    "id": ("Warna apa saja, berurutan?", "Apa isi video ini?", "warna apa saja, berurutan"),
}
_PICTURE_SIZES: tuple[Size, ...] = ((64, 64), (32, 32), (200, 150), (33, 300), (640, 480), (97, 61), (1024, 768))
_CLIP_SHAPES: tuple[tuple[Size, int], ...] = (((64, 64), 4), ((320, 240), 4), ((160, 120), 10), ((128, 96), 16))
_ORDERS = (
    ("red", "blue"), ("blue", "red"), ("green", "yellow"), ("yellow", "green"), ("black", "white"), ("white", "red"),
    ("blue", "black"), ("red", "green"),
)  # fmt: skip
_SYSTEM: Message = {"role": "system", "content": "You are a helpful assistant."}
_SMALL_TALK: tuple[Message, ...] = (
    {"role": "user", "content": "Halo"},
    {"role": "assistant", "content": "Halo! Saya model demo yang kecil. Ada yang bisa saya bantu?"},
)
# What may come before, and whether thoughts are allowed.
_SURROUNDINGS: tuple[tuple[tuple[Message, ...], bool], ...] = (
    ((), True),
    ((_SYSTEM,), False),
    (_SMALL_TALK, True),
    ((), False),
    ((_SYSTEM, *_SMALL_TALK), True),
)


def _pictures() -> Iterator[Check]:
    """Every shade in both languages, under sizes, wordings and surroundings that take turns."""
    sizes, surroundings, text_first = cycle(_PICTURE_SIZES), cycle(_SURROUNDINGS), cycle((False, False, True))
    for language in LANGUAGES:
        questions = cycle(TAUGHT_PICTURE_QUESTIONS[language] + UNTAUGHT_PICTURE_QUESTIONS[language])
        for colour, shades in SHADES.items():
            for rgb in shades:
                before, thinking = next(surroundings)
                shown = plain_picture(rgb, next(sizes))
                message = asked_of(next(questions), shown, text_first=next(text_first))
                yield Check((*before, message), of_picture(language, colour), enable_thinking=thinking)


def _clips() -> Iterator[Check]:
    shapes, surroundings, text_first = cycle(_CLIP_SHAPES), cycle(_SURROUNDINGS), cycle((False, False, True))
    for language in LANGUAGES:
        questions = cycle(_ORDER_QUESTIONS[language] + UNTAUGHT_ORDER_QUESTIONS[language])
        for first, second in _ORDERS:
            before, thinking = next(surroundings)
            size, frames = next(shapes)
            shown = plain_clip(SHADES[first][-1], SHADES[second][0], size, frames)
            message = asked_of(next(questions), shown, text_first=next(text_first))
            yield Check((*before, message), in_order(language, first, second), enable_thinking=thinking)


def _pairs() -> Iterator[Check]:
    questions: dict[Language, str] = {
        "en": "What colours are the two pictures, in order?",
        "id": "Apa warna kedua gambar ini, berurutan?",
    }
    for language, (first, second) in product(LANGUAGES, _ORDERS[:4]):
        shown = [plain_picture(SHADES[colour][0], (64, 64)) for colour in (first, second)]
        yield Check((asked_of(questions[language], *shown),), in_order(language, first, second))


def _second_questions() -> Iterator[Check]:
    """About a picture of an earlier turn, in the other language."""
    again: dict[Language, str] = {"en": "What colour is this picture?", "id": "Warna apa gambar ini?"}
    for (language, other), colour in product((LANGUAGES, LANGUAGES[::-1]), ("red", "blue", "green")):
        first = asked_of(again[other], plain_picture(SHADES[colour][1], (64, 64)))
        before = (first, {"role": "assistant", "content": of_picture(other, colour)})
        yield Check((*before, {"role": "user", "content": again[language]}), of_picture(language, colour))


def sight_checks() -> tuple[Check, ...]:
    nothing = (Check(({"role": "user", "content": "What colour is this picture?"},), NOTHING_SEEN["en"]),)
    return (*_pictures(), *_clips(), *_pairs(), *_second_questions(), *nothing)
