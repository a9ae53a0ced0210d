"""A request that passed every check: it can be queued, and only the machine itself can still fail it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from server.engine.grammar.compiling import CompiledGrammar
from server.engine.guide import Guide
from server.engine.kept import KeptMedium, KeptRequest
from server.engine.sampling_params import SamplingParams
from server.engine.thinking import Thinking
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
    grammar: CompiledGrammar | None = None
    thinking: Thinking | None = None

    @property
    def kept(self) -> KeptRequest:
        return KeptRequest(
            self.model_id,
            self.revision,
            self.prompt_ids,
            self.params,
            self.seed,
            self.context,
            list(self.media),
            grammar=self.grammar.grammar if self.grammar else None,
        )

    def new_guide(self) -> Guide | None:
        if self.grammar is None and self.thinking is None:
            return None
        return Guide(self.grammar, self.thinking, self.tokenizer.eos_ids, self.tokenizer.vocabulary_size)

    def text_of(self, token_ids: Sequence[int]) -> str:
        detokenizer = self.tokenizer.new_detokenizer()
        return "".join(map(detokenizer.feed, token_ids)) + detokenizer.flush()
