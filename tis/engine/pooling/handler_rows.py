"""Runs the texts and pairs of a handler through the runner of embeddings: their characters are the tokens."""

from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tis.engine.errors import ContextLengthExceeded, LoadFailed
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.handler import REVISION, limit_of, make_handler, reference_to
from tis.engine.pooling.loaded_pooling import LoadedPooling
from tis.engine.pooling.token_row import Text, TokenRow
from tis.engine.prompt import MediumKind
from tis.errors import BadRequest

_MAX_CHARACTERS = 32_768
_MAX_CHARACTERS_OF_REQUEST = 2**22
_CHARACTERS_PER_STEP = 16_384  # of all requests together, in one call of the handler
_SAMPLE = "text"


def load_pooling_handler(entry: CatalogueEntry, folder: Path | None) -> LoadedPooling:
    handler = make_handler(entry, folder)
    from tis.engine.pooling.pooling_runner import PoolingRunner

    head = HandlerHead(handler, is_reranker=entry.task == "rerank")
    rows = CharacterRows(limit_of(handler, _MAX_CHARACTERS))
    sample = rows.of_pairs([(_SAMPLE, _SAMPLE)], truncate=True) if entry.task == "rerank" else None
    try:
        size = int(head([], sample or rows.of_texts([_SAMPLE], "", truncate=True)).shape[-1])
    except Exception as error:
        raise LoadFailed(f"The handler {entry.handler} failed on a sample: {type(error).__name__}: {error}") from error
    return LoadedPooling(
        new_runner=partial(PoolingRunner, HandlerEncoder(), head, _CHARACTERS_PER_STEP),
        context_length=rows.max_length,
        revision=f"{REVISION} {entry.handler}",
        rows=rows,
        size=size,
        weights=reference_to(handler),
        close=getattr(handler, "close", None),
    )


class CharacterRows:
    def __init__(self, max_length: int) -> None:
        self.max_length = max_length

    @property
    def kinds(self) -> Collection[MediumKind]:
        return ()

    def prompt(self, name: str | None) -> str:
        if name is not None:
            raise BadRequest(f"prompt_name: this model has no prompt {name[:64]!r}.", param="prompt_name")
        return ""

    def limit(self, max_length: int) -> None:
        self.max_length = min(self.max_length, max_length)

    def of_texts(self, texts: Sequence[Text], prompt: str, *, truncate: bool) -> list[TokenRow]:
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise BadRequest(f"input[{number}]: this model takes texts, and no tokens.", param="input")
        return self._rows([((prompt + str(text)), "") for text in texts], truncate=truncate)

    def of_pairs(self, pairs: Sequence[tuple[str, str]], *, truncate: bool) -> list[TokenRow]:
        return self._rows(pairs, truncate=truncate)

    def in_template(
        self, before: Sequence[int], texts: Iterable[str], after: Sequence[int], *, truncate: bool
    ) -> list[TokenRow]:
        raise NotImplementedError  # a handler has no template

    def _rows(self, pairs: Sequence[tuple[str, str]], *, truncate: bool) -> list[TokenRow]:
        rows, total = [], 0
        for number, (first, second) in enumerate(pairs):
            length = len(first) + len(second)
            if length > self.max_length and not truncate:
                raise ContextLengthExceeded(self.max_length, f"input[{number}] has {length} characters.", param="input")
            first = first[: self.max_length]
            second = second[: self.max_length - len(first)]
            total += len(first) + len(second)
            if total > _MAX_CHARACTERS_OF_REQUEST:
                raise BadRequest(
                    f"The texts of a request have at most {_MAX_CHARACTERS_OF_REQUEST:,} characters.", param="input"
                )
            kinds = bytes(len(first)) + b"\1" * len(second)
            rows.append(TokenRow(array("I", map(ord, first + second)), kinds))
        return rows


class HandlerEncoder:
    """The handler reads the rows by itself."""

    def __init__(self) -> None:
        import torch

        self.device = torch.device("cpu")

    def hidden_states(self, rows: Sequence[TokenRow]) -> list[Any]:
        return []


class HandlerHead:
    def __init__(self, handler: Any, *, is_reranker: bool) -> None:
        self._handler = handler
        self._is_reranker = is_reranker

    def __call__(self, states: Sequence[Any], rows: Sequence[TokenRow]) -> Any:
        import torch

        pairs = [_pair(row) for row in rows]
        if self._is_reranker:
            made = torch.as_tensor(list(self._handler.score(pairs)), dtype=torch.float32).reshape(-1, 1)
        else:
            vectors = [[float(number) for number in one] for one in self._handler.embed([text for text, _ in pairs])]
            made = torch.tensor(vectors, dtype=torch.float32)
        if len(made) != len(rows) or made.dim() != 2:
            raise ValueError(f"{len(rows)} texts gave results of the shape {tuple(made.shape)}")
        return made


def _pair(row: TokenRow) -> tuple[str, str]:
    text = "".join(map(chr, row.ids))
    middle = bytes(row.type_ids or b"").find(b"\1")
    return (text, "") if middle < 0 else (text[:middle], text[middle:])
