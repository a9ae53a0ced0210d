"""Counting and small sums; a sum is worked out in a <think> block when thinking is on."""

from dataclasses import replace
from random import Random

from scripts.demo_model.dialogue import Dialogue, asked
from scripts.demo_model.words import Language, as_typed

NUMBER_WORDS: dict[Language, tuple[str, ...]] = {
    "en": tuple("one two three four five six seven eight nine ten".split()),
    "id": tuple("satu dua tiga empat lima enam tujuh delapan sembilan sepuluh".split()),
}
_COUNT_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": ("Count to {n}.", "Count from 1 to {n}.", "Please count to {n}.", "Can you count to {n}?"),
    "id": ("Hitung sampai {n}.", "Hitung dari 1 sampai {n}.", "Berhitung sampai {n}.", "Tolong hitung sampai {n}."),
}
_SUM_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "{sum}", "{sum} =", "{sum}?", "What is {sum}?", "What's {sum}?", "How much is {sum}?", "Calculate {sum}.",
        "What is {words}?", "How much is {words}?", "{words}", "Compute {sum}",
    ),
    "id": (
        "{sum}", "{sum} =", "{sum}?", "Berapa {sum}?", "Berapa hasil {sum}?", "Hitung {sum}.", "Berapakah {sum}?",
        "Berapa {words}?", "{words} berapa?", "{words}", "{sum} berapa?",
    ),
}  # fmt: skip
_OPERATION_WORDS: dict[Language, dict[str, tuple[str, ...]]] = {
    "en": {"+": ("plus",), "-": ("minus",), "x": ("times",)},
    "id": {"+": ("tambah", "ditambah"), "-": ("kurang", "dikurangi"), "x": ("kali", "dikali")},
}


def counting(rng: Random, language: Language) -> Dialogue:
    last = rng.choice((3, 5, 10, 10, 10, rng.randint(2, 30)))
    spoken = last <= 10 and rng.random() < 0.5
    question = rng.choice(_COUNT_QUESTIONS[language])
    asked_number = NUMBER_WORDS[language][last - 1] if spoken else str(last)
    return asked(as_typed(rng, question.format(n=asked_number)), ", ".join(str(n) for n in range(1, last + 1)) + ".")


def working(a: int, operation: str, b: int) -> str:
    """The steps on the way to the result, small enough to know each by heart."""
    tens_a, units_a, tens_b, units_b = a // 10 * 10, a % 10, b // 10 * 10, b % 10
    if operation == "+":
        units, tens = units_a + units_b, tens_a + tens_b
        return f"{units_a} + {units_b} = {units}, {tens_a} + {tens_b} = {tens}, {tens} + {units} = {a + b}"
    if operation == "-":
        return f"{a} - {tens_b} = {a - tens_b}, {a - tens_b} - {units_b} = {a - b}"
    return f"{a} x {b} = {a * b}"


def _operands(rng: Random, operation: str) -> tuple[int, int]:
    if operation == "x":
        return rng.randint(0, 9), rng.randint(0, 9)
    limit = rng.choice((9, 20, 20, 30, 99))
    a, b = rng.randint(0, limit), rng.randint(0, limit)
    return (a, b) if operation == "+" else (max(a, b), min(a, b))


def _result(a: int, operation: str, b: int) -> int:
    return {"+": a + b, "-": a - b, "x": a * b}[operation]


def sums_in_a_row(rng: Random, language: Language) -> Dialogue:
    """Many small results in one answer: this is where the tables are learned by heart."""
    sums = []
    for _ in range(rng.randint(4, 9)):
        operation = rng.choice("+++--x")
        a, b = _operands(rng, operation)
        sums.append((f"{a} {operation} {b}", _result(a, operation, b)))
    order = {"id": "Hitung: {}", "en": "Calculate: {}"}[language]
    question = order.format(", ".join(text for text, _ in sums))
    return asked(question, ", ".join(f"{text} = {result}" for text, result in sums) + ".")


def arithmetic(rng: Random, language: Language) -> Dialogue:
    operation = rng.choice("+++--x")
    a, b = _operands(rng, operation)
    result = _result(a, operation, b)
    sign = rng.choice("xx*×") if operation == "x" else operation
    gap = rng.choice(("", " ", " "))
    phrase = rng.choice(_SUM_QUESTIONS[language])
    words = f"{a} {rng.choice(_OPERATION_WORDS[language][operation])} {b}"
    question = as_typed(rng, phrase.format(sum=f"{a}{gap}{sign}{gap}{b}", words=words))
    short = f"{a} {operation} {b} = {result}."
    if rng.random() < 0.5:
        return replace(asked(question, short), enable_thinking=False)
    return asked(question, f"<think>\n{working(a, operation, b)}\n</think>\n\n{short}")
