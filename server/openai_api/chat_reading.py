"""An answer that is read for thoughts and calls: from the pieces that the engine makes to chunks of the chat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from server.engine.answer import Piece
from server.engine.prepared import Prepared
from server.openai_api.chat_chunks import ChunkWriter
from server.openai_api.reading.answer_reader import AnswerReader
from server.openai_api.reading.parts import Part, Thought
from server.openai_api.reading.reading import Reading, Tools


def reading_of(
    prepared: Prepared, answer_id: str, tools: Tools, *, one_call: bool = False, hide_thoughts: bool = False
) -> Reading | None:
    """None if there is nothing to look for: the text of the answer is its content."""
    if prepared.markup.thought is None and not tools:
        return None
    return Reading(
        answer_id,
        thought=prepared.markup.thought,
        in_thought=prepared.opens_thought,
        tool_format=prepared.markup.tool_format if tools else None,
        tools={name: dict(parameters) for name, parameters in tools.items()},
        marked=tuple(prepared.marks),
        one_call=one_call,
        hide_thoughts=hide_thoughts,
    )


@dataclass(frozen=True, slots=True)
class ReadPiece:
    """Everything since the last one that had something to show."""

    piece: Piece
    chunks: Sequence[bytes]
    reasoning_tokens: int


class ChatReading:
    def __init__(self, reading: Reading, chunks: ChunkWriter, num_choices: int) -> None:
        self.reading = reading
        self._chunks = chunks
        self._readers = [AnswerReader(reading, choice) for choice in range(num_choices)]
        self._unshown: list[Piece | None] = [None] * num_choices
        self._unshown_reasoning = [0] * num_choices

    def catch_up(self, texts: Sequence[str]) -> None:
        """Comes to stand where readers left off, when another process had told them of these texts."""
        for reader, text in zip(self._readers, texts, strict=True):
            reader.feed(text)

    def of_piece(self, piece: Piece) -> ReadPiece | None:
        """None while nothing can be told: its tokens are then part of what comes next."""
        at, reader = piece.choice, self._readers[piece.choice]
        was_thinking = reader.is_thinking
        parts = reader.feed(piece.text)
        if was_thinking or reader.is_thinking:
            self._unshown_reasoning[at] += len(piece.token_ids)
        if piece.finish:
            parts += reader.flush()
        if before := self._unshown[at]:
            piece = replace(
                piece, token_ids=before.token_ids + piece.token_ids, logprobs=before.logprobs + piece.logprobs
            )
        chunks = self._chunks.of_parts(piece, self._shown(parts), has_calls=reader.num_calls > 0)
        if not chunks:
            self._unshown[at] = piece
            return None
        read = ReadPiece(piece, chunks, self._unshown_reasoning[at])
        self._unshown[at], self._unshown_reasoning[at] = None, 0
        return read

    def _shown(self, parts: Sequence[Part]) -> Sequence[Part]:
        if not self.reading.hide_thoughts:
            return parts
        return [part for part in parts if not isinstance(part, Thought)]
