"""What a session store keeps of a request and its answer, so that another process can resume the answer."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter

from tis.engine.answer import FinishReason
from tis.engine.grammar.grammar import Grammar
from tis.engine.prompt import Detail, MediumKind
from tis.engine.sampling.params import SamplingParams, validate_defaults
from tis.engine.upstream_call import UpstreamCall


@dataclass(frozen=True, slots=True)
class SavedMedium:
    """An image, a video or a sound of the prompt. The store keeps its bytes separately, by digest."""

    kind: MediumKind
    digest: str
    detail: Detail = "auto"


@dataclass(frozen=True, slots=True)
class ResumableRequest:
    model_id: str
    revision: str
    prompt_ids: list[int]
    params: SamplingParams
    seed: int
    context: dict[str, Any] | None = None
    media: list[SavedMedium] = field(default_factory=list)  # in the order of the prompt
    visible_markers: dict[str, int] = field(default_factory=dict)
    grammar: Grammar | None = None
    cache_salt: str = ""
    prediction_ids: list[int] = field(default_factory=list)
    is_raw: bool = False  # the prompt is no chat
    prompt_logprobs: int | None = None  # alternatives to each token of the prompt; None: no log probabilities of it
    num_audio_tokens: int = 0  # of the prompt
    upstream: UpstreamCall | None = None

    @property
    def num_prompt_tokens(self) -> int:
        return self.upstream.num_prompt_tokens if self.upstream else len(self.prompt_ids)

    def to_json(self) -> dict[str, Any]:
        # Not dataclasses.asdict, which copies a prompt number by number; this runs for every request.
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return plain | {
            "params": _params_to_json(self.params),
            "media": [asdict(medium) for medium in self.media],
            "grammar": self.grammar and self.grammar.to_json(),
            "upstream": self.upstream and self.upstream.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Raises ValueError, KeyError, TypeError or BadRequest if the document is not a request."""
        params = SamplingParams(**validate_defaults(document["params"]))
        request: Self = _types().validate_python({**document, "params": params})
        return request


@dataclass(slots=True)
class EmittedTokens:
    """The tokens of one choice that clients have."""

    token_ids: list[int] = field(default_factory=list)
    finish: FinishReason | None = None
    num_scored: int = 0  # tokens of the prompt whose log probabilities clients have
    # Of an engine elsewhere, whose tokens are not known here.
    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    num_calls: int = 0
    num_pieces: int = 0


@cache
def _types() -> TypeAdapter[Any]:
    """Made once: to make it takes longer than the rest of reading a request."""
    return TypeAdapter(ResumableRequest)


def _params_to_json(params: SamplingParams) -> dict[str, Any]:
    return {f.name: getattr(params, f.name) for f in fields(params)} | {
        "logit_bias": {str(token_id): bias for token_id, bias in params.logit_bias.items()},
        "stop": list(params.stop),
        "stop_token_ids": list(params.stop_token_ids),
        "logprob_token_ids": list(params.logprob_token_ids),
    }
