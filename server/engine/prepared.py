"""A request that passed every check: it can be queued, and only the machine itself can still fail it."""

from dataclasses import dataclass
from typing import Any

from server.engine.kept import KeptRequest
from server.engine.sampling_params import SamplingParams
from server.engine.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Prepared:
    model_id: str
    revision: str
    tokenizer: Tokenizer
    prompt_ids: list[int]
    params: SamplingParams
    seed: int
    context: dict[str, Any] | None = None  # what compression did, if it is on

    @property
    def kept(self) -> KeptRequest:
        return KeptRequest(self.model_id, self.revision, self.prompt_ids, self.params, self.seed, self.context)
