"""A request that passed every check: it can be queued, and only the machine itself can still fail it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from server.engine.kept import KeptMedium, KeptRequest
from server.engine.sampling_params import SamplingParams
from server.engine.tokenizer import Tokenizer
from server.engine.vision.sight import Vision


@dataclass(frozen=True, slots=True)
class Prepared:
    model_id: str
    revision: str
    tokenizer: Tokenizer
    prompt_ids: list[int]
    params: SamplingParams
    seed: int
    context: dict[str, Any] | None = None  # what compression did, if it is on
    vision: Vision | None = None
    media: Sequence[KeptMedium] = ()

    @property
    def kept(self) -> KeptRequest:
        return KeptRequest(
            self.model_id, self.revision, self.prompt_ids, self.params, self.seed, self.context, list(self.media)
        )
