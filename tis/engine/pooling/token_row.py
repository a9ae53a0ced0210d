"""One text, or one pair of texts, as the tokens that the model reads."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenRow:
    ids: Sequence[int]
    type_ids: Sequence[int] | None = None  # which of two texts each token belongs to
    num_prompt_tokens: int = 0  # of the prompt before the text

    def __len__(self) -> int:
        return len(self.ids)
