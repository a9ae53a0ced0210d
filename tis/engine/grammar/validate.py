"""Validates finished answers with jsonschema, independently of llguidance, which enforced the grammar.

Only patterns use llguidance here, too: Python's regular expressions have another syntax and can run for ever.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from time import thread_time
from typing import Any

from tis.engine.grammar.grammar import Grammar
from tis.engine.grammar.limits import parser_limits
from tis.engine.grammar.tool_input import InputFormat, InputReader, input_format_of
from tis.engine.grammar.written_calls import exact_number, final_message, written_calls
from tis.errors import BadRequest

# CPU time of the thread, for one answer. A hostile schema could run for ever, while all other requests wait.
_MAX_SECONDS = 0.5

Fault = str | None  # why an answer is invalid; None if it is valid
ValidateAnswer = Callable[[str], Fault]


class _TimeIsUp(Exception):
    pass


class _SchemaValidator:
    """Validates against one schema. One thread at a time."""

    def __init__(self, schema: dict[str, Any], param: str) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend
        from referencing import Registry

        _check_schema(schema, param)
        self._deadline = 0.0
        self._standard = Draft202012Validator.VALIDATORS
        cls = extend(
            Draft202012Validator,
            {
                "$ref": self._with_deadline("$ref"),
                "enum": self._with_deadline("enum"),
                "pattern": _pattern,
                "patternProperties": _pattern_properties,
                "additionalProperties": _additional_properties,
                "multipleOf": _multiple_of,
            },
        )
        exact = json.loads(json.dumps(schema), parse_float=exact_number)
        # An empty registry, so that no referenced document is fetched.
        self._inner = cls(exact, registry=Registry())

    def validate(self, instance: Any) -> Fault:
        self._deadline = thread_time() + _MAX_SECONDS
        try:
            error = next(iter(self._inner.iter_errors(instance)), None)
        except _TimeIsUp:
            return "its schema takes too long to check"
        return None if error is None else f"{error.json_path}: {error.message}"[:300]

    def _with_deadline(self, keyword: str) -> Callable[..., Iterator[Any]]:
        """Checks the deadline at a keyword that a hostile schema can make slow, or run very often."""
        standard = self._standard[keyword]

        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if thread_time() > self._deadline:
                raise _TimeIsUp
            yield from standard(validator, value, instance, schema) or ()

        return check


class _InputValidator:
    """Validates the arguments of a tool whose input follows a grammar, which only llguidance can check."""

    def __init__(self, form: InputFormat) -> None:
        self._reader = InputReader(form)

    def validate(self, instance: Any) -> Fault:
        match instance:
            case {"input": str(text)} if len(instance) == 1:
                return None if self._reader.takes(text) else "the input does not follow its grammar"
        return "its arguments are no input"


_ArgumentsValidator = _SchemaValidator | _InputValidator


def _validators(grammar: Grammar) -> dict[str, _ArgumentsValidator]:
    """Of the arguments, by the name of the tool."""
    validators: dict[str, _ArgumentsValidator] = {}
    of_inputs: dict[InputFormat, _InputValidator] = {}
    for tool in grammar.tools:
        if form := input_format_of(tool.parameters):
            if form not in of_inputs:
                of_inputs[form] = _InputValidator(form)
            validators[tool.name] = of_inputs[form]
        else:
            validators[tool.name] = _SchemaValidator(tool.parameters, tool.param)
    return validators


def answer_validator(grammar: Grammar) -> ValidateAnswer:
    """Raises BadRequest if a schema is invalid."""
    match grammar.kind:
        case "json_schema":
            validator = _SchemaValidator(grammar.value, grammar.param)
            return lambda text: _validate_json(validator, final_message(grammar.call_format, text))
        case "json_object":
            validator = _SchemaValidator({"type": "object"}, grammar.param)
            return lambda text: _validate_json(validator, final_message(grammar.call_format, text))
        case "choice":
            return lambda text: _validate_choice(grammar.value, final_message(grammar.call_format, text))
        case "tool_calls":
            validators = _validators(grammar)
            answer = None if grammar.value is None else _SchemaValidator(grammar.value, grammar.param)

            def validate(text: str) -> Fault:
                fault = _validate_calls(grammar, validators, text)
                if fault and answer:
                    return _validate_json(answer, final_message(grammar.call_format, text))
                return fault

            return validate
        case "marked_calls":
            validators = _validators(grammar)
            needs_call = grammar.call_format != "harmony"  # whose whole answer this is
            return lambda text: _validate_calls(grammar, validators, text, needs_call=needs_call)
        case _:
            return lambda text: None  # only llguidance can check these


def _validate_choice(choices: Sequence[str], text: str) -> Fault:
    return None if text.strip() in map(str.strip, choices) else "it is none of the choices"


def _validate_json(validator: _SchemaValidator, text: str) -> Fault:
    try:
        return validator.validate(_parse(text))
    except (ValueError, RecursionError) as error:
        return f"it is not valid JSON ({type(error).__name__})"


def _validate_calls(
    grammar: Grammar, validators: Mapping[str, _ArgumentsValidator], text: str, *, needs_call: bool = True
) -> Fault:
    schemas = {tool.name: tool.parameters for tool in grammar.tools}
    try:
        calls = list(written_calls(grammar.call_format, text, schemas, is_xml=grammar.writes_xml))
        if needs_call and not calls:
            return "it has no tool call"
        for name, arguments in calls:
            if fault := validators[name].validate(arguments):
                return fault
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        return f"it is not a valid call ({type(error).__name__})"
    return None


def _parse(text: str) -> Any:
    return json.loads(text, parse_float=exact_number)


def _check_schema(schema: dict[str, Any], param: str) -> None:
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError

    # Not "regex", which would require Python's syntax: llguidance checks patterns, and has \\p{Lu}.
    formats = FormatChecker(name for name in Draft202012Validator.FORMAT_CHECKER.checkers if name != "regex")
    try:
        Draft202012Validator.check_schema(schema, format_checker=formats)
    except SchemaError as error:
        where = ".".join([param, *map(str, error.path)])[:300]
        raise BadRequest(f"{where}: {error.message}"[:400], param=where, code="invalid_json_schema") from None
    except RecursionError:
        raise BadRequest(f"{param}: nested too deep.", param=param, code="schema_too_large") from None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not matches(pattern, instance):
        yield _error(f"{instance[:40]!r} does not match {pattern[:40]!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, below in patterns.items():
            for name, value in instance.items():
                if matches(pattern, name):
                    yield from validator.descend(value, below, path=name, schema_path=pattern)


def _additional_properties(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items():
        if name not in known and not any(matches(pattern, name) for pattern in patterns):
            if below is False:
                yield _error(f"{name[:40]!r} is not allowed")
            else:
                yield from validator.descend(value, below, path=name)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Uses decimals, because as a float 0.07 is not a multiple of 0.01."""
    if isinstance(instance, int | Decimal) and not isinstance(instance, bool):
        number, step = Decimal(instance), Decimal(step)
        if abs(number.adjusted()) > 300 or number % step:
            yield _error(f"{instance} is not a multiple of {step}")


def _error(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)


def matches(pattern: str, text: str) -> bool:
    matcher = _matcher_of(pattern).deep_copy()
    ids = _byte_tokenizer().tokenize_str(json.dumps(text, ensure_ascii=False))
    return bool(matcher.consume_tokens(ids) and matcher.is_accepting())


@lru_cache(256)
def _matcher_of(pattern: str) -> Any:
    from llguidance import LLMatcher

    text = LLMatcher.grammar_from_json_schema({"type": "string", "pattern": pattern})
    return LLMatcher(_byte_tokenizer(), text, log_level=0, limits=parser_limits())


@lru_cache(1)
def _byte_tokenizer() -> Any:
    from llguidance import LLTokenizer

    return LLTokenizer("byte")
