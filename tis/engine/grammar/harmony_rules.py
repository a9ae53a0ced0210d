"""Grammar rules for the messages of gpt-oss: reasoning in the analysis channel, then a call or the final message."""

import json

from tis.engine.grammar.grammar import Grammar
from tis.engine.grammar.lark import ANY_TEXT, HEADER, TokenIds, marker, quoted, text_until_rule

HARMONY_MARKERS = ("<|channel|>", "<|message|>", "<|start|>", "<|end|>")  # without which nothing tells messages apart


def in_final_message(grammar: Grammar, text: str, token_ids: TokenIds) -> str:
    """Puts the grammar of an answer behind the header of the final message."""
    match grammar.kind:
        case "lark":
            answer = f"answer: %lark {{\n{text}\n}}"
        case "regex":
            answer = _as_answer(json.loads(text)["grammars"][0]["lark_grammar"])
        case _:
            answer = _as_answer(text.removeprefix(HEADER))
    return "\n".join([f"{HEADER}start: analysis? final", *message_rules(token_ids), answer]) + "\n"


def message_rules(token_ids: TokenIds) -> list[str]:
    """Rules for `analysis` and `final`; the latter needs a rule `answer`."""
    channel, message, start = (marker(one, token_ids) for one in ("<|channel|>", "<|message|>", "<|start|>"))
    return [
        f'analysis: {channel} "analysis" {message} thought {start} "assistant"',
        text_until_rule("thought", "<|end|>", token_ids),
        f'final: {channel} "final" {message} answer',
    ]


def free_message_rules(token_ids: TokenIds) -> list[str]:
    """Rules for an answer in which only a call is constrained; it needs a rule `call`, with which the answer ends."""
    channel, message, start = (marker(one, token_ids) for one in ("<|channel|>", "<|message|>", "<|start|>"))
    header = f'{channel} ("analysis" | "commentary" | "final") {message}'
    return [
        "start: before* (call | last)",
        f'before: {header} said {start} "assistant"',
        text_until_rule("said", "<|end|>", token_ids),
        f"last: {header} {ANY_TEXT}",
    ]


def call_header(name: str, token_ids: TokenIds) -> str:
    channel, constrain, message = (marker(one, token_ids) for one in ("<|channel|>", "<|constrain|>", "<|message|>"))
    return f'{channel} {quoted(f"commentary to=functions.{name} ")} {constrain} "json" {message}'


def _as_answer(rule: str) -> str:
    return rule.strip().replace("start:", "answer:", 1)
