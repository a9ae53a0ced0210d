"""From the pieces that the engine makes to the parts of an answer, each with its own tokens and log probabilities."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from tis.chat.parse.config import CertainCalls, ParserConfig, ToolSchemas
from tis.chat.parse.harmony import HarmonyParser
from tis.chat.parse.parser import AnswerParser, ChoiceParser, ParseStep, PartKind
from tis.chat.parts import ArgumentsDelta, Part, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from tis.engine.answer import AnswerDelta, Piece, TokenLogprob
from tis.engine.grammar.grammar import Grammar
from tis.engine.prepared_request import PreparedRequest
from tis.engine.text.markers import join_markers


def parser_config(
    prepared: PreparedRequest, answer_id: str, tools: ToolSchemas, *, one_call: bool = False
) -> ParserConfig | None:
    """None if there is nothing to look for: the text of the answer is its content, or its engine has parsed it."""
    if prepared.upstream or (prepared.markers.reasoning is None and not tools):
        return None
    tool_format = prepared.markers.tool_format
    grammar = prepared.grammar.grammar if prepared.grammar else None
    certain_calls = _certain_calls(grammar)
    if grammar and certain_calls == "all":  # tool_choice may name one of the tools
        callable_names = {tool.name for tool in grammar.tools}
        tools = {name: parameters for name, parameters in tools.items() if name in callable_names}
    return ParserConfig(
        answer_id,
        reasoning=prepared.markers.reasoning,
        starts_in_reasoning=prepared.starts_in_reasoning,
        tool_format=tool_format if tools or tool_format == "harmony" else None,
        tools={name: dict(parameters) for name, parameters in tools.items()},
        marked=tuple(prepared.visible_markers),
        one_call=one_call,
        certain_calls=certain_calls,
    )


def _certain_calls(grammar: Grammar | None) -> CertainCalls:
    match grammar and grammar.kind:
        case "tool_calls" if grammar and grammar.value is None:
            return "all"
        case "tool_calls" | "marked_calls":
            return "marked"
    return "none"


def new_parser(config: ParserConfig, choice: int) -> ChoiceParser:
    return HarmonyParser(config, choice) if config.tool_format == "harmony" else AnswerParser(config, choice)


class PartReader:
    """Of one choice. A token belongs to the part that its last character belongs to.

    Blanks and held-back text make no part of their own: their tokens belong to the part that comes next. But the tokens
    of reasoning and of calls, with their markers, never belong to a text.
    """

    def __init__(self, config: ParserConfig | None, choice: int, marker_ids: Mapping[str, int]) -> None:
        self.num_reasoning = 0  # tokens of reasoning, with its markers
        self._parser = new_parser(config, choice) if config else None
        self._marker_ids = marker_ids
        self._num_chars = 0  # of the answer
        self._unread: deque[tuple[int, int, TokenLogprob | None]] = deque()  # the end of each token in the answer
        # Read, but in no part yet.
        self._token_ids: list[int] = []
        self._logprobs: list[TokenLogprob] = []
        self._kind: PartKind = "text"  # of the last step
        self._index: int | None = None  # of the last call
        self._is_cut = False  # within the last call
        self._num_calls = 0  # that an engine elsewhere has parsed

    @property
    def has_whole_calls(self) -> bool:
        """Half a call must not be answered, so it is no reason to end with tool_calls."""
        num_calls = self._parser.num_calls if self._parser else self._num_calls
        return num_calls > 0 and not self._is_cut

    def read(self, piece: Piece) -> list[Part]:
        if self._parser is None:
            if piece.deltas or (self._num_calls and piece.finish):
                return list(self._parsed_elsewhere(piece))
            has_part = piece.text or piece.logprobs
            return [TextDelta(piece.text, piece.token_ids, piece.logprobs, piece.offsets)] if has_part else []
        text = join_markers(piece.text, piece.markers) if piece.markers else piece.text
        self._add_tokens(piece, len(text))
        parts: list[Part] = []
        for step in self._parser.steps(text):
            parts += self._own(step)
        if piece.finish:
            for step in self._parser.last_steps():
                parts += self._own(step)
            parts += self._rest()
        return parts

    def _parsed_elsewhere(self, piece: Piece) -> Iterator[Part]:
        for delta in piece.deltas:
            yield from self._part_of(delta)
        if piece.logprobs:
            yield TextDelta("", logprobs=piece.logprobs)
        if piece.finish and self._num_calls and self._kind == "call":
            self._is_cut = piece.finish != "stop"
            yield ToolCallEnd(self._num_calls - 1, self._is_cut)

    def _part_of(self, delta: AnswerDelta) -> Iterator[Part]:
        if delta.kind == "arguments":
            yield ArgumentsDelta(delta.index, delta.text)
            return
        if self._kind == "call":
            yield ToolCallEnd(self._num_calls - 1)
        self._kind = delta.kind
        match delta.kind:
            case "text":
                yield TextDelta(delta.text)
            case "reasoning":
                self.num_reasoning += 1
                yield ReasoningDelta(delta.text)
            case "call":
                self._num_calls += 1
                yield ToolCallStart(delta.index, delta.call_id, delta.text)

    def _own(self, step: ParseStep) -> Iterable[Part]:
        parts = step.parts
        if step.kind != self._kind:
            parts = [*self._left_over(), *parts]
            self._kind = step.kind
        while self._unread and self._unread[0][0] <= step.end:
            _, token_id, logprob = self._unread.popleft()
            self.num_reasoning += step.kind == "reasoning"
            self._token_ids.append(token_id)
            if logprob:
                self._logprobs.append(logprob)
        for part in step.parts:
            if isinstance(part, ToolCallEnd):
                self._is_cut = part.is_cut
            else:
                self._index = getattr(part, "index", self._index)
                if self._token_ids:
                    self._give(part)
        return parts

    def _left_over(self) -> list[Part]:
        """Tokens of reasoning or of a call that came behind its last part make one without text."""
        if not self._token_ids or self._kind == "text" or (self._kind == "call" and self._index is None):
            return []
        part = ReasoningDelta("") if self._kind == "reasoning" else ArgumentsDelta(self._index or 0, "")
        self._give(part)
        return [part]

    def _rest(self) -> Iterable[Part]:
        """At the end of the answer: tokens without text have log probabilities, too."""
        if (parts := self._left_over()) or not self._logprobs:
            return parts
        part = TextDelta("")
        self._give(part)
        return [part]

    def _give(self, part: TextDelta | ReasoningDelta | ToolCallStart | ArgumentsDelta) -> None:
        part.token_ids, part.logprobs = self._token_ids, self._logprobs
        self._token_ids, self._logprobs = [], []

    def _add_tokens(self, piece: Piece, num_chars: int) -> None:
        begin, self._num_chars = self._num_chars, self._num_chars + num_chars
        if len(piece.token_ids) == 1:
            logprob = piece.logprobs[0] if piece.logprobs else None
            self._unread.append((self._num_chars, piece.token_ids[0], logprob))
            return
        logprobs = piece.logprobs or [None] * len(piece.token_ids)
        ends = self._ends(piece, begin)
        for token_id, logprob in zip(piece.token_ids, logprobs, strict=True):
            self._unread.append((next(ends), token_id, logprob))

    def _ends(self, piece: Piece, begin: int) -> Iterator[int]:
        """Of several tokens, only the places of markers are exact; log probabilities tell where the others end."""
        markers = iter([*((begin + at + number, marker) for number, (at, marker) in enumerate(piece.markers))])
        at, marker = next(markers, (self._num_chars, ""))
        end = begin
        for number, token_id in enumerate(piece.token_ids):
            if marker and token_id == self._marker_ids.get(marker):
                end = at + 1
                yield end
                at, marker = next(markers, (self._num_chars, ""))
            else:
                end = min(end + len(piece.logprobs[number].text), at) if piece.logprobs else at
                yield self._num_chars if number == len(piece.token_ids) - 1 else end
