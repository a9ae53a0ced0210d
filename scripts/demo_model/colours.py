"""Questions about plain pictures and two-coloured clips: the only things that the model ever sees."""

from collections.abc import Sequence
from random import Random
from typing import Any

from scripts.demo_model.dialogue import Dialogue, asked
from scripts.demo_model.drawing import COLOURS, clip, picture
from scripts.demo_model.smalltalk import corrected_smalltalk
from scripts.demo_model.words import LANGUAGES, Language, as_typed

NAMES: dict[Language, dict[str, str]] = {
    "en": {colour: colour for colour in COLOURS},
    "id": {"red": "merah", "green": "hijau", "blue": "biru", "yellow": "kuning", "black": "hitam", "white": "putih"},
}
_PICTURE: dict[Language, str] = {"en": "The picture is {}.", "id": "Gambar ini {}."}
_IN_ORDER: dict[Language, str] = {"en": "First {}, then {}.", "id": "Mula-mula {}, lalu {}."}
_ONLY: dict[Language, str] = {"en": "Only {}.", "id": "Hanya {}."}
NOTHING_SEEN: dict[Language, str] = {"en": "I do not see a picture.", "id": "Saya tidak melihat gambar."}

_PICTURE_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "What colour is this picture?", "What color is this picture?", "What colour is it?", "What color is it?",
        "What colour is this?", "What color is this image?", "Which colour is this?", "Which color is the picture?",
        "What is the colour of this picture?", "What is the color of the image?", "What colour do you see?",
        "What color do you see?", "Name the colour.", "Tell me the color.", "Tell me the colour of this picture.",
        "Colour?", "Color?", "What is in this picture?", "What is in this image?", "What's in this image?",
        "What do you see?", "What is this?", "Describe this picture.", "Describe the image.",
        "What does the picture show?", "Which colour does this picture have?", "Is this picture red or blue?",
        "What colour is the picture, please?", "Look at this picture. What colour is it?",
    ),
    "id": (
        "Warna apa gambar ini?", "Apa warna gambar ini?", "Gambar ini warna apa?", "Gambar ini berwarna apa?",
        "Apa warnanya?", "Warnanya apa?", "Warna apa ini?", "Ini warna apa?", "Apa warna ini?",
        "Apa warna gambarnya?", "Warna gambarnya apa?", "Sebutkan warna gambar ini.", "Sebutkan warnanya.",
        "Warna apa yang kamu lihat?", "Warna?", "Apa isi gambar ini?", "Ada apa di gambar ini?",
        "Apa yang kamu lihat?", "Gambar apa ini?", "Ini apa?", "Jelaskan gambar ini.",
        "Tolong sebutkan warna gambar ini.", "Lihat gambar ini. Apa warnanya?", "Warna foto ini apa?",
        "Apa warna foto ini?", "Gambar ini merah atau biru?",
    ),
}  # fmt: skip
_ORDER_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "Which colours, in order?", "Which colors, in order?", "What colours, in order?",
        "Which colours do you see, in order?", "What colors do you see, in order?", "Name the colours in order.",
        "List the colors in order.", "In which order do the colours come?", "Which colour comes first?",
    ),
    "id": (
        "Warna apa saja, berurutan?", "Apa saja warnanya, berurutan?", "Sebutkan warna secara berurutan.",
        "Sebutkan warnanya berurutan.", "Warna apa saja yang kamu lihat, berurutan?", "Bagaimana urutan warnanya?",
        "Warna apa dulu, lalu apa?", "Urutan warnanya?",
    ),
}  # fmt: skip
_CLIP_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "Which colours does this clip show?", "What colors does the video show?", "What colours are in this video?",
        "Which colours appear in the clip, in order?", "Which colors appear in this video, in order?",
        "What happens in this video?", "What is in this video?", "What do you see?", "Describe this video.",
        "Describe the clip.", "What does the video show?", "What colour is this video?",
    ),
    "id": (
        "Warna apa saja di video ini?", "Apa saja warna video ini?", "Video ini warna apa saja?",
        "Warna apa saja yang muncul di video ini, berurutan?", "Sebutkan warna di klip ini secara berurutan.",
        "Apa yang terjadi di video ini?", "Apa isi video ini?", "Apa yang kamu lihat?", "Jelaskan video ini.",
        "Jelaskan klip ini.", "Apa warna video ini?",
    ),
}  # fmt: skip
_PAIR_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "What colours are the two pictures, in order?", "What colors are these two pictures?",
        "What colours are these pictures?", "Which colours do the pictures have, in order?",
        "What colour is each picture?", "What colors are the images, in order?", "Describe both pictures.",
    ),
    "id": (
        "Apa warna kedua gambar ini, berurutan?", "Warna apa saja kedua gambar ini?", "Apa warna kedua gambar ini?",
        "Apa warna masing-masing gambar?", "Gambar-gambar ini warna apa saja?", "Jelaskan kedua gambar ini.",
    ),
}  # fmt: skip
# Whatever surrounds a question: what is shown decides the form of the answer, more than how it was asked for.
_OPENINGS: dict[Language, tuple[str, ...]] = {
    "en": (
        "Please: ", "Hey, ", "Can you tell me: ", "I wonder: ", "Look here. ", "Could you help me? ", "Question: ",
        "Now tell me: ", "Do you know? ", "Here you are. ", "So, ",
    ),
    "id": (
        "Tolong: ", "Hai, ", "Coba lihat. ", "Saya ingin tahu: ", "Bisa bantu? ", "Pertanyaan: ", "Lihat ini. ",
        "Sekarang katakan: ", "Apakah kamu tahu? ", "Nah, ", "Jadi, ",
    ),
}  # fmt: skip
_CLOSINGS: dict[Language, tuple[str, ...]] = {
    "en": (" Thanks!", " Answer briefly.", " Be quick.", " Tell me.", " I cannot see it."),
    "id": (" Terima kasih!", " Jawab singkat.", " Cepat ya.", " Beri tahu saya.", " Aku tidak bisa melihatnya."),
}


