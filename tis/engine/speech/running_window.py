"""A window on its way: heard by the encoder, then its language, then one attempt after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tis.engine.sampling.random_stream import noise_key
from tis.engine.speech.attempt import HearingAttempt, Verdict, cut_loop, judge, repeats_itself
from tis.engine.speech.speech_request import SpeechRequest, WindowTokens
from tis.engine.speech.token_rules import TokenRules
from tis.engine.speech.whisper_vocabulary import WhisperVocabulary
from tis.engine.speech.window_slots import DecoderRow


class HearingStage(Enum):
    ENCODER = "encoder"
    LANGUAGE = "language"
    TOKENS = "tokens"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class WindowRules:
    """What all windows of a model share."""

    vocabulary: WhisperVocabulary
    tokens: TokenRules
    max_positions: int


class RunningWindow:
    """Used by the model's thread alone."""

    def __init__(self, request: SpeechRequest, slot: int, rules: WindowRules) -> None:
        self.request = request
        self.slot = slot
        self.stage = HearingStage.ENCODER
        self.result: WindowTokens | None = None
        self._rules = rules
        self._options = request.window.options
        self._language = self._options.language
        self._attempt: HearingAttempt | None = None
        self._num_tokens = 0

    def heard(self) -> None:
        """The encoder is done with it."""
        has_language = self._language is not None and not self.request.window.is_detected_only
        if self._rules.vocabulary.languages and not has_language:
            self.stage = HearingStage.LANGUAGE
        else:
            self._begin_attempt(0)

    def row(self) -> DecoderRow:
        """What it adds to the next step of the decoder."""
        if self.stage is HearingStage.LANGUAGE:
            return DecoderRow(self.slot, [self._rules.vocabulary.start], 0, [0])
        attempt = self._running_attempt
        if not attempt.tokens:
            last = len(attempt.prompt_ids) - 1
            wanted = [last] if attempt.start_at == last else [attempt.start_at, last]
            return DecoderRow(self.slot, attempt.prompt_ids, 0, wanted)
        return DecoderRow(self.slot, attempt.tokens[-1:], len(attempt.prompt_ids) + len(attempt.tokens) - 1, [0])

    def take(self, logits: Any) -> None:
        """The rows of float32 of the wanted places, which are changed. Raises GenerationFailed."""
        if self.stage is HearingStage.LANGUAGE:
            self._language = self._rules.tokens.language(logits[0])
            if self.request.window.is_detected_only:
                self._finish(WindowTokens(self._language))
            else:
                self._begin_attempt(0)
            return
        attempt = self._running_attempt
        if not attempt.tokens:
            attempt.no_speech_prob = self._rules.tokens.no_speech_prob(logits[0])
        chosen = self._rules.tokens.choose(
            logits[-1],
            attempt.tokens,
            with_times=self._options.with_times,
            temperature=attempt.temperature,
            noise_key=noise_key(self._options.seed, attempt.number, len(attempt.tokens)),
        )
        self._num_tokens += 1
        if chosen.token_id == self._rules.vocabulary.end:
            attempt.end_logprob = chosen.logprob
            self._judge(attempt)
            return
        attempt.tokens.append(chosen.token_id)
        attempt.logprobs.append(chosen.logprob)
        if len(attempt.prompt_ids) + len(attempt.tokens) >= self._rules.max_positions:
            self._judge(attempt)

    @property
    def alignment_ids(self) -> Sequence[int] | None:
        """The text in the form in which its words are aligned; None if that is not wanted."""
        result, vocabulary = self.result, self._rules.vocabulary
        if result is None or not result.tokens or not self._options.with_words:
            return None
        text = [token for token in result.tokens if vocabulary.is_text(token)]
        init = vocabulary.init_ids(self._language, self._options.task, with_times=False)
        return [*init, *text[: self._rules.max_positions - len(init) - 1], vocabulary.end]

    @property
    def _running_attempt(self) -> HearingAttempt:
        assert self._attempt is not None
        return self._attempt

    def _begin_attempt(self, number: int) -> None:
        vocabulary, options = self._rules.vocabulary, self._options
        previous = vocabulary.previous_ids(options.prompt)
        init = vocabulary.init_ids(self._language, options.task, with_times=options.with_times)
        temperature = options.temperatures[number]
        self._attempt = HearingAttempt([*previous, *init], len(previous), temperature, number)
        self.stage = HearingStage.TOKENS

    def _judge(self, attempt: HearingAttempt) -> None:
        text = self._rules.vocabulary.text_of(attempt.tokens)
        verdict = judge(attempt, text)
        is_last = attempt.number + 1 == len(self._options.temperatures)
        if verdict is Verdict.DOUBT and not is_last:
            self._begin_attempt(attempt.number + 1)
            return
        tokens: Sequence[int] = attempt.tokens
        if verdict is Verdict.SILENCE:
            tokens = ()
        elif repeats_itself(text):
            tokens = cut_loop(tokens, self._rules.vocabulary)
        self._finish(
            WindowTokens(
                self._language or (None if self._rules.vocabulary.languages else "en"),
                tuple(tokens),
                tuple(attempt.logprobs[: len(tokens)]),
                attempt.temperature,
                attempt.avg_logprob,
                attempt.no_speech_prob,
                self._num_tokens,
            )
        )

    def _finish(self, result: WindowTokens) -> None:
        self.result = result
        self.stage = HearingStage.DONE
