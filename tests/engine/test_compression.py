from typing import Any

from tis.engine.compression import compress
from tis.engine.prompt import ChatPrompt


def message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


TALK = [
    message("system", "S"),
    message("user", "one"),
    message("assistant", "1"),
    message("tool", "t"),
    message("user", "two"),
    message("assistant", "2"),
    message("user", "three"),
]
TRIES: list[str] = []


def encode(prompt: ChatPrompt) -> list[int]:
    """One token per character."""
    text = "".join(str(message["content"]) for message in prompt.messages)
    TRIES.append(text)
    return [ord(character) for character in text]


def count(text: str, max_tokens: int) -> int:
    return len(text)


def compressed(budget: int) -> tuple[str, dict[str, Any]]:
    remaining, ids, context = compress(ChatPrompt(TALK), encode, count, budget, max_context=99)
    assert encode(remaining) == ids
    return "".join(map(chr, ids)), context


def test_a_conversation_that_fits_stays_whole() -> None:
    text, context = compressed(15)
    assert text == "Sone1ttwo2three"
    assert context == {
        "compressed": False,
        "prompt_tokens": 15,
        "max_context": 99,
        "budget": 15,
        "strategy": "truncate",
        "dropped_messages": 0,
    }


def test_the_oldest_turn_is_dropped_with_its_answers() -> None:
    text, context = compressed(14)
    assert (text, context["dropped_messages"], context["compressed"]) == ("Stwo2three", 3, True)


def test_no_more_is_dropped_than_needed() -> None:
    assert compressed(10)[0] == "Stwo2three"
    assert compressed(9)[0] == "Sthree"


def test_the_system_message_and_the_last_turn_stay_even_if_they_do_not_fit() -> None:
    assert compressed(2)[0] == "Sthree"


def test_a_long_conversation_is_rendered_only_a_few_times() -> None:
    talk = [message("user", "x") for _ in range(1000)]
    TRIES.clear()
    _, ids, _ = compress(ChatPrompt(talk), encode, count, 300, max_context=999)
    assert len(ids) == 300 and len(TRIES) < 15
