"""Runs the chats of a handler: its pieces are the tokens."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tis.engine.completion import Completion
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.handler import REVISION, limit_of, make_handler, reference_to
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Delivery, HandOut, Request
from tis.errors import BadRequest, GenerationFailed
from tis.observability.logs import log_exception

_MAX_CHARACTERS = 131_072
_FIRST_PIECE = 0x110000  # behind all characters, whose tokens are their code points
_MAX_PIECES = 2**20  # different ones; a model has no more tokens. Others are tokens of one character each
_MAX_RUNNING = 8
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed")


def load_chat_handler(entry: CatalogueEntry, folder: Path | None) -> LoadedModel:
    handler = make_handler(entry, folder)
    pieces = PieceTokenizer()
    return LoadedModel(
        tokenizer=pieces,
        new_runner=lambda: HandlerRunner(handler, pieces),
        context_length=limit_of(handler, _MAX_CHARACTERS),
        generation_defaults={},
        revision=REVISION,
        weights=reference_to(handler),
        close=getattr(handler, "close", None),
    )


def _chats_only() -> BadRequest:
    """Its tokens are characters and pieces of answers: a raw prompt would reach no model."""
    return BadRequest(
        "This model is a Python class that answers chats: it takes no raw prompts, and has no tokens to show.",
        param="model",
        code="model_not_supported",
    )


class PieceTokenizer:
    """A prompt is its messages as JSON, a token for each character; a token of an answer is a piece."""

    eos_ids: frozenset[int] = frozenset()
    vocabulary_size = _FIRST_PIECE + _MAX_PIECES

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []

    def ids_of_piece(self, piece: str) -> list[int]:
        if len(piece) == 1:
            return [ord(piece)]
        if piece not in self._ids:
            if len(self._texts) >= _MAX_PIECES:
                return self.encode_text(piece)
            self._texts.append(piece)
            self._ids[piece] = _FIRST_PIECE + len(self._texts) - 1
        return [self._ids[piece]]

    def encode_chat(self, prompt: ChatPrompt) -> list[int]:
        return self.encode_text(json.dumps(list(prompt.messages), ensure_ascii=False))

    def encode_text(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def encode_raw(self, text: str, *, adds_special_tokens: bool, max_tokens: int | None = None) -> list[int]:
        raise _chats_only()

    def decode_raw(self, token_ids: Sequence[int]) -> str:
        raise _chats_only()

    def visible_texts(self, token_ids: Sequence[int]) -> list[str]:
        raise _chats_only()

    def text_offsets(self, text: str, token_ids: Sequence[int], *, adds_special_tokens: bool) -> list[int]:
        raise _chats_only()

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        raise _chats_only()

    def count_tokens(self, text: str, max_tokens: int) -> int:
        return len(text)

    def token_text(self, token_id: int) -> str:
        return self._texts[token_id - _FIRST_PIECE] if token_id >= _FIRST_PIECE else chr(token_id)

    def token_bytes(self, token_id: int) -> bytes:
        return self.token_text(token_id).encode(errors="replace")

    def new_detokenizer(self) -> "PieceDetokenizer":
        return PieceDetokenizer(self)


class PieceDetokenizer:
    def __init__(self, tokenizer: PieceTokenizer) -> None:
        self._tokenizer = tokenizer

    def feed(self, token_id: int) -> str:
        return self._tokenizer.token_text(token_id)

    def flush(self) -> str:
        return ""


class HandlerRunner:
    """Takes a piece of every running choice in a step."""

    cache_use: float | None = None
    num_passes = 0
    has_bounded_steps = False  # a piece takes as long as the handler likes

    def __init__(self, handler: Any, pieces: PieceTokenizer) -> None:
        self._handler = handler
        self._pieces = pieces
        self._running: list[Request] = []
        self._answers: dict[Completion, Iterator[str]] = {}

    @property
    def has_room(self) -> bool:
        return len(self._running) < _MAX_RUNNING

    @property
    def running(self) -> list[Request]:
        return self._running

    def owes_place(self, owner: str) -> bool:
        return False

    def admit(self, request: Request) -> None:
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        deliveries: list[Delivery] = []
        for request in list(self._running):
            try:
                deliveries += request.cancel_completions() if request.is_cancelled else self._advance(request)
            except Exception as fault:
                log_exception("a handler failed", fault, request.label)
                reason = f"The model failed on this request; the log has the reason under {request.label}."
                deliveries.append((request, GenerationFailed(reason)))
                self._drop(request)
            if not request.unfinished:
                self._drop(request)
        hand_out(deliveries)

    def drop_all(self) -> None:
        for request in list(self._running):
            self._drop(request)

    def device_answers(self) -> bool:
        return True

    def _advance(self, request: Request) -> Sequence[Delivery]:
        deliveries: list[Delivery] = []
        for completion in request.unfinished:
            if completion not in self._answers:
                self._answers[completion] = self._begin(request, completion)
            piece = next((one for one in self._answers[completion] if one), None)
            if piece is None:
                deliveries.append((request, completion.end()))
                continue
            for token_id in self._pieces.ids_of_piece(str(piece)):
                if (made := completion.accept(token_id)) is not None:
                    deliveries.append((request, made))
                if completion.is_finished:
                    break
        return deliveries

    def _begin(self, request: Request, completion: Completion) -> Iterator[str]:
        prompt = "".join(map(chr, request.prompt_ids))
        sampling: Mapping[str, Any] = {name: getattr(completion.params, name) for name in _SAMPLING}
        seed = request.prepared.seed + completion.index
        answer: Iterator[str] = iter(self._handler.generate(json.loads(prompt), {**sampling, "seed": seed}))
        return answer

    def _drop(self, request: Request) -> None:
        if request in self._running:
            self._running.remove(request)
        for completion in request.completions:
            close = getattr(self._answers.pop(completion, None), "close", None)
            if close:
                close()
