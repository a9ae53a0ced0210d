"""Custom tools: what a model writes as the input of a tool is in the language of its grammar, all of which can be."""

import json
import re
from collections.abc import Callable
from functools import lru_cache, partial
from random import Random
from typing import Any

import pytest

from tests.engine.batching.grammars import VOCABULARY, tokenizer
from tis.engine.grammar.compile import CompiledGrammar, GrammarCompiler
from tis.engine.grammar.constraint import TokenConstraint
from tis.engine.grammar.grammar import CallableTool, marked_calls_grammar, tool_call_grammar
from tis.engine.grammar.json_string_tokens import decoded
from tis.engine.grammar.tool_input import MAX_INPUTS, InputFormat, InputReader, input_format_of, input_parameters
from tis.engine.text.markers import ToolFormat
from tis.errors import BadRequest

PATCH = r"""
start: "*** Begin" LF change+ "*** End" LF?
change: "*** File: " /[^\n]+/ LF line+
line: ("+" | "-") /[^\n]*/ LF
%import common.LF
"""
FORMATS = {
    "digits": InputFormat("regex", r"[0-9]{3,5}"),
    "escapes": InputFormat("regex", r'(a\n|"b"|\\c|\td){1,6}'),
    "accents": InputFormat("regex", r"[éèç日本\U0001F600]{1,8}"),
    "any": InputFormat("regex", r"(?s:.{0,40})"),
    "patch": InputFormat("lark", PATCH),
    "sum": InputFormat("lark", 'start: item ("+" item)*\nitem: NUMBER | "(" start ")"\nNUMBER: /[0-9]{1,3}/'),
}
# Read by Python, not by the library that enforced them.
READ: dict[str, Callable[[str], object]] = {
    "digits": re.compile(r"[0-9]{3,5}").fullmatch,
    "escapes": re.compile(r'(a\n|"b"|\\c|\td){1,6}').fullmatch,
    "accents": re.compile("[éèç日本\U0001f600]{1,8}").fullmatch,
    "any": re.compile(r"(?s:.{0,40})").fullmatch,
    "patch": re.compile(r"\*\*\* Begin\n(\*\*\* File: [^\n]+\n([+-][^\n]*\n)+)+\*\*\* End\n?").fullmatch,
    "sum": lambda text: re.fullmatch(r"[0-9+()]+", text) and eval(text) is not None,
}
SAMPLES = {
    "digits": (["007", "12345"], ["12", "12a", "123456", ""]),
    "escapes": (['a\n"b"\\c\td', "\td"], ["a", "b", "a\\n", '"b']),
    "accents": (["é", "日本\U0001f600ç"], ["e", "日x", ""]),
    "any": (['"\\\n\t', "", "\U0001f600é/"], ["x" * 41]),
    "patch": (
        ['*** Begin\n*** File: a\\b\n+x\n-"y"\n*** End', "*** Begin\n*** File: é\n+\n*** End\n"],
        ["*** Begin\n*** End", "*** Begin\n*** File: a\n x\n*** End", "*** Begin\\n*** File: a\n+\n*** End"],
    ),
    "sum": (["1+(2+3)", "((7))"], ["1+", "(1", "1234"]),
}
CALLS: list[tuple[ToolFormat, str, str]] = [
    ("hermes", '<tool_call>\n{"name": "run", "arguments": {"input": "', '"}}\n</tool_call>'),
    ("llama", '{"name": "run", "parameters": {"input": "', '"}}'),
    ("mistral", '[TOOL_CALLS][{"name": "run", "arguments": {"input": "', '"}}]'),
    ("json", '{"name": "run", "arguments": {"input": "', '"}}'),
    ("glm", '<tool_call>{"name": "run", "arguments": {"input": "', '"}}</tool_call>'),
    ("deepseek_v31", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>{"input": "', '"}'),
    ("harmony", '<|channel|>commentary to=functions.run <|constrain|>json<|message|>{"input": "', '"}'),
]


# The demo model has no token for a whole escape.
BACKSLASH, LINE_BREAK = (tokenizer().encode_text(one)[0] for one in ("\\", "n"))


@lru_cache(1)
def compiler() -> GrammarCompiler:
    ours = tokenizer()
    new_tokenizer = partial(ours.for_grammars, MAX_INPUTS)
    return GrammarCompiler(new_tokenizer, VOCABULARY, ours.markers.tool_format, ours.marker_ids)


def tool(name: str, form: InputFormat | None) -> CallableTool:
    return CallableTool(name, input_parameters(form), f"tools.{name}")


def compiled(form: InputFormat, call_format: ToolFormat = "hermes") -> CompiledGrammar:
    return compiler().compile(tool_call_grammar((tool("run", form),), one_call=True), call_format)


def ids_of(text: str) -> list[int]:
    return tokenizer().encode_text(text)


def written(matcher: Any, random: Random, max_tokens: int = 150) -> list[int]:
    """What a model of random taste writes, which likes to end."""
    ids: list[int] = []
    while not matcher.is_complete and len(ids) < max_tokens:
        forced = matcher.forced()
        allowed = matcher.allowed().nonzero()[0].tolist()
        ends = [one for one in allowed if one in ending_ids()] if random.random() < 0.4 else []
        if ids and ids[-1] == BACKSLASH and LINE_BREAK in allowed:
            ends = [LINE_BREAK]
        token_id = forced[0] if forced else random.choice(ends or allowed)
        assert token_id in allowed
        ids.append(token_id)
        matcher.feed(token_id)
    return ids


@lru_cache(1)
def ending_ids() -> frozenset[int]:
    """Tokens that end an input, a line of it or what needs no more of it."""
    return frozenset(one for one in range(VOCABULARY) if text_of([one]).startswith(('"', "\\", "***", ")")))


def text_of(ids: list[int]) -> str:
    return str(tokenizer()._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def input_of(text: str) -> str:
    arguments = json.loads(text[text.index("{") : text.rindex("}") + 1])["arguments"]
    assert list(arguments) == ["input"] and isinstance(arguments["input"], str)
    return str(arguments["input"])


@pytest.mark.parametrize("name", FORMATS)
def test_every_input_that_is_written_is_in_the_language(name: str) -> None:
    grammar = compiled(FORMATS[name])
    found = set()
    for seed in range(15):
        ids = written(grammar.matcher.copy(), Random(seed))
        if len(ids) == 150:
            continue
        text = input_of(text_of(ids))
        assert READ[name](text) and InputReader(FORMATS[name]).takes(text), text
        assert grammar.validate_answer(text_of(ids)) is None
        found.add(text)
    assert len(found) > 3


@pytest.mark.parametrize(("call_format", "before", "after"), CALLS)
@pytest.mark.parametrize("name", FORMATS)
def test_all_of_the_language_can_be_written_and_nothing_else(
    name: str, call_format: ToolFormat, before: str, after: str
) -> None:
    """As the tokenizer splits the call, and a token for each character."""
    matcher = compiled(FORMATS[name], call_format).matcher
    for text, is_good in [(one, good) for good, some in zip((True, False), SAMPLES[name], strict=True) for one in some]:
        within = json.dumps(text, ensure_ascii=False)[1:-1]
        for split in (list, lambda one: [one] if one else []):
            assert takes(matcher.copy(), before, [*split(within)], after) is is_good, (text, split)


def takes(matcher: Any, before: str, within: list[str], after: str) -> bool:
    for token_id in ids_of(before):
        assert matcher.allowed()[token_id]
        matcher.feed(token_id)
    for piece in [*within, after]:
        for token_id in ids_of(piece):
            if not matcher.allowed()[token_id]:
                return False
            matcher.feed(token_id)
    return matcher.may_end or matcher.is_complete or bool(matcher.forced())


def test_a_copy_that_is_fed_the_same_tokens_is_in_the_same_place() -> None:
    """So another process can resume the answer."""
    grammar = compiled(FORMATS["patch"])
    ids = written(grammar.matcher.copy(), Random(3))
    first = constraint(grammar)
    for number, token_id in enumerate(ids[:60]):
        again = constraint(grammar)
        for one in ids[:number]:
            again.feed(one)
        assert again.forced() == first.forced()
        masks = [one.allowed(lambda: 0, may_end=True) for one in (again, first)]
        assert masks[0] is not None and (masks[0] == masks[1]).all()
        first.feed(token_id)


def constraint(grammar: CompiledGrammar) -> TokenConstraint:
    return TokenConstraint(grammar, None, [2030], VOCABULARY)


def test_behind_a_marker_the_model_calls_tools_of_all_kinds() -> None:
    tools = (tool("run", FORMATS["escapes"]), tool("say", None), tool("count", FORMATS["digits"]))
    other = CallableTool("f", {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}, "tools.f")
    grammar = compiler().compile(marked_calls_grammar((*tools, other), one_call=False))
    names = set()
    forms = {"run": "escapes", "count": "digits"}
    for seed in range(25):
        ids = written(grammar.matcher.copy(), Random(seed), 120)
        text = text_of(ids)
        if len(ids) == 120:
            continue
        call: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
        names.add(call["name"])
        if form := forms.get(call["name"]):
            assert READ[form](call["arguments"]["input"])
    assert names >= {"run", "count", "f"}


def test_grammars_that_are_none_are_named_at_their_place() -> None:
    for form in (InputFormat("lark", "start: unknown"), InputFormat("regex", "(a"), InputFormat("regex", "(?=a)b")):
        with pytest.raises(BadRequest) as refused:
            compiled(form)
        assert (refused.value.param, refused.value.code) == ("tools.run", "invalid_grammar")
    with pytest.raises(BadRequest) as empty:
        compiled(InputFormat("lark", ""))
    assert empty.value.param == "tools.run"


@pytest.mark.parametrize(
    "definition",
    [
        "start: <[*]>",
        "start: <[^5]>",
        'start: "a" <[5-9]> "b"',
        "start: a\na[max_tokens=2]: /.*/",
        "start: a\na[ max_tokens = 2 ]: /.*/",
        r"start: /[\x00-\x02]/",
    ],
    ids=["any", "not", "some", "counted", "spaced", "control"],
)
def test_grammars_that_no_model_can_follow_are_the_clients_fault(definition: str) -> None:
    with pytest.raises(BadRequest) as refused:
        compiled(InputFormat("lark", definition))
    assert refused.value.param == "tools.run"


def test_a_grammar_that_ends_the_sandbox_is_the_clients_fault() -> None:
    rules = "\n".join(f'r{at}: r{at + 1} "a"' for at in range(5000))
    with pytest.raises(BadRequest) as refused:
        compiled(InputFormat("lark", f'start: r0\n{rules}\nr5000: "b"'))
    assert refused.value.code == "schema_too_large"


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ('start: "<[" /[a-z<]+/ "]>" // <[5]>', "<[a<]>"),
        ("start: /<\\[max_tokens=\\/[0-9]/  # max_tokens=5", "<[max_tokens=/5"),
        ('start: "a"?', ""),
    ],
)
def test_text_that_looks_like_a_token_is_text(definition: str, text: str) -> None:
    form = InputFormat("lark", definition)
    assert compiled(form).grammar.tools and InputReader(form).takes(text)


def test_a_schema_is_only_taken_for_an_input_if_it_is_one() -> None:
    form = FORMATS["digits"]
    assert input_format_of(input_parameters(form)) == form and input_format_of(input_parameters(None)) is None
    more = input_parameters(form)
    more["properties"]["other"] = {}
    assert input_format_of(more) is None and input_format_of({"properties": {"input": {"grammar": 5}}}) is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (b'a\\n\\"\\\\', (b'a\n"\\', False)),
        (b"\xc3", (b"\xc3", False)),
        (b"a\\", (b"a", True)),
        (b"\\\\", (b"\\", False)),
        (b'a"', None),
        (b"\n", None),
        (b"\\u0041", None),
        (b"\\/", None),
    ],
)
def test_the_text_of_a_piece_of_a_string(given: bytes, text: object) -> None:
    assert decoded(given) == text
