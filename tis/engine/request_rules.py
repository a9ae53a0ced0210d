"""What the operator and the catalogue say of every request: how long it may be, and what it gets that sets nothing."""

from collections.abc import Mapping
from typing import Any

from tis.engine.errors import ContextLengthExceeded
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.sampling.params import SamplingParams
from tis.errors import BadRequest


class RequestRules:
    def __init__(
        self,
        max_context_tokens: int,
        *,
        compresses: bool,
        operator_defaults: Mapping[str, Any],
        builtin_defaults: Mapping[str, Any],
    ) -> None:
        self.compresses = compresses  # every chat that is too long
        self._max_context_tokens = max_context_tokens
        self._operator_defaults = operator_defaults
        self._builtin_defaults = builtin_defaults

    def context_limit(self, entry: CatalogueEntry) -> int:
        """0: as many tokens as the model takes."""
        return entry.limits.max_context_tokens or self._max_context_tokens

    def max_context(self, entry: CatalogueEntry, loaded: LoadedModel) -> int:
        return min(loaded.context_length, self.context_limit(entry) or loaded.context_length)

    def params(
        self, entry: CatalogueEntry, loaded: LoadedModel, sampling: Mapping[str, Any], max_context: int
    ) -> SamplingParams:
        params = self.layered(sampling, entry, loaded.generation_defaults)
        _check_token_ids(params, loaded.tokenizer.vocabulary_size)
        if "max_tokens" in sampling and params.max_tokens > max_context:
            raise ContextLengthExceeded(
                max_context, f"you requested {params.max_tokens} tokens in the completion alone.", param="max_tokens"
            )
        return params

    def layered(
        self, sampling: Mapping[str, Any], entry: CatalogueEntry, recommended: Mapping[str, Any]
    ) -> SamplingParams:
        return SamplingParams.layered(
            sampling, entry.defaults, self._operator_defaults, recommended, self._builtin_defaults
        )


def adapter_of(entry: CatalogueEntry) -> str:
    return entry.id if entry.base else ""


def _check_token_ids(params: SamplingParams, vocabulary_size: int) -> None:
    for param, ids in (("logit_bias", params.logit_bias), ("stop_token_ids", params.stop_token_ids)):
        for token_id in ids:
            if not 0 <= token_id < vocabulary_size:
                raise BadRequest(
                    f"{param}: token {token_id} is not in the vocabulary of {vocabulary_size}.", param=param
                )
