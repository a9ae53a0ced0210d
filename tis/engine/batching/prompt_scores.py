"""The log probability of each token of a prompt, as the model gives it behind the tokens before."""

from typing import Any

import torch

from tis.engine.batching.sequence import Sequence
from tis.engine.sampling.pick import NoCandidates, PickedToken, logprob_of
from tis.engine.text.tokenizer import Tokenizer

_ROWS_AT_ONCE = 16


def score_prompt(sequence: Sequence, start: int, logits: Any, tokenizer: Tokenizer) -> None:
    """`logits`: float32, behind the tokens of the sequence from `start` on. Scores no token twice."""
    choice = sequence.choice
    num_top = choice.num_prompt_alternatives
    if choice.next_scored == 0:
        first = PickedToken(choice.prompt_ids[0], 0.0)  # nothing is before it
        choice.add_scores([logprob_of(first, tokenizer)])
    end = min(start + len(logits), len(choice.prompt_ids) - 1)
    while (token := choice.next_scored) is not None and start < token <= end:
        stop = min(token + _ROWS_AT_ONCE, end + 1)
        logprobs = torch.log_softmax(logits[token - 1 - start : stop - 1 - start], -1)
        token_ids = choice.prompt_ids[token:stop]
        own = logprobs.gather(1, torch.tensor(token_ids, device=logprobs.device)[:, None])[:, 0].tolist()
        if any(value != value for value in own):
            raise NoCandidates
        values, ids = (one.tolist() for one in torch.topk(logprobs, num_top))
        choice.add_scores(
            [
                logprob_of(PickedToken(token_id, value, tuple(zip(of_top, of_values, strict=True))), tokenizer)
                for token_id, value, of_top, of_values in zip(token_ids, own, ids, values, strict=True)
            ]
        )
