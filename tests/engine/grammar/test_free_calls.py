"""Calls that a model chooses to make, in formats with tags, sections and headers: text is free, a call is not."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.engine.batching.grammars import tokenizer
from tests.engine.grammar.test_tool_input import FORMATS as INPUTS
from tests.engine.text.model_formats import FORMATS, tokenizer_of
from tis.engine.grammar.compile import GrammarCompiler
from tis.engine.grammar.constraint import TokenConstraint
from tis.engine.grammar.grammar import CallableTool, Grammar, marked_calls_grammar
from tis.engine.grammar.tool_input import MAX_INPUTS, InputFormat, input_parameters
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.errors import GenerationFailed

WEATHER = CallableTool(
    "get_weather",
    {
        "type": "object",
        "properties": {"city": {"enum": ["Surabaya", "Padang"]}, "days": {"enum": [1, 2]}, "note": {"type": "string"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "tools.0",
)
# Not strict; with a grammar of its text; with a free text.
NOW = CallableTool("now", {"type": "object"}, "tools.1")
PATCH, SUM = (CallableTool(name, input_parameters(INPUTS[name]), f"tools.{name}") for name in ("patch", "sum"))
SAY = CallableTool("say", input_parameters(None), "tools.4")
TOOLS = (WEATHER, NOW, PATCH, SUM, SAY)
Arguments = Mapping[str, Any]


def json_of(arguments: Arguments) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def text_of_value(value: Any) -> str:
    return value if isinstance(value, str) else json_of(value)


def glm(name: str, arguments: Arguments, line: str = "\n") -> str:
    pairs = (
        f"<arg_key>{key}</arg_key>{line}<arg_value>{text_of_value(value)}</arg_value>{line}"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}{line}{''.join(pairs)}</tool_call>"


def xml(name: str, arguments: Arguments) -> str:
    pairs = (f"<parameter={key}>\n{text_of_value(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{''.join(pairs)}</function>\n</tool_call>"


def deepseek_v3(name: str, arguments: Arguments) -> str:
    call = f"function<｜tool▁sep｜>{name}\n```json\n{json_of(arguments)}\n```"
    return f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{call}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"


def deepseek_v31(name: str, arguments: Arguments) -> str:
    call = f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json_of(arguments)}<｜tool▁call▁end｜>"
    return f"<｜tool▁calls▁begin｜>{call}{call}<｜tool▁calls▁end｜>"


def harmony(name: str, arguments: Arguments) -> str:
    before = "<|channel|>analysis<|message|>A call to=functions.x{<|end|><|start|>assistant"
    before += "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
    return f"{before}<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json_of(arguments)}"


WRITERS: dict[str, Callable[[str, Arguments], str]] = {
    "glm": glm,
    "xml": xml,
    "deepseek_v3": deepseek_v3,
    "deepseek_v31": deepseek_v31,
    "harmony": harmony,
}
GOOD: list[tuple[str, Arguments]] = [
    ("get_weather", {"city": "Padang", "days": 2}),
    ("get_weather", {"city": "Padang", "days": 1, "note": '"a"\n<b> é'}),
    ("now", {}),
    ("now", {"any": [1, {"a": "b"}], "text": "x"}),
    ("patch", {"input": '*** Begin\n*** File: a\n+"x" <y>\n-\n*** End\n'}),
    ("sum", {"input": "1+(2+3)"}),
    ("say", {"input": 'any "text" <of>\n\tit'}),
]
BAD: list[tuple[str, Arguments]] = [
    ("get_weather", {"city": "Medan", "days": 2}),
    ("get_weather", {"city": "Padang"}),
    ("get_weather", {"city": "Padang", "days": 2, "more": 1}),
    ("nobody", {"city": "Padang", "days": 2}),
    ("patch", {"input": "*** Begin\nx"}),
    ("patch", {"input": "*** Begin\n*** File: a\n*** End"}),
    ("sum", {"input": "1+"}),
    ("say", {"output": "x"}),
]


@lru_cache
def tokens_of(name: str) -> HfTokenizer:
    return tokenizer() if name == "xml" else tokenizer_of(name)


@lru_cache
def compiler_of(name: str) -> GrammarCompiler:
    ours = tokens_of(name)
    call_format: Any = "hermes" if name == "xml" else name
    new_tokenizer = partial(ours.for_grammars, MAX_INPUTS)
    is_xml = name == "xml"
    return GrammarCompiler(new_tokenizer, ours.vocabulary_size, call_format, ours.marker_ids, writes_xml=is_xml)


def constraint_of(name: str, tools: tuple[CallableTool, ...] = TOOLS) -> TokenConstraint:
    ours, compiler = tokens_of(name), compiler_of(name)
    grammar = marked_calls_grammar(tools, one_call=False)
    assert compiler.holds_all_calls(grammar)
    return TokenConstraint(compiler.compile(grammar), None, sorted(ours.eos_ids), ours.vocabulary_size)


def follows(name: str, text: str, tools: tuple[CallableTool, ...] = TOOLS) -> bool:
    ours = tokens_of(name)
    constraint = constraint_of(name, tools)
    for token_id in ours.encode_raw(text, adds_special_tokens=False):
        allowed = constraint.allowed(lambda: 0, may_end=True)
        if allowed is not None and not allowed[token_id]:
            return False
        constraint.feed(token_id)
    allowed = constraint.allowed(lambda: 0, may_end=True)
    if allowed is not None and not allowed[sorted(ours.eos_ids)].any():
        return False
    try:
        constraint.validate_answer(lambda ids: ours.decode_raw(list(ids)))
    except GenerationFailed as error:
        raise AssertionError(f"{text!r} is allowed, and not valid: {error}") from None
    return True


@pytest.mark.parametrize("name", WRITERS)
def test_a_call_is_held_to_what_its_tool_takes(name: str) -> None:
    write = WRITERS[name]
    assert [case for case in GOOD if not follows(name, write(*case))] == []
    assert [case for case in BAD if follows(name, write(*case))] == []


@pytest.mark.parametrize("name", WRITERS)
def test_text_is_free_before_and_behind_calls(name: str) -> None:
    call = WRITERS[name](*GOOD[0])
    if name == "harmony":  # whose answer ends with a call
        assert follows(name, "<|channel|>final<|message|>get_weather {é}")
        assert not follows(name, "get_weather {é}")
        return
    assert follows(name, "get_weather <tool {é}\n")
    assert follows(name, f"I look. {call}\nAnd {call} so.")


def test_glm_may_write_calls_without_line_breaks() -> None:
    for case in GOOD:
        assert follows("glm", glm(*case, line="")), case


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (InputFormat("regex", "(?s:.*)"), ["", "a", "a\n", "\n", "a</parameter>b", "a/b\n\nc"], ["a\n</parameter>\nb"]),
        (InputFormat("regex", r"[a-z/\n]+"), ["a", "a\n", "a/\n\nb"], ["", "A", "a</parameter>b"]),
        (
            InputFormat("lark", "start: LINE+\nLINE: /[^\\n]*\\n/"),
            ["a\n", "\n", "a</parameter>\nb\n"],
            ["", "a", "a\nb"],
        ),
        (
            InputFormat("lark", 'start: (LINE "\\n")* LINE\nLINE: /[^\\n]+/'),
            ["a", "a\nb"],
            ["", "a\n", "a\n</parameter>\nb"],
        ),
    ],
    ids=str,
)
def test_a_text_that_takes_line_breaks_ends_where_the_line_of_its_tag_begins(
    form: InputFormat, good: list[str], bad: list[str]
) -> None:
    run = CallableTool("run", input_parameters(form), "tools.0")
    assert [text for text in good if not follows("xml", xml("run", {"input": text}), (run,))] == []
    assert [text for text in bad if follows("xml", xml("run", {"input": text}), (run,))] == []


def test_a_schema_that_tags_cannot_hold_is_not_enforced_between_them() -> None:
    """So is a model whose calls nothing tells from text, or which spells its markers."""
    pattern = {"type": "object", "properties": {"nik": {"type": "string", "pattern": "^[0-9]{4}$"}}}
    grammar = marked_calls_grammar((CallableTool("check", pattern, "tools.0"),), one_call=False)
    for name, is_held in (("glm", False), ("xml", False), ("deepseek_v31", True), ("harmony", True)):
        assert compiler_of(name).holds_marked_calls(grammar) is is_held, name
    for name in FORMATS:
        ours = tokenizer_of(name, with_markers=False)
        spelled = GrammarCompiler(ours.for_grammars, ours.vocabulary_size, name, ours.marker_ids)
        assert not spelled.holds_marked_calls(marked_calls_grammar((NOW,), one_call=False))
    assert not compiler_of("glm").holds_marked_calls(marked_calls_grammar((NOW,), one_call=False), "json")


def test_the_grammar_of_a_resumed_answer_is_the_same() -> None:
    grammar = compiler_of("xml").compile(marked_calls_grammar((SUM,), one_call=True)).grammar
    stored = json.loads(json.dumps(grammar.to_json()))
    again = TypeAdapter(Grammar).validate_python(stored)
    assert again.writes_xml and again.key == grammar.key
    assert compiler_of("xml").find(again, again.call_format)
