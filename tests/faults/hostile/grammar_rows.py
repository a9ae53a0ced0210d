"""Schemas, regexes and grammars that are wrong, endless, or cost more than they may."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import HELLO, Row, chat, response


def rows() -> Iterator[Row]:
    yield from _input_rows()
    for name, schema in schemas().items():
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        yield chat(f"schema: {name}", (200, 400), response_format=form)
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": schemas()["loop"]}}
    yield chat("schema: of a strict tool", (200, 400), tools=[tool], tool_choice="required")
    text = {"format": {"type": "json_schema", "name": "x", "schema": schemas()["states"], "strict": True}}
    yield response("schema: states", (200, 400), text=text)
    for name, pattern in {
        "backtracking": "(a+)+$",
        "more of it": "((a|a)*)*b",
        "states": "(a|b)*a(a|b){20}",
        "many states": "(.*a){100}",
        "repeats": "((a{1000}){1000}){1000}",
        "long": "a|" * 200_000,
        "long alternatives": "|".join(f"word{number}" for number in range(20_000)),
        "open": "(((((",
        "deep": "(" * 20_000 + ")" * 20_000,
        "backwards": r"(a)\1",
        "look behind": "(?<=a)b",
        "nothing": "[^\\s\\S]",
        "Unicode": r"\p{Greek}{1,5000}",
        "half a surrogate": "\ud800",
        "zero": "\0",
        "empty": "",
    }.items():
        yield chat(f"regex: {name}", (200, 400), guided_regex=pattern)
    for name, grammar in {
        "itself": "start: start",
        "left recursion": 'start: start "a" | "a"',
        "ambiguous": 'start: a a a a a a a a\na: "x"* a | "x"*',
        "none": "}{",
        "unknown": "start: nowhere",
        "an import": "%import common.WORD\nstart: WORD",
        "a file": '%import "../../../etc/passwd"\nstart: "a"',
        "many rules": "start: r0\n"
        + "\n".join(f'r{number}: r{number + 1} "a"' for number in range(9000))
        + '\nr9000: "b"',
        "3 MB": 'start: "a"\n' * 250_000,
        "empty": "",
    }.items():
        yield chat(f"grammar: {name}", (200, 400), guided_grammar=grammar)
    for value in ("{", "[" * 60_000, '{"a":' * 20_000, '"', "1e999", "\ud800", "{" + " " * 2_000_000 + "}"):
        yield chat(f"guided_json {value[:12]!r}", (200, 400), guided_json=value)
    yield chat("guided_json of nothing", (200, 400), guided_json={"not": {}})
    yield chat("two formats", 400, guided_regex="a", guided_choice=["a"])
    yield chat("no choice", 400, guided_choice=[])
    yield chat("empty choices", (200, 400), guided_choice=["", ""])
    yield chat("structured_outputs of another kind", 400, structured_outputs={"exec": "x"})
    yield chat("structured_outputs of 1,000 kinds", 400, structured_outputs={f"k{number}": 1 for number in range(1000)})
    yield chat("regex: a number", 400, structured_outputs={"regex": 5})
    forced = {"type": "function", "function": {"name": "f"}}
    names = ["f", *(f"f{number}" for number in range(99))]
    many = [{"type": "function", "function": {"name": name, "parameters": _wide(60)}} for name in names]
    yield chat("100 wide tools, one forced", (200, 400), tools=many, tool_choice=forced)
    yield chat("100 wide tools, any forced", (200, 400), tools=many, tool_choice="required", messages=[HELLO])


def _input_rows() -> Iterator[Row]:
    """Custom tools: the text that they are called with has a grammar of its own."""
    for name, syntax, definition in (
        ("backtracking", "regex", "(a+)+$"),
        ("states", "regex", "(a|b)*a(a|b){20}"),
        ("repeats", "regex", "((a{1000}){1000}){1000}"),
        ("nothing", "regex", "[^\\s\\S]"),
        ("half a surrogate", "regex", "\ud800"),
        ("zero", "regex", "\0"),
        ("itself", "lark", "start: start"),
        ("ambiguous", "lark", 'start: a a a a a a a a\na: "x"* a | "x"*'),
        ("a file", "lark", '%import "../../../etc/passwd"\nstart: "a"'),
        ("llguidance's own", "lark", "%llguidance {}\nstart: <[5]>"),
        ("JSON", "lark", 'start: %json {"type": "string"}'),
        ("control characters", "lark", "start: /[\\x00-\\x02]/"),
        ("3 MB", "lark", 'start: "a"\n' * 250_000),
        ("empty", "lark", ""),
    ):
        grammar = {"syntax": syntax, "definition": definition}
        tool = {"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": grammar}}}
        yield chat(f"input: {name}", (200, 400), tools=[tool], tool_choice="required")
        flat = {"type": "custom", "name": "c", "format": {"type": "grammar", **grammar}}
        yield response(f"input: {name}", (200, 400), tools=[flat])
    slow = [{"type": "grammar", "syntax": "regex", "definition": f"(a|b)*a(a|b){{16}}{n}"} for n in range(128)]
    many = [{"type": "custom", "name": f"c{n}", "format": form} for n, form in enumerate(slow)]
    yield response("128 slow inputs", (200, 400), tools=many, tool_choice="required")


def _wide(count: int) -> dict[str, Any]:
    properties = {f"p{number}": {"type": ["string", "null"], "maxLength": 50} for number in range(count)}
    return {"type": "object", "properties": properties}


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def schemas() -> dict[str, Any]:
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}
    boom = {"anyOf": [{"$ref": f"#/$defs/{number + 1}"} for number in (0, 0, 0, 0)]}
    layers = {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 5} for n in range(12)}
    return {
        "loop": loop,
        "boom": {**boom, "$defs": {**layers, "12": {"type": "string"}}},
        "tree": {"$ref": "#", "type": "object", "properties": {"a": {"$ref": "#"}}},
        "nowhere": {"$ref": "#/$defs/nowhere"},
        "elsewhere": {"$ref": "http://169.254.169.254/schema.json"},
        "a file": {"$ref": "file:///etc/passwd"},
        "states": {"type": "string", "pattern": "(a|b)*a(a|b){20}"},
        "an evil pattern": {"type": "string", "pattern": "^(a+)+$"},
        "an evil property pattern": {"type": "object", "patternProperties": {"(a*)*" * 500: {}}},
        "30,000 words": {"enum": [f"word {number}" for number in range(30_000)]},
        "3 MB of a word": {"const": "x" * 3_000_000},
        "1,000 properties": _wide(1000),
        "30 optional properties in 30": {"type": "object", "properties": {f"p{n}": _wide(30) for n in range(30)}},
        "150 levels": _deep(90),
        "items of items": {"type": "array", "minItems": 100_000, "items": {"type": "array", "maxItems": 10**30}},
        "a long text": {"type": "string", "minLength": 10**9, "maxLength": 10**18},
        "numbers": {"type": "number", "multipleOf": 1e-300, "minimum": -(10**400), "maximum": 10**400},
        "an integer between": {"type": "integer", "minimum": -(10**60), "maximum": 10**60},
        "nothing": False,
        "everything": True,
        "impossible": {"allOf": [{"type": "string"}, {"type": "number"}]},
        "all of all": {"allOf": [{"anyOf": [{"required": [f"a{n}"]}, {"required": [f"b{n}"]}]} for n in range(40)]},
        "a type nobody has": {"type": "exec"},
        "keywords of wrong types": {"properties": [], "required": {}, "enum": 5, "items": "x"},
        "half a surrogate": {"const": "\ud800"},
        "dependent": {"if": {"not": {}}, "then": {"$dynamicRef": "#x"}, "unevaluatedProperties": False},
        "formats": {"type": "string", "format": "x" * 100_000},
    }
