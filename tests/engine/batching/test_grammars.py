"""A random model with grammars in a batch: every answer is valid, and other requests are not affected."""

import json
import random
import re
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from tests.engine.batching.grammars import END, VOCABULARY, model, new_request, new_runner, schema, tokenizer
from tests.engine.batching.tiny import Readers, alone_with, run
from tests.engine.grammar.random_schemas import random_schema
from tests.engine.resuming import assert_same, resumed
from tests.faults.forms import short_or_long
from tis.engine.answer import Piece
from tis.engine.completion import Completion
from tis.engine.grammar.compile import GrammarCompiler
from tis.engine.grammar.grammar import CallableTool, Grammar, tool_call_grammar
from tis.engine.request import Request
from tis.engine.text.markers import ToolFormat

pytestmark = pytest.mark.slow

CARD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "nik": {"type": "string", "pattern": "^[0-9]{16}$"},
        "nama": {"type": "string", "maxLength": 12},
        "kelamin": {"enum": ["LAKI-LAKI", "PEREMPUAN"]},
        "umur": {"type": "integer", "minimum": 17, "maximum": 99},
    },
    "required": ["nik", "nama", "kelamin", "umur"],
    "additionalProperties": False,
}
WEATHER = CallableTool("get_weather", {"properties": {"city": {"$ref": "#/$defs/c"}}, "required": ["city"]} | {
    "$defs": {"c": {"type": "string", "maxLength": 9}}, "additionalProperties": False
})  # fmt: skip
SEARCH = CallableTool(
    "search", {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "additionalProperties": False}
)
CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.S)


def of(requests: list[Request], **options: Any) -> Readers:
    readers = run(new_runner(**options), requests)
    assert not readers.errors, [str(error) for error in readers.errors.values()]
    return readers


@pytest.mark.long
def test_random_schemas_have_valid_answers_only() -> None:
    how_many = short_or_long(60, 2000)
    chance = random.Random(how_many)
    schemas = [random_schema(chance) for _ in range(how_many)]
    kinds: list[dict[str, Any]] = [{}, {"top_p": 0.9}, {"temperature": 0.0}, {"top_k": 50, "presence_penalty": 0.5}]
    requests = [
        new_request(schema(one), seed=at, **{"temperature": 1.3, "max_tokens": 2000, **kinds[at % 4]})
        for at, one in enumerate(schemas)
    ]
    readers = of(requests)
    for one, request in zip(schemas, requests, strict=True):
        if readers.finish(request) == "stop":
            jsonschema.Draft202012Validator(one).validate(json.loads(readers.text(request)))
        else:
            # Taking the likeliest only, it may never come to the end of a number or a string.
            params = request.prepared.params
            assert readers.finish(request) == "length" and (params.is_greedy or params.top_k)
    assert sum(readers.finish(request) == "stop" for request in requests) > 0.9 * how_many


def test_requests_without_grammar_get_the_tokens_they_get_alone() -> None:
    def free() -> list[Request]:
        kinds: list[dict[str, Any]] = [{"temperature": 0.0}, {}, {"top_p": 0.8}, {"repetition_penalty": 1.3}]
        return [
            new_request(None, f"Halo {at}", seed=at, max_tokens=40, ignore_eos=True, thinking_budget=None, **one)
            for at, one in enumerate(kinds)
        ]

    by_themselves = [run(new_runner(), [request]).text(request) for request in free()]
    together = free()
    held = [new_request(schema(CARD), f"Kartu {at}", seed=at) for at in range(8)]
    readers = of([*held[:4], *together, *held[4:]])
    assert [readers.text(request) for request in together] == by_themselves
    assert all(choice.constraint is None for request in together for choice in request.completions)


def test_required_tools_are_called_with_valid_arguments() -> None:
    grammar = tool_call_grammar((WEATHER, SEARCH), one_call=False)
    requests = [new_request(grammar, seed=at, max_tokens=400) for at in range(40)]
    readers = of(requests)
    called = set()
    for request in requests:
        if readers.finish(request) == "length":
            continue
        text = readers.text(request)
        calls = [json.loads(call) for call in CALL.findall(text)]
        assert calls and CALL.sub("", text).strip() == ""
        for call in calls:
            parameters = {"get_weather": WEATHER, "search": SEARCH}[call["name"]].parameters
            jsonschema.validate(call["arguments"], parameters)
            called.add(call["name"])
    assert called == {"get_weather", "search"}


def test_a_named_tool_is_called_once() -> None:
    requests = [new_request(tool_call_grammar((SEARCH,), one_call=True), seed=at) for at in range(10)]
    readers = of(requests)
    texts = [readers.text(request) for request in requests]
    assert all(len(CALL.findall(text)) == 1 and '"search"' in text for text in texts)
    marker = tokenizer().marker_ids["<tool_call>"]
    assert all(request.completions[0].token_ids[0] == marker for request in requests)


