"""Preparing a request: the order of defaults, and what is refused."""

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tis.engine.errors import ContextLengthExceeded, GenerationInterrupted
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import CharacterTokenizer, load_echo
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.speech.heard import SpeechWindow
from tis.engine.text.text_encoder import TooManyTokens
from tis.engine.voice.spoken import SentenceToSay
from tis.errors import Unavailable

pytestmark = pytest.mark.anyio
BUILTIN = {"temperature": 0.7, "max_tokens": 4096}


async def prepared(
    sampling: Mapping[str, Any],
    entry: Mapping[str, Any] | None = None,
    makers: Mapping[str, Any] | None = None,
    text: str = "Halo",
    **limits: Any,
) -> PreparedRequest:
    """Prepares a request for a model with these catalogue defaults (`entry`) and recommended defaults (`makers`)."""
    engine = LocalEngine(
        [CatalogueEntry("m", "echo", defaults=entry or {})],
        lambda entry, report: replace(load_echo("echo"), generation_defaults=makers or {}),
        EngineLimits(builtin_defaults=BUILTIN, **limits),
    )
    await engine.open()
    try:
        return await engine.prepare("m", ChatPrompt([{"role": "user", "content": text}]), sampling)
    finally:
        await engine.close()


async def test_builtin_defaults_come_last() -> None:
    params = (await prepared({})).params
    assert (params.temperature, params.max_tokens, params.top_p) == (0.7, 4096, 1.0)


async def test_the_recommendation_of_the_makers_overrides_the_builtin_default() -> None:
    assert (await prepared({}, makers={"temperature": 0.6})).params.temperature == 0.6


async def test_a_variable_of_the_operator_overrides_the_makers() -> None:
    params = (await prepared({}, makers={"temperature": 0.6}, operator_defaults={"temperature": 0.3})).params
    assert params.temperature == 0.3


async def test_the_catalogue_overrides_the_variable_and_the_request_overrides_all() -> None:
    layers: dict[str, Any] = {"entry": {"temperature": 0.1}, "operator_defaults": {"temperature": 0.3}}
    assert (await prepared({}, **layers)).params.temperature == 0.1
    assert (await prepared({"temperature": 1.5}, **layers)).params.temperature == 1.5


async def test_a_request_without_a_seed_gets_a_random_one() -> None:
    assert (await prepared({"seed": 5})).seed == 5
    assert (await prepared({})).seed != (await prepared({})).seed


async def test_a_default_max_tokens_over_the_context_is_cut_and_a_requested_one_refused() -> None:
    assert (await prepared({}, max_context_tokens=10)).params.max_tokens == 6
    with pytest.raises(ContextLengthExceeded) as refused:
        await prepared({"max_tokens": 11}, max_context_tokens=10)
    assert refused.value.param == "max_tokens"


async def test_a_prompt_that_leaves_no_room_for_an_answer_is_refused() -> None:
    with pytest.raises(ContextLengthExceeded):
        await prepared({}, text="x" * 10, max_context_tokens=10)


async def test_a_draining_engine_refuses_new_requests() -> None:
    engine = LocalEngine([CatalogueEntry("m", "echo")], lambda entry, report: load_echo("echo"), EngineLimits())
    await engine.open()
    engine.drain()
    with pytest.raises(Unavailable):
        await engine.prepare("m", ChatPrompt([{"role": "user", "content": "x"}]), {})
    await engine.close()


async def test_what_a_recorded_answer_names_and_is_served_no_more_is_interrupted() -> None:
    engine = LocalEngine([CatalogueEntry("m", "echo")], lambda entry, report: load_echo("echo"), EngineLimits())
    await engine.open()
    asked: list[Coroutine[Any, Any, object]] = [
        engine.describe_voice("gone"),
        engine.say("gone", SentenceToSay("Halo", "default")),
        engine.describe_speech("gone"),
        engine.detect_language("gone", []),
        engine.hear("gone", SpeechWindow([])),
    ]
    for one in asked:
        with pytest.raises(GenerationInterrupted, match="gone is not served any more"):
            await one
    await engine.close()


async def test_a_prompt_whose_tools_and_calls_are_too_long_is_refused_with_what_was_counted() -> None:
    class LimitedTokenizer(CharacterTokenizer):
        def encode_chat(self, prompt: ChatPrompt) -> list[int]:
            assert prompt.max_tokens == 100
            raise TooManyTokens(123)

    engine = LocalEngine(
        [CatalogueEntry("m", "echo")],
        lambda entry, report: replace(load_echo("echo"), tokenizer=LimitedTokenizer()),
        EngineLimits(builtin_defaults=BUILTIN, max_context_tokens=100),
    )
    await engine.open()
    try:
        with pytest.raises(ContextLengthExceeded, match="100 tokens. However, you requested 123 tokens or more"):
            await engine.prepare("m", ChatPrompt([{"role": "user", "content": "x"}]), {})
    finally:
        await engine.close()
