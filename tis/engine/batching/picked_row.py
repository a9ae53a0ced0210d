"""The tokens that a step picks for a sequence: the next one, and those behind its draft while the draft is right."""

import logging
from collections.abc import Sequence as Listing
from dataclasses import dataclass
from typing import Any

import torch

from tis.engine.batching.scheduler import DraftedBy, ScheduledChunk, Scheduler
from tis.engine.batching.sequence import Sequence
from tis.engine.sampling.pick import PickedToken, pick_all
from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS

log = logging.getLogger("tis.engine")


@dataclass(slots=True)
class PickedRow:
    sequence: Sequence
    picked: PickedToken | Exception
    draft: Listing[int] = ()
    logits: Any = None  # behind each token of the draft
    first: int = 0  # the position of the draft in the answer
    num_confirmed: int = 0  # tokens of the draft that the answer has
    drafted_by: DraftedBy = "prompt_lookup"

    @property
    def is_confirmed(self) -> bool:
        """Whether all tokens of the answer behind the draft's beginning are those of the draft."""
        return self.num_confirmed == len(self.sequence.choice.token_ids) - self.first

    def confirm(self) -> int:
        """Returns how many more tokens of the draft the answer has now."""
        if not self.draft:
            return 0
        before = self.num_confirmed
        new_ids = self.sequence.choice.token_ids[self.first + before :]
        for drafted, token_id in zip(self.draft[before:], new_ids, strict=False):
            if drafted != token_id:
                break
            self.num_confirmed += 1
        return self.num_confirmed - before


def pick_first(logits: Any, chunks: Listing[ScheduledChunk]) -> list[PickedRow]:
    """`logits`: behind the last token of each chunk, and behind each token of its draft."""
    begins, end = [], 0
    for chunk in chunks:
        begins.append(end)
        end += 1 + len(chunk.draft)
    first = logits if end == len(chunks) else logits[torch.tensor(begins, device=logits.device)]
    picked = pick_all(first, [chunk.sequence.choice for chunk in chunks])
    return [
        PickedRow(
            chunk.sequence,
            one,
            chunk.draft,
            logits[begin + 1 : begin + 1 + len(chunk.draft)],
            len(chunk.sequence.choice.token_ids),
            drafted_by=chunk.drafted_by,
        )
        for chunk, begin, one in zip(chunks, begins, picked, strict=True)
    ]


def pick_behind_drafts(rows: Listing[PickedRow], scheduler: Scheduler) -> list[PickedRow]:
    """Picks once more for the sequences whose new tokens are those of their drafts."""
    going_on = []
    for row in rows:
        num_confirmed = row.confirm()
        if num_confirmed:
            ACCEPTED_DRAFT_TOKENS.labels(row.drafted_by).inc(num_confirmed)
        if not num_confirmed or row.sequence.is_dropped:
            continue
        if row.is_confirmed:
            going_on.append(row)
            num_confirmed -= 1  # the newest counts as computed when the next one is picked
        scheduler.keep_drafted(row.sequence, num_confirmed)
    if not going_on:
        return []
    try:
        logits = torch.stack([row.logits[row.num_confirmed - 1] for row in going_on])
        picked = pick_all(logits, [row.sequence.choice for row in going_on])
    except Exception as error:  # the next step computes the newest tokens again, and finds the row that is to blame
        log.warning("drafts were dropped: %s", error)
        return []
    for row, one in zip(going_on, picked, strict=True):
        scheduler.keep_drafted(row.sequence, 1)
        row.picked = one
    return going_on
