"""A request that passed every check. It can be queued, and from here on fails only if the model fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tis.engine.grammar.compile import CompiledGrammar
from tis.engine.grammar.constraint import TokenConstraint
from tis.engine.resumable_request import ResumableRequest, SavedMedium
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.detokenizer import Detokenizer, MarkerDetokenizer
from tis.engine.text.markers import ModelMarkers, marker_char
from tis.engine.text.reasoning import ReasoningLimit
from tis.engine.text.tokenizer import Tokenizer, decode
from tis.engine.upstream_call import UpstreamCall
from tis.engine.vision.vision_input import PreprocessedMedia


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    model_id: str
    revision: str
    tokenizer: Tokenizer
    prompt_ids: list[int]
    params: SamplingParams
    seed: int
    context: dict[str, Any] | None = None  # what compression did, if it is on
    vision: PreprocessedMedia | None = None
    media: Sequence[SavedMedium] = ()
    visible_markers: Mapping[str, int] = field(default_factory=dict)  # emitted as marker characters; their token ids
    markers: ModelMarkers = ModelMarkers()
    starts_in_reasoning: bool = False  # the prompt itself opens the reasoning
    grammar: CompiledGrammar | None = None
    reasoning_limit: ReasoningLimit | None = None
    cache_salt: str = ""  # cached prefixes are shared among requests of the same salt and adapter
    adapter: str = ""  # of LoRA, by its name; empty: the model as it is
    prediction_ids: Sequence[int] = ()  # what the client expects the answer to be
    is_raw: bool = False  # the prompt is no chat
    prompt_logprobs: int | None = None  # alternatives to each token of the prompt; None: no log probabilities of it
    upstream: UpstreamCall | None = None  # an engine elsewhere answers it: there are no tokens here
    upstream_media: Mapping[str, bytes] = field(default_factory=dict)  # files that are sent with it, by digest
    # The completions of a constrained request, made in a thread and taken by the first `submit`.
    begun: list[list[Any]] = field(default_factory=list, compare=False)

    @property
    def num_prompt_tokens(self) -> int:
        return self.upstream.num_prompt_tokens if self.upstream else len(self.prompt_ids)

    @property
    def is_constrained(self) -> bool:
        return self.grammar is not None or self.reasoning_limit is not None

    @property
    def num_media_bytes(self) -> int:
        """Of its preprocessed images, videos and sounds."""
        return self.vision.num_bytes if self.vision else 0

    @property
    def resumable(self) -> ResumableRequest:
        return ResumableRequest(
            self.model_id,
            self.revision,
            self.prompt_ids,
            self.params,
            self.seed,
            self.context,
            list(self.media),
            dict(self.visible_markers),
            grammar=self.grammar.grammar if self.grammar else None,
            cache_salt=self.cache_salt,
            prediction_ids=list(self.prediction_ids),
            is_raw=self.is_raw,
            prompt_logprobs=self.prompt_logprobs,
            num_audio_tokens=self.vision.num_audio_tokens if self.vision else 0,
            upstream=self.upstream,
        )

    def new_detokenizer(self) -> Detokenizer:
        plain = self.tokenizer.new_detokenizer()
        if not self.visible_markers:
            return plain
        chars = {token_id: marker_char(marker) for marker, token_id in self.visible_markers.items()}
        return MarkerDetokenizer(plain, chars)

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings, and once more those with a marker in them, as the detokenizer emits it."""
        return tuple(dict.fromkeys((*self.params.stop, *map(self._as_emitted, self.params.stop))))

    def requested_stop(self, found: str | None) -> str | None:
        """One of `stops` as the request has it."""
        if found is None or found in self.params.stop:
            return found
        return next(stop for stop in self.params.stop if self._as_emitted(stop) == found)

    def _as_emitted(self, stop: str) -> str:
        for marker in self.visible_markers:
            stop = stop.replace(marker, marker_char(marker))
        return stop

    def new_constraint(self) -> TokenConstraint | None:
        if not self.is_constrained:
            return None
        return TokenConstraint(
            self.grammar, self.reasoning_limit, self.tokenizer.eos_ids, self.tokenizer.vocabulary_size
        )

    def decode(self, token_ids: Sequence[int]) -> str:
        return decode(self.tokenizer, token_ids)

    def decode_with_markers(self, token_ids: Sequence[int]) -> str:
        detokenizer = self.new_detokenizer()
        return "".join(map(detokenizer.feed, token_ids)) + detokenizer.flush()