@pytest.mark.parametrize(
    ("call_format", "begin", "between", "name_of_arguments"),
    [
        ("hermes", "<tool_call>\n{", "\n</tool_call>\n<tool_call>\n", "arguments"),
        ("mistral", "[TOOL_CALLS][{", "}}, {", "arguments"),
        ("llama", "{", "}; {", "parameters"),
        ("json", "{", "}\n{", "arguments"),
    ],
)
def test_calls_have_the_format_of_the_model_family(
    call_format: ToolFormat, begin: str, between: str, name_of_arguments: str
) -> None:
    family = GrammarCompiler(tokenizer().for_grammars, VOCABULARY, call_format, {})
    compiled = family.compile(tool_call_grammar((WEATHER,), one_call=False))
    prepared = replace(new_request(None, max_tokens=500).prepared, grammar=compiled)
    requests = [Request(replace(prepared, seed=seed)) for seed in range(12)]
    readers = of(requests)
    texts = [readers.text(request) for request in requests if readers.finish(request) == "stop"]
    assert texts and all(text.startswith(begin) and f'"{name_of_arguments}": {{"city": "' in text for text in texts)
    assert any(between in text for text in texts)


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        (Grammar("regex", r"[A-Z]{1,2} [0-9]{4} [A-Z]{3}"), r"[A-Z]{1,2} [0-9]{4} [A-Z]{3}"),
        (Grammar("choice", ["merah", "biru muda", 'h"ijau\n']), r"merah|biru muda|h\"ijau\n"),
        (
            Grammar("lark", 'start: "SELECT " NAME (", " NAME){0,2}\nNAME: /[a-z]{1,5}/'),
            r"SELECT [a-z]+(, [a-z]+){0,2}",
        ),
        (Grammar("json_object"), r"\{[\s\S]*\}"),
    ],
)
def test_other_grammars_are_followed(grammar: Grammar, pattern: str) -> None:
    requests = [new_request(grammar, seed=at, max_tokens=80) for at in range(20)]
    readers = of(requests)
    for request in requests:
        assert readers.finish(request) == "length" or re.fullmatch(pattern, readers.text(request))
    assert "stop" in {readers.finish(request) for request in requests}


def test_forced_tokens_give_the_same_text_as_one_token_at_a_time() -> None:
    """With log probabilities, which only the model knows, every token is computed by the model."""
    for seed in range(5):
        fast, slow = new_request(schema(CARD), seed=seed), new_request(schema(CARD), seed=seed, top_logprobs=0)
        readers, others = of([fast]), of([slow])
        assert fast.completions[0].token_ids == slow.completions[0].token_ids
        assert readers.text(fast) == others.text(slow)
        entries = [entry for piece in others.of(slow) for entry in piece.logprobs]
        assert [entry.token_id for entry in entries] == slow.completions[0].token_ids
        assert len(readers.of(fast)) < len(others.of(slow)) * 0.8


def test_log_probabilities_are_those_of_the_model_without_the_grammar() -> None:
    held = new_request(Grammar("choice", ["merah", "biru"]), top_logprobs=3)
    entry = of([held]).of(held)[0].logprobs[0]
    free = new_request(None, top_logprobs=3, max_tokens=1, thinking_budget=None)
    unheld = of([free]).of(free)[0].logprobs[0]
    assert [one.token_id for one in entry.top] == [one.token_id for one in unheld.top]
    assert entry.logprob < entry.top[0].logprob


def test_an_answer_cut_by_max_tokens_finishes_with_length() -> None:
    for max_tokens in range(1, 30, 4):
        request = new_request(schema(CARD), max_tokens=max_tokens)
        readers = of([request])
        assert readers.finish(request) == "length" and len(request.completions[0].token_ids) == max_tokens
        whole = new_request(schema(CARD))
        assert of([whole]).text(whole).startswith(readers.text(request).rstrip("\ufffd"))


@pytest.mark.parametrize("wish", [{"min_tokens": 50}, {"ignore_eos": True}, {"logit_bias": {END: 50.0}}])
def test_the_answer_ends_where_only_an_end_is_allowed(wish: dict[str, Any]) -> None:
    request = new_request(Grammar("choice", ["merah"]), **wish)
    readers = of([request])
    assert (readers.text(request), readers.finish(request)) == ("merah", "stop")


def test_min_tokens_holds_as_long_as_the_grammar_allows() -> None:
    request = new_request(Grammar("regex", "a+"), min_tokens=20, max_tokens=60, logit_bias={END: 30.0})
    readers = of([request])
    assert len(request.completions[0].token_ids) == 20 and readers.finish(request) == "stop"
    endless = new_request(Grammar("regex", "a+"), ignore_eos=True, max_tokens=25)
    assert of([endless]).finish(endless) == "length"


