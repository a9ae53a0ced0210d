"""Which model may draft for another: one of the same vocabulary that is no larger."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.models.description import weights_bytes_of


@dataclass(frozen=True, slots=True)
class DraftRules:
    """Of the model that checks the drafts."""

    folder: Path
    tokenizer: Any

    def require_fit(self, name: str, folder: Path, tokenizer: Any) -> None:
        ours, theirs = weights_bytes_of(self.folder), weights_bytes_of(folder)
        if ours and theirs and theirs > ours:
            raise LoadFailed(
                f"DRAFT_MODEL={name} has {theirs / 2**20:,.1f} MiB of weights, and the model {ours / 2**20:,.1f}: a "
                "draft model is the smaller one."
            )
        if reason := why_other_vocabulary(self.tokenizer.get_vocab(), tokenizer.get_vocab()):
            raise LoadFailed(f"DRAFT_MODEL={name} has another vocabulary than the model: {reason}.")


def why_other_vocabulary(ours: Mapping[str, int], theirs: Mapping[str, int]) -> str | None:
    """None if each token has the same number in both."""
    different = [token for token, number in ours.items() if theirs.get(token) != number]
    if different:
        example = min(different, key=ours.__getitem__)
        return f"{len(different):,} of {len(ours):,} tokens, such as {example!r} with the number {ours[example]}"
    if more := len(theirs) - len(ours):
        return f"it has {more:,} tokens more"
    return None
