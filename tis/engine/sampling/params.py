"""The sampling parameters of a request, their ranges, and the order of their defaults."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter

from tis.errors import BadRequest

MAX_CHOICES = 16
MAX_LOGPROBS = 20
MAX_STOPS = 16
MAX_BIASES = 1024
_SHARE_BEFORE_GRAMMAR = 0.5  # of max_tokens: reasoning must leave room for the answer


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Requests set a field through the field of the same name in `SamplingFields` (`tis/openai_api/wire/fields.py`)."""

    temperature: float = 0.7  # 0: greedy
    top_p: float = 1.0
    top_k: int = 0  # 0 or -1: unlimited
    min_p: float = 0.0
    repetition_penalty: float = 1.0  # over prompt and answer, as in Transformers
    presence_penalty: float = 0.0  # over the answer, as in OpenAI's
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    min_tokens: int = 0
    max_tokens: int = 4096
    ignore_eos: bool = False
    top_logprobs: int | None = None  # None: no logprobs at all
    logprob_token_ids: tuple[int, ...] = ()  # the tokens whose logprobs are wanted, in place of the likeliest
    n: int = 1
    # The maximum of reasoning tokens, and the same as a share of max_tokens.
    thinking_budget: int | None = None
    thinking_share: float | None = None

    @classmethod
    def layered(cls, *layers: Mapping[str, Any]) -> Self:
        """The first layer with a value wins: request, catalogue entry, variable, generation_config.json, built-in."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {}
        for layer in reversed(layers):
            values.update({name: value for name, value in layer.items() if name in known and value is not None})
        if layers and "min_tokens" not in layers[0] and "max_tokens" in values:
            # A default of min_tokens must not contradict the request's max_tokens.
            values["min_tokens"] = min(values.get("min_tokens", 0), values["max_tokens"])
        if layers and "thinking_share" in layers[0] and "thinking_budget" not in layers[0]:
            values.pop("thinking_budget", None)
        return cls(**values)

    def __post_init__(self) -> None:
        _check_range("temperature", self.temperature, 0, 2)
        _check_range("top_p", self.top_p, 0, 1, above_low=True)
        _check_range("top_k", self.top_k, -1, math.inf)
        _check_range("min_p", self.min_p, 0, 1)
        _check_range("repetition_penalty", self.repetition_penalty, 0.01, 10)
        _check_range("presence_penalty", self.presence_penalty, -2, 2)
        _check_range("frequency_penalty", self.frequency_penalty, -2, 2)
        if len(self.logit_bias) > MAX_BIASES:
            raise BadRequest(
                f"logit_bias: at most {MAX_BIASES} tokens, got {len(self.logit_bias)}.", param="logit_bias"
            )
        for token, bias in self.logit_bias.items():
            _check_range(f"logit_bias.{token}", bias, -100, 100)
        _check_range("max_tokens", self.max_tokens, 1, math.inf)
        _check_range("min_tokens", self.min_tokens, 0, self.max_tokens)
        _check_range("n", self.n, 1, MAX_CHOICES)
        if self.top_logprobs is not None:
            _check_range("top_logprobs", self.top_logprobs, 0, MAX_LOGPROBS)
        if self.thinking_budget is not None:
            _check_range("thinking_token_budget", self.thinking_budget, 0, math.inf)
        if self.thinking_share is not None:
            _check_range("thinking_share", self.thinking_share, 0, 1)
        if len(self.stop) > MAX_STOPS:
            raise BadRequest(f"stop: at most {MAX_STOPS} strings, got {len(self.stop)}.", param="stop")
        if "" in self.stop:
            raise BadRequest("stop: an empty string would end every answer at once.", param="stop")

    def with_max_tokens(self, max_tokens: int) -> Self:
        return replace(self, max_tokens=max_tokens, min_tokens=min(self.min_tokens, max_tokens))

    def max_reasoning_tokens(self, *, has_grammar: bool = False) -> int | None:
        """A budget in tokens overrides a share. None: unlimited, which an answer with a grammar never is."""
        if self.thinking_budget is not None:
            return self.thinking_budget
        share = _SHARE_BEFORE_GRAMMAR if self.thinking_share is None and has_grammar else self.thinking_share
        return None if share is None else int(self.max_tokens * share)

    @property
    def is_greedy(self) -> bool:
        # A smaller temperature would overflow.
        return self.temperature < 1e-5

    @property
    def changes_logits(self) -> bool:
        return bool(
            self.logit_bias
            or self.min_tokens
            or self.presence_penalty
            or self.frequency_penalty
            or self.repetition_penalty != 1
        )


def validate_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts values from a file to the types of SamplingParams. Raises ValueError or BadRequest for invalid ones."""
    unknown = set(values) - {f.name for f in fields(SamplingParams)}
    if unknown:
        raise ValueError(f"unknown names: {', '.join(sorted(map(str, unknown)))}")
    params = _types().validate_python(dict(values))
    return {name: getattr(params, name) for name in values}


@cache
def _types() -> TypeAdapter[SamplingParams]:
    return TypeAdapter(SamplingParams)


def _check_range(param: str, value: float, low: float, high: float, *, above_low: bool = False) -> None:
    if (low < value if above_low else low <= value) and value <= high:
        return
    begin = f"more than {low:g}" if above_low else f"at least {low:g}"
    end = "" if high == math.inf else f" and at most {high:g}"
    raise BadRequest(f"{param} must be {begin}{end}, got {value}.", param=param)
