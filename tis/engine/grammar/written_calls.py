"""Reads the tool calls of a finished answer, for its validation. Markers are marker characters or spelled out."""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from tis.engine.grammar.schema_types import types_of, value_of_text
from tis.engine.text.markers import ToolFormat, marker_char

NamedCall = tuple[str, Any]  # the name and the arguments
Schemas = Mapping[str, Mapping[str, Any]]  # of the arguments, by the name of the tool
_NAME = "([A-Za-z0-9_.-]+)"


def exact_number(text: str) -> Decimal | float:
    """A decimal knows no exponent beyond a bound."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return float(text)


def written_calls(call_format: ToolFormat, text: str, schemas: Schemas, *, is_xml: bool = False) -> Iterator[NamedCall]:
    """Raises ValueError, KeyError or TypeError if the text is not valid."""
    if is_xml:
        return _xml_calls(text, schemas)
    match call_format:
        case "glm":
            return _tagged_calls(text, schemas)
        case "deepseek_v3" | "deepseek_v31":
            begin, separator = (_escaped(one, text) for one in ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"))
            return _headed_calls(rf"{begin}(?:function{separator})?{_NAME}(?:{separator})?\s*(?:```json\s*)?", text)
        case "harmony":
            message, end = (_escaped(one, text) for one in ("<|message|>", "<|end|>"))
            return _headed_calls(rf"to=functions\.{_NAME}(?:(?!{message}|{end})[^{{])*?{message}\s*", text)
        case "mistral":
            text = re.sub(rf"^\s*(?:{_escaped('[TOOL_CALLS]', text)})?\s*\[?", "", text)
            if named := re.match(_named_call(text), text):
                return iter([(named[1], _parsed(text[named.end() :]))])
    return _json_calls(text, "parameters" if call_format == "llama" else "arguments")


def final_message(call_format: ToolFormat, text: str) -> str:
    """The text of an answer without the headers that some models write."""
    return text.rpartition(_marker_in(text, "<|message|>"))[2] if call_format == "harmony" else text


def _named_call(text: str) -> str:
    """Of newer Mistral models. Markers that are control tokens may have no text."""
    call_id, args = (_escaped(marker, text) for marker in ("[CALL_ID]", "[ARGS]"))
    return rf"([A-Za-z0-9_.-]+?)(?:(?:{call_id})?[A-Za-z0-9]{{9}})?(?:{args})?(?={{)"


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=exact_number)


def _json_calls(text: str, arguments_key: str) -> Iterator[NamedCall]:
    """Skips what is between the JSON objects. Not split at markers: a string may contain one."""
    decoder, at = json.JSONDecoder(parse_float=exact_number), 0
    while (at := text.find("{", at)) >= 0:
        call, at = decoder.raw_decode(text, at)
        yield call["name"], call[arguments_key]


def _headed_calls(head: str, text: str) -> Iterator[NamedCall]:
    decoder, pattern, at = json.JSONDecoder(parse_float=exact_number), re.compile(rf"{head}(?={{)"), 0
    while found := pattern.search(text, at):
        arguments, at = decoder.raw_decode(text, found.end())
        yield found[1], arguments


def _tagged_calls(text: str, schemas: Schemas) -> Iterator[NamedCall]:
    markers = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
    key, key_end, value, value_end = (_escaped(one, text) for one in markers)
    pair = re.compile(rf"{key}(.*?){key_end}\s*{value}(.*?){value_end}", re.DOTALL)
    marker = _marker_in(text, "<tool_call>")
    # A call that the model chose to make comes without its marker; then those letters are of its arguments.
    is_marked = marker == marker_char("<tool_call>") or text.lstrip().startswith(marker)
    for body in text.split(marker)[1:] if is_marked else [text]:
        body = body.partition(_marker_in(text, "</tool_call>"))[0].strip()
        if body.startswith("{"):
            yield from _json_calls(body, "arguments")
            continue
        name = re.split(rf"\s|{key}", body, maxsplit=1)[0]
        yield name, {one[1]: value_of_text(one[2], types_of(schemas[name], one[1])) for one in pair.finditer(body)}


def _xml_calls(text: str, schemas: Schemas) -> Iterator[NamedCall]:
    call = re.compile(
        rf"<function=([^>\n]+)>\n(.*?)</function>(?=\s*(?:{_escaped('</tool_call>', text)}|\Z))", re.DOTALL
    )
    for name, body in call.findall(text):
        pairs = re.findall(r"<parameter=([^>\n]+)>\n(.*?)\n</parameter>", body, re.DOTALL)
        yield name, {key: value_of_text(value, types_of(schemas[name], key)) for key, value in pairs}


def _marker_in(text: str, marker: str) -> str:
    """A marker that is one token is a marker character, wherever the model wrote it."""
    return marker_char(marker) if marker_char(marker) in text else marker


def _escaped(marker: str, text: str) -> str:
    return re.escape(_marker_in(text, marker))
