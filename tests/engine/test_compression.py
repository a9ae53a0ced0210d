from typing import Any

from tis.engine.compression import compress
from tis.engine.prompt import ChatPrompt
from tis.engine.text.text_encoder import TooManyTokens


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


def test_each_message_is_counted_once_and_only_those_that_may_fit() -> None:
    talk = [message("user", f"{number:05}" * 20) for number in range(2000)]
    counted: list[str] = []

    def counting(text: str, max_tokens: int) -> int:
        counted.append(text)
        return len(text)

    _, ids, _ = compress(ChatPrompt(talk), encode, counting, 5000, max_context=9999)
    assert len(ids) == 5000
    assert len(counted) == len(set(counted)) <= 51


def test_what_a_template_writes_around_messages_is_learned() -> None:
    """Far fewer tries than messages, although their own tokens say that all of them fit."""
    tries = []

    def encode_with_headers(prompt: ChatPrompt) -> list[int]:
        tries.append(len(prompt.messages))
        if len(prompt.messages) > 1000:
            raise TooManyTokens(1000)
        return [0] * (len(prompt.messages) * 100)

    talk = [message("user", "x") for _ in range(4_000)]
    remaining, ids, _ = compress(ChatPrompt(talk), encode_with_headers, count, 30_000, max_context=40_000)
    assert len(remaining.messages) == 300 and len(ids) == 30_000
    assert len(tries) < 10


def test_a_conversation_without_turns_stays() -> None:
    _, ids, _ = compress(ChatPrompt(TALK[:1]), encode, count, 0, max_context=9)
    assert ids == [ord("S")]
