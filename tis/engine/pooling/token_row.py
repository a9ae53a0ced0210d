"""One text, or one pair of texts, as the tokens that the model reads; and what makes such rows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tis.engine.prompt import ChatPrompt, MediumKind
from tis.engine.vision.vision_input import PreprocessedMedia

# Token ids are a text that is encoded already; a prompt is for models that see.
Text = str | Sequence[int] | ChatPrompt


@dataclass(frozen=True, slots=True)
class TokenRow:
    ids: Sequence[int]
    type_ids: Sequence[int] | None = None  # which of two texts each token belongs to
    num_prompt_tokens: int = 0  # of the prompt before the text
    media: PreprocessedMedia | None = None  # pictures, whose placeholders are among the tokens

    def __len__(self) -> int:
        return len(self.ids)


class RowMaker(Protocol):
    """Several threads may call it at once."""

    max_length: int

    @property
    def kinds(self) -> Collection[MediumKind]:
        """What it takes beside texts."""
        ...

    def prompt(self, name: str | None) -> str:
        """Of a name; None: the default of the model, mostly none."""
        ...

    def limit(self, max_length: int) -> None: ...

    def of_texts(self, texts: Sequence[Text], prompt: str, *, truncate: bool) -> list[TokenRow]: ...

    def of_pairs(self, pairs: Sequence[tuple[str, str]], *, truncate: bool) -> list[TokenRow]: ...

    def in_template(
        self, before: Sequence[int], texts: Iterable[str], after: Sequence[int], *, truncate: bool
    ) -> list[TokenRow]: ...