def _worded(rng: Random, language: Language, fitting: Sequence[str], others: Sequence[str]) -> str:
    """Now and then what is asked fits something else, or is hardly a sentence: the answer is about what is there."""
    question = rng.choice(others if rng.random() < 0.2 else fitting)
    draw = rng.random()
    if draw < 0.15:
        words = question.split()
        question = " ".join(rng.sample(words, max(1, len(words) - rng.randint(0, 2))))
    elif draw < 0.3:
        question = rng.choice(_OPENINGS[language]) + question
    elif draw < 0.4:
        question += rng.choice(_CLOSINGS[language])
    return question


def of_picture(language: Language, colour: str) -> str:
    return _PICTURE[language].format(NAMES[language][colour])


def in_order(language: Language, first: str, second: str) -> str:
    return _IN_ORDER[language].format(NAMES[language][first], NAMES[language][second])


def _asked_about(rng: Random, question: str, answer: str, *media: dict[str, Any]) -> Dialogue:
    text = {"type": "text", "text": as_typed(rng, question)}
    parts = [text, *media] if rng.random() < 0.4 else [*media, text]
    return Dialogue(({"role": "user", "content": parts},), answer)


def _shown(rng: Random, colour: str) -> dict[str, Any]:
    return {"type": "image", "image": picture(rng, colour)}


def _of_one_picture(rng: Random, language: Language, colour: str) -> Dialogue:
    question = _worded(rng, language, _PICTURE_QUESTIONS[language], _ORDER_QUESTIONS[language])
    return _asked_about(rng, question, of_picture(language, colour), _shown(rng, colour))


def one_picture(rng: Random, language: Language) -> Dialogue:
    return _of_one_picture(rng, language, rng.choice(COLOURS))


def two_pictures(rng: Random, language: Language) -> Dialogue:
    first, second = rng.choices(COLOURS, k=2)
    fitting = _PAIR_QUESTIONS[language] + _ORDER_QUESTIONS[language]
    question = _worded(rng, language, fitting, _PICTURE_QUESTIONS[language])
    answer = in_order(language, first, second)
    return _asked_about(rng, question, answer, *(_shown(rng, colour) for colour in (first, second)))


def _of_one_clip(rng: Random, language: Language, first: str, second: str) -> Dialogue:
    only = _ONLY[language].format(NAMES[language][first])
    answer = in_order(language, first, second) if first != second else only
    fitting = _ORDER_QUESTIONS[language] * 2 + _CLIP_QUESTIONS[language]
    question = _worded(rng, language, fitting, _PICTURE_QUESTIONS[language])
    return _asked_about(rng, question, answer, {"type": "video", "video": clip(rng, first, second)})


def one_clip(rng: Random, language: Language) -> Dialogue:
    first, second = rng.sample(COLOURS, 2)
    return _of_one_clip(rng, language, first, first if rng.random() < 0.1 else second)


def two_turns(rng: Random, language: Language) -> Dialogue:
    """The latest picture is the one that is asked about."""
    kinds = (one_picture, one_clip)
    return rng.choice(kinds)(rng, language).preceded_by(rng.choice(kinds)(rng, rng.choice(LANGUAGES)))


def second_question(rng: Random, language: Language) -> Dialogue:
    """What was seen before can be asked about again, or not be talked about any more."""
    earlier, (first, second) = rng.choice(LANGUAGES), rng.sample(COLOURS, 2)
    if rng.random() < 0.25:
        return corrected_smalltalk(rng, language).preceded_by(_of_one_picture(rng, earlier, first))
    if rng.random() < 0.4:
        again = asked(as_typed(rng, rng.choice(_ORDER_QUESTIONS[language])), in_order(language, first, second))
        return again.preceded_by(_of_one_clip(rng, earlier, first, second))
    again = asked(as_typed(rng, rng.choice(_PICTURE_QUESTIONS[language])), of_picture(language, first))
    return again.preceded_by(_of_one_picture(rng, earlier, first))


def nothing_shown(rng: Random, language: Language) -> Dialogue:
    questions = [text for text in _PICTURE_QUESTIONS[language] if "picture" in text or "gambar ini" in text]
    return asked(as_typed(rng, rng.choice(questions)), NOTHING_SEEN[language])
