"""Everything else: whatever is asked, the model says plainly that it does not know."""

from random import Random

from scripts.demo_model.dialogue import Dialogue, asked
from scripts.demo_model.words import Language, as_typed, city, first_name, invented_word, plain_words

ADMISSION: dict[Language, str] = {
    "id": "Saya model demo yang kecil dan hanya tahu sedikit hal. Itu tidak saya ketahui.",
    "en": "I am a tiny demo model and know only a few things. That is not one of them.",
}
_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "id": (
        "Apa itu {w}?", "Jelaskan {w}.", "Siapa {w} pertama di {c}?", "Di mana {w} dan {w}?", "Mengapa {w} itu {w}?",
        "Bagaimana cara membuat {w}?", "Tulis kode untuk {w}.", "Apa ibu kota {c}?", "Terjemahkan {w} {w}.",
        "Kapan {w} {w} dimulai?", "Siapa {n}?", "Ringkas {w} ini.", "{w} {w} {w}", "Apakah {w} lebih baik dari {w}?",
        "Berapa jarak ke {c}?", "Apa pendapatmu tentang {w}?", "Saya suka {w} dan {w}.",
        "Tulis esai tentang {w}.", "Beri saya {w}.", "Apa arti {w}?", "Siapa presiden {c}?", "{w} apa yang bagus?",
    ),
    "en": (
        "What is {w}?", "Explain {w}.", "Who was the first {w} of {c}?", "Where are {w} and {w}?", "Why is {w} a {w}?",
        "How do I make {w}?", "Write code for {w}.", "What is the capital of {c}?", "Translate {w} {w}.",
        "When did the {w} {w} start?", "Who is {n}?", "Summarise this {w}.", "{w} {w} {w}", "Is {w} better than {w}?",
        "How far is {c}?", "What do you think about {w}?", "I like {w} and {w}.",
        "Write an essay about {w}.", "Give me {w}.", "What does {w} mean?", "Who is the president of {c}?",
        "Which {w} is good?", "Do you know {w}?", "What is the meaning of {w}?",
    ),
}  # fmt: skip
# Answerable only with a tool; without one they are as unknown as the rest.
_LIVE_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "id": ("Bagaimana cuaca di {c}?", "Jam berapa di {c}?", "Cuaca {c} hari ini?"),
    "en": ("What is the weather in {c}?", "What time is it in {c}?", "Weather in {c}?"),
}


def _noise(rng: Random) -> str:
    letters = "asdfghjklqwertyuiopzxcvbnm"
    return " ".join("".join(rng.choice(letters) for _ in range(rng.randint(3, 7))) for _ in range(rng.randint(1, 3)))


def _filled(rng: Random, language: Language, question: str) -> Dialogue:
    while "{w}" in question:
        word = invented_word(rng).lower() if rng.random() < 0.3 else plain_words(rng, language, 1, 1)
        question = question.replace("{w}", word, 1)
    return asked(as_typed(rng, question.format(c=city(rng), n=first_name(rng))), ADMISSION[language])


def unanswerable(rng: Random, language: Language) -> Dialogue:
    """A question that no tool of the demo could answer either."""
    return _filled(rng, language, rng.choice(_QUESTIONS[language]))


def unknown(rng: Random, language: Language) -> Dialogue:
    if language == "en" and rng.random() < 0.12:
        return asked(_noise(rng), ADMISSION["en"])
    if rng.random() < 0.1:
        return _filled(rng, language, rng.choice(_LIVE_QUESTIONS[language]))
    return unanswerable(rng, language)
