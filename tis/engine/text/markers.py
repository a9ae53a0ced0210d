"""The markers that a model writes around its reasoning and its tool calls.

A `Piece` lists the markers that are single tokens beside its text, so a marker that the model spells out letter by
letter is never taken for a real one. Where text is searched (stop strings, parsers), each of them is one character,
half of a surrogate pair: no text contains such a character.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

ToolFormat = Literal["hermes", "llama", "mistral", "json", "glm", "deepseek_v3", "deepseek_v31", "harmony"]
TOOL_FORMATS: tuple[ToolFormat, ...] = get_args(ToolFormat)
ReasoningMarkers = tuple[str, str]  # opening, closing

REASONING_MARKERS: tuple[ReasoningMarkers, ...] = (("<think>", "</think>"), ("[THINK]", "[/THINK]"))
# By the names that a catalogue has for them; None: the model writes no reasoning.
ReasoningFormat = Literal["think", "mistral", "none"]
REASONING_FORMATS: Mapping[ReasoningFormat, ReasoningMarkers | None] = {
    "think": REASONING_MARKERS[0],
    "mistral": REASONING_MARKERS[1],
    "none": None,
}
# gpt-oss writes messages, each with a header: <|channel|>analysis<|message|> opens one that is reasoning.
HARMONY_REASONING: ReasoningMarkers = ("<|channel|>analysis<|message|>", "<|end|>")
_DEEPSEEK = (
    *("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"),
    *("<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"),
)
CALL_MARKERS: Mapping[ToolFormat, tuple[str, ...]] = {
    "hermes": ("<tool_call>", "</tool_call>"),
    "llama": ("<|python_tag|>",),
    "mistral": ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    "json": (),
    "glm": ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v31": _DEEPSEEK,
    "harmony": ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", "<|end|>", "<|call|>", "<|return|>"),
}
# What a template contains whose model writes calls in this format. The first match counts.
_IN_TEMPLATE: tuple[tuple[ToolFormat, tuple[str, ...]], ...] = (
    ("harmony", ("<|channel|>", "<|message|>")),
    ("deepseek_v3", ("<｜tool▁calls▁begin｜>", "```json")),
    ("deepseek_v31", ("<｜tool▁calls▁begin｜>",)),
    ("glm", ("<tool_call>", "<arg_key>")),
    ("hermes", ("<tool_call>",)),
    ("llama", ("<|python_tag|>",)),
    ("mistral", ("[TOOL_CALLS]",)),
)
MARKERS = tuple(
    dict.fromkeys(
        (
            *(marker for pair in REASONING_MARKERS for marker in pair),
            *(marker for markers in CALL_MARKERS.values() for marker in markers),
        )
    )
)
_FIRST_MARKER_CHAR = 0xDC00
_MAX_OPENING_TOKENS = 12  # of a marker, and of the blanks behind it
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class ModelMarkers:
    """The markers of one model."""

    reasoning: ReasoningMarkers | None = None
    tool_format: ToolFormat = "json"
    token_ids: Mapping[str, int] = field(default_factory=dict)  # of the markers that are one token
    writes_xml: bool = False  # the arguments of calls stand between tags, as Qwen-Coder writes them

    def visible(self, *, with_tool_calls: bool) -> dict[str, int]:
        """The markers to emit as characters, with their token ids."""
        has_calls = with_tool_calls or self.tool_format == "harmony"  # whose markers are around every answer
        markers = (*(self.reasoning or ()), *(CALL_MARKERS[self.tool_format] if has_calls else ()))
        return {marker: self.token_ids[marker] for marker in markers if marker in self.token_ids}

    def with_format(
        self, tool_format: ToolFormat | None, reasoning_format: ReasoningFormat | None = None
    ) -> "ModelMarkers":
        """What is None stays as it was detected."""
        reasoning = REASONING_FORMATS[reasoning_format] if reasoning_format else self.reasoning
        if tool_format == "harmony":
            reasoning = HARMONY_REASONING
        return replace(self, tool_format=tool_format or self.tool_format, reasoning=reasoning)

    def starts_in_reasoning(self, prompt_ids: Sequence[int], ending_ids: Collection[int], decode: Decode) -> bool:
        """Whether the prompt opens the reasoning, as the templates of models that always reason do."""
        if self.reasoning is None:
            return False
        opening, closing = (self.token_ids.get(marker) for marker in self.reasoning)
        if opening is None or closing is None:
            return decode(prompt_ids[-_MAX_OPENING_TOKENS:]).rstrip().endswith(self.reasoning[0])
        for token_id in reversed(prompt_ids):
            if token_id == closing or token_id in ending_ids:
                return False
            if token_id == opening:
                return True
        return False


def detect_markers(template: str, added_tokens: Mapping[str, int]) -> ModelMarkers:
    token_ids = {marker: added_tokens[marker] for marker in MARKERS if marker in added_tokens}
    reasoning = next((pair for pair in REASONING_MARKERS if pair[1] in template or token_ids.keys() >= set(pair)), None)
    matches = (name for name, texts in _IN_TEMPLATE if all(text in template for text in texts))
    markers = ModelMarkers(reasoning, token_ids=token_ids, writes_xml="<function=" in template)
    return markers.with_format(next(matches, "json"))


def marker_char(marker: str) -> str:
    return chr(_FIRST_MARKER_CHAR + MARKERS.index(marker))


_MARKER_CHAR = re.compile(f"[{marker_char(MARKERS[0])}-{marker_char(MARKERS[-1])}]")
PlacedMarkers = tuple[tuple[int, str], ...]  # each marker with its place in a text that has none of them


def split_markers(text: str) -> tuple[str, PlacedMarkers]:
    """Takes the marker characters out of a text."""
    if text.isascii():
        return text, ()
    found = list(_MARKER_CHAR.finditer(text))
    if not found:
        return text, ()
    placed = tuple(
        (one.start() - number, MARKERS[ord(one[0]) - _FIRST_MARKER_CHAR]) for number, one in enumerate(found)
    )
    return _MARKER_CHAR.sub("", text), placed


def join_markers(text: str, markers: PlacedMarkers) -> str:
    """Puts a marker character at the place of each marker."""
    parts, begin = [], 0
    for at, marker in markers:
        parts += [text[begin:at], marker_char(marker)]
        begin = at
    return "".join([*parts, text[begin:]])
