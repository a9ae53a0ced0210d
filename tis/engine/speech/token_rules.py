"""Which tokens may come next, and which one comes: as the logits processors of Transformers' Whisper decide it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.sample import sample_all
from tis.engine.speech.whisper_vocabulary import WhisperVocabulary
from tis.errors import GenerationFailed


@dataclass(frozen=True, slots=True)
class ChosenToken:
    token_id: int
    logprob: float  # among the tokens that were allowed, at temperature 1


class TokenRules:
    def __init__(self, vocabulary: WhisperVocabulary, generation: Any) -> None:
        self._vocabulary = vocabulary
        self._never = np.array(getattr(generation, "suppress_tokens", None) or [], dtype=np.int64)
        self._never_first = np.array(getattr(generation, "begin_suppress_tokens", None) or [], dtype=np.int64)
        self._max_first_time = getattr(generation, "max_initial_timestamp_index", None)

    def choose(
        self, logits: Any, tokens: Sequence[int], *, with_times: bool, temperature: float, noise_key: int
    ) -> ChosenToken:
        """`logits`: a row of float32 in numpy, which is changed; `tokens`: those before. Raises GenerationFailed."""
        logits[self._never] = -np.inf
        if not tokens:
            logits[self._never_first] = -np.inf
        if with_times:
            self._forbid_by_times(logits, tokens)
        token_id = int(logits.argmax())
        largest = float(logits[token_id])
        if not math.isfinite(largest):
            raise GenerationFailed("The model computed no usable numbers (NaN).")
        if temperature > 0:
            params = SamplingParams(temperature=temperature)
            [token_id] = sample_all(torch.from_numpy(logits)[None], [params], [noise_key])
        log_of_sum = largest + math.log(float(np.exp(logits - np.float32(largest)).sum()))
        return ChosenToken(token_id, float(logits[token_id]) - log_of_sum)

    def no_speech_prob(self, logits: Any) -> float:
        """`logits`: of the position of `<|startoftranscript|>`, unchanged."""
        largest = logits.max()
        weights = np.exp(logits - largest)
        return float(weights[self._vocabulary.no_speech] / weights.sum())

    def language(self, logits: Any) -> str:
        ids = self._vocabulary.language_ids
        best = int(np.argmax(logits[ids]))
        if not math.isfinite(float(logits[ids[best]])):
            raise GenerationFailed("The model computed no usable numbers (NaN).")
        return self._vocabulary.code_of(ids[best])

    def _forbid_by_times(self, logits: Any, tokens: Sequence[int]) -> None:
        """Times come in pairs but for the last, never decrease, and come where one is likelier than any text."""
        first_time, end = self._vocabulary.first_time, self._vocabulary.end
        logits[self._vocabulary.no_times] = -np.inf
        if not tokens:
            logits[:first_time] = -np.inf
            if self._max_first_time is not None:
                logits[first_time + self._max_first_time + 1 :] = -np.inf
            return
        follows_time = tokens[-1] >= first_time
        follows_pair = follows_time and (len(tokens) < 2 or tokens[-2] >= first_time)
        if follows_pair:
            logits[first_time:] = -np.inf
        elif follows_time:
            logits[:end] = -np.inf
        last = next((token for token in reversed(tokens) if token >= first_time), None)
        if last is not None:
            logits[first_time : last if follows_time and not follows_pair else last + 1] = -np.inf
        times = logits[first_time:]
        largest = times.max(initial=-np.inf)
        if largest > -np.inf:
            log_of_sum = largest + np.log(np.exp(times - largest).sum())
            if log_of_sum > logits[:first_time].max():
                logits[:first_time] = -np.inf
