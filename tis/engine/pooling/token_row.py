"""One text, or one pair of texts, as the tokens that the model reads; and what makes such rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

Text = str | Sequence[int]  # token ids are a text that is encoded already


@dataclass(frozen=True, slots=True)
class TokenRow:
    ids: Sequence[int]
    type_ids: Sequence[int] | None = None  # which of two texts each token belongs to
    num_prompt_tokens: int = 0  # of the prompt before the text

    def __len__(self) -> int:
        return len(self.ids)


class RowMaker(Protocol):
    """Several threads may call it at once."""

    max_length: int

    def prompt(self, name: str | None) -> str:
        """Of a name; None: the default of the model, mostly none."""
        ...

    def limit(self, max_length: int) -> None: ...

    def of_texts(self, texts: Sequence[Text], prompt: str, *, truncate: bool) -> list[TokenRow]: ...

    def of_pairs(self, pairs: Sequence[tuple[str, str]], *, truncate: bool) -> list[TokenRow]: ...

    def in_template(
        self, before: Sequence[int], texts: Iterable[str], after: Sequence[int], *, truncate: bool
    ) -> list[TokenRow]: ...
