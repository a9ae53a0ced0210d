"""How far a response is: enough to go on with it, told from the marks on its events."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Any

from server.engine.answer import Piece, TokenLogprob
from server.engine.kept import ShownChoice

BEGUN = b"begun"
STARTED = b"started"
DONE = b"done"
FAILED = b"failed"


@dataclass(slots=True)
class Progress:
    shown: ShownChoice = field(default_factory=ShownChoice)
    num_tokens: int = 0
    cached_tokens: int = 0
    _unmarked: list[Piece] = field(default_factory=list)

    def note(self, piece: Piece, cached_tokens: int) -> None:
        self.num_tokens += len(piece.token_ids)
        self.cached_tokens = max(self.cached_tokens, cached_tokens)
        self._unmarked.append(piece)

    def mark(self) -> bytes:
        """Of all pieces since the last one: a piece may end in the middle of what becomes one event."""
        pieces, self._unmarked = self._unmarked, []
        # In ASCII: in a text that will be read, halves of surrogate pairs stand for markers.
        return f"[{self.cached_tokens},[{','.join(map(_written, pieces))}]]".encode()

    def read(self, mark: bytes) -> Sequence[Piece]:
        """The pieces of a mark, which readers have got."""
        cached_tokens, written = json.loads(mark)
        pieces = [_read(one) for one in written]
        for piece in pieces:
            self.note(piece, cached_tokens)
            self.shown.token_ids += piece.token_ids
            self.shown.finish = piece.finish or self.shown.finish
        self._unmarked.clear()
        return pieces


def _written(piece: Piece) -> str:
    """By hand, as this is the path of every token; a list of numbers prints as JSON."""
    finish = f'"{piece.finish}"' if piece.finish else "null"
    logprobs = f",{json.dumps([_logprob(one) for one in piece.logprobs])}" if piece.logprobs else ""
    return f"[{encode_basestring_ascii(piece.text)},{list(piece.token_ids)},{finish}{logprobs}]"


def _read(written: Sequence[Any]) -> Piece:
    text, token_ids, finish, *logprobs = written
    told = tuple(map(_logprob_again, logprobs[0])) if logprobs else ()
    return Piece(0, text, tuple(token_ids), told, finish)


def _logprob(one: TokenLogprob) -> list[object]:
    return [one.token_id, one.text, one.bytes.hex(), one.logprob, [_logprob(top) for top in one.top]]


def _logprob_again(written: Sequence[Any]) -> TokenLogprob:
    token_id, text, data, logprob, top = written
    return TokenLogprob(token_id, text, bytes.fromhex(data), logprob, tuple(map(_logprob_again, top)))
