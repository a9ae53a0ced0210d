"""Chunks there and back."""

import json

import pytest

from tis.chat.parts import ChoiceEnd, RunPart, TextDelta
from tis.engine.answer import FinishReason
from tis.engine.errors import LoadFailed
from tis.errors import QueueFull, ServiceError
from tis.openai_api.wire.chat_writer import DONE, ChatWriter, chat_writer_state, error_event, fold


def new_writer(model: str = "m", *, with_usage: bool = False) -> ChatWriter:
    return ChatWriter(chat_writer_state(model, with_usage=with_usage))


def events(writer: ChatWriter, *texts: str, finish: FinishReason = "stop") -> list[bytes]:
    parts: list[RunPart] = [*map(TextDelta, texts), ChoiceEnd(finish, has_calls=False, context=None)]
    return [*writer.begun(1), *(chunk for part in parts for chunk in writer.part(0, part)), DONE]


@pytest.mark.parametrize("with_usage", [False, True])
@pytest.mark.parametrize("text", ['say "hi"\\', "tab\tnul\0bell\a", "\u2028\u0085\x7f", "😀", "\0text\0", "{}%s"])
def test_any_text_comes_through_as_it_is(text: str, with_usage: bool) -> None:
    writer = new_writer('a "model"', with_usage=with_usage)
    recorded = events(writer, text, text)
    assert json.loads(fold(recorded, b"{}"))["choices"][0]["message"]["content"] == text * 2
    first, second = (json.loads(event) for event in recorded[1:3])
    assert first == second and list(first) == list(json.loads(recorded[0]))
    assert b"\n" not in b"".join(recorded)


def test_a_folded_answer_ends_with_its_summary() -> None:
    answer = json.loads(fold(events(new_writer(), "a", finish="length"), b'{"usage":{"total_tokens":3}}'))
    assert answer["choices"][0]["finish_reason"] == "length" and answer["usage"] == {"total_tokens": 3}


@pytest.mark.parametrize("error", [QueueFull("full"), LoadFailed("no", param="model"), ServiceError("odd", code="x")])
def test_a_recorded_error_is_raised_as_what_it_was(error: ServiceError) -> None:
    with pytest.raises(type(error)) as raised:
        fold([*new_writer().begun(1), error_event(error)], b"{}")
    again = raised.value
    assert (again.message, again.param, again.code, again.status) == (
        error.message,
        error.param,
        error.code,
        error.status,
    )