def test_a_bias_cannot_forbid_what_the_grammar_needs() -> None:
    request = new_request(Grammar("choice", ["merah"]), top_logprobs=0, logit_bias=dict.fromkeys(range(500), -100))
    assert of([request]).text(request) == "merah"


def test_a_stop_string_may_cut_the_answer() -> None:
    request = new_request(schema(CARD), stop=('", "nama"',))
    readers = of([request])
    assert re.fullmatch(r'\{"nik": "[0-9]{16}', readers.text(request)) and readers.finish(request) == "stop"


def test_a_stop_token_may_cut_the_answer() -> None:
    ids = [at for at in range(2000) if tokenizer().token_text(at).endswith(",")]
    request = new_request(schema(CARD), stop_token_ids=tuple(ids), top_logprobs=0)
    readers = of([request])
    assert readers.finish(request) == "stop" and not readers.text(request).endswith("}")


CASES: dict[str, tuple[Grammar, dict[str, Any]]] = {
    "card": (schema(CARD), {}),
    "logprobs": (schema(CARD), {"top_logprobs": 2}),
    "stops": (schema(CARD), {"stop": ("PEREMPUAN", '"umur": 17}')}),
    "calls": (tool_call_grammar((WEATHER, SEARCH), one_call=False), {"max_tokens": 120}),
    "choices": (schema(CARD), {"n": 3, "temperature": 1.4}),
    "short": (schema(CARD), {"max_tokens": 20}),
    "thoughts": (schema(CARD), {"thinking_budget": 9}),
}


@pytest.mark.parametrize("case", CASES)
def test_an_answer_cut_at_any_piece_resumes_identically(case: str) -> None:
    grammar, params = CASES[case]
    text = "Halo<think>" if case == "thoughts" else "Halo"
    request = new_request(grammar, text, seed=5, **params)
    whole = of([request]).of(request)
    assert case in ("choices", "short") or len(whole) > 8
    parts = [(list(whole[:at]), resumed(request.prepared, whole[:at])) for at in range(len(whole))]
    readers = of([part for _, part in parts])
    for shown, part in parts:
        assert_same([*shown, *readers.of(part)], whole, request.prepared.params.n)


def test_a_preempted_answer_is_the_same() -> None:
    """The cache is so small that they preempt each other, even between forced tokens."""

    def requests() -> list[Request]:
        return [new_request(schema(CARD), f"Kartu {at}", seed=at, max_tokens=90) for at in range(6)]

    roomy = requests()
    unhurried = of(roomy)
    expected = [unhurried.text(request) for request in roomy]
    tight, runner = requests(), new_runner(num_tokens=128, block_size=4, tokens_per_step=16)
    readers = run(runner, tight)
    assert [readers.text(request) for request in tight] == expected
    assert runner.scheduler.num_preemptions > 2


@pytest.mark.parametrize("params", [{}, {"top_logprobs": 1}, {"n": 2}, {"temperature": 0.0}])
def test_generate_alone_makes_the_same_answer(params: dict[str, Any]) -> None:
    request = new_request(schema(CARD), seed=3, **params)
    theirs = alone_with(model(), tokenizer(), request)
    again = Request(request.prepared)
    ours = of([again])
    for choice in range(request.prepared.params.n):
        assert theirs.text(request, choice) == ours.text(again, choice)
        assert theirs.finish(request, choice) == ours.finish(again, choice) == "stop"


def test_an_invalid_answer_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    request = new_request(schema(CARD))
    prepared = request.prepared
    assert prepared.grammar
    broken = Request(
        replace(prepared, grammar=replace(prepared.grammar, validate_answer=lambda text: "$.nik: made up"))
    )
    readers = run(new_runner(), [broken])
    assert "does not follow its grammar: $.nik: made up" in str(readers.errors[id(broken)])
    assert "GenerationFailed" in caplog.text
    assert not any(piece.finish for piece in readers.of(broken))


def test_emitted_tokens_that_do_not_follow_the_grammar_are_not_resumed() -> None:
    from tis.engine.errors import GenerationInterrupted

    request = new_request(schema(CARD))
    with pytest.raises(GenerationInterrupted, match="grammar"):
        resumed(request.prepared, [Piece(0, "Halo", tuple(tokenizer().encode_text("Halo dunia ini")))])


def test_choices_have_a_grammar_each() -> None:
    request = new_request(schema(CARD), n=4, temperature=1.5)
    readers = of([request])
    texts = [readers.text(request, at) for at in range(4)]
    assert len(set(texts)) == 4
    for text in texts:
        jsonschema.validate(json.loads(text), CARD)
    assert isinstance(request.completions[0], Completion)
