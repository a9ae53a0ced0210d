"""Models that Transformers transcribes with and that are no Whisper: a window at a time, by their own code.

CTC models (Wav2Vec2, MMS, HuBERT, Parakeet) write a token for each frame, so their words have times. Moonshine writes
text alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from tis.engine.one_by_one_runner import ForwardPasses, OneByOneRunner
from tis.engine.speech.attempt import compression_ratio
from tis.engine.speech.heard import HeardSegment, HeardWindow, HeardWord
from tis.engine.speech.speech_request import PreparedWindow, SpeechRequest
from tis.errors import GenerationFailed

_MAX_RUNNING = 32
_TOKENS_PER_SECOND = 6.5  # of Moonshine, as its makers advise: more are a loop
_LONGEST_LOOP = 2.4  # of the compression ratio


@dataclass(frozen=True, slots=True)
class PlainHeard:
    text: str
    token_ids: tuple[int, ...] = ()
    avg_logprob: float = 0.0
    words: tuple[HeardWord, ...] = ()
    language: str | None = None

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)


Listen = Callable[[PreparedWindow], PlainHeard]


class PlainText:
    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate

    def heard(self, made: PlainHeard, window: PreparedWindow) -> HeardWindow:
        ratio = compression_ratio(made.text)
        if not made.text.strip() or ratio > _LONGEST_LOOP:
            return HeardWindow(None, (), made.num_tokens)
        segment = HeardSegment(
            start=made.words[0].start if made.words else 0.0,
            end=made.words[-1].end if made.words else window.num_samples / self._sample_rate,
            text=made.text,
            token_ids=made.token_ids,
            temperature=0.0,
            avg_logprob=made.avg_logprob,
            compression_ratio=ratio,
            no_speech_prob=0.0,
            words=made.words if window.options.with_words else (),
        )
        return HeardWindow(None, (segment,), made.num_tokens)


class PlainHearingRunner(OneByOneRunner[SpeechRequest]):
    def __init__(self, listen: Listen, passes: ForwardPasses, device: Any) -> None:
        super().__init__(passes, device, max_running=_MAX_RUNNING, failure="a window could not be heard")
        self._listen = listen

    def compute(self, request: SpeechRequest) -> PlainHeard:
        return self.heard(request.window)

    def heard(self, window: PreparedWindow) -> PlainHeard:
        with torch.inference_mode():
            return self._listen(window)


class CtcListener:
    def __init__(self, model: Any, tokenizer: Any, sample_rate: int) -> None:
        self._model, self._tokenizer, self._sample_rate = model, tokenizer, sample_rate
        self._blank = model.config.pad_token_id
        self._delimiter = getattr(tokenizer, "word_delimiter_token", None)

    def __call__(self, window: PreparedWindow) -> PlainHeard:
        inputs = {name: tensor.to(self._model.device) for name, tensor in window.features.items()}
        logits = self._model(**inputs).logits[0].float()
        if not bool(torch.isfinite(logits).all()):
            raise GenerationFailed("The model computed no usable numbers (NaN).")
        likely, best = logits.log_softmax(-1).max(-1)
        text = str(self._tokenizer.decode(best.tolist()))
        seconds = window.num_samples / self._sample_rate / len(best)  # of a frame
        tokens = _collapsed(best.tolist(), self._blank)
        values = likely.tolist()
        kept = [values[first] for _, first, _ in tokens]
        words = self._words(tokens, values, seconds)
        is_same = "".join(word.text for word in words).split() == text.split()
        ids = tuple(token for token, _, _ in tokens)
        return PlainHeard(text, ids, sum(kept) / max(1, len(kept)), tuple(words) if is_same else ())

    def _words(
        self, tokens: "Sequence[tuple[int, int, int]]", values: Sequence[float], seconds: float
    ) -> list[HeardWord]:
        words: list[HeardWord] = []
        begins = True
        for token_id, first, last in tokens:
            piece = str(self._tokenizer.convert_ids_to_tokens(token_id))
            if piece == self._delimiter:
                begins = True
                continue
            begins = begins or piece.startswith("▁")
            likely = float(torch.tensor(values[first:last]).exp().mean())
            piece = piece.removeprefix("▁")
            if begins or not words:
                words.append(HeardWord(f" {piece}" if words else piece, first * seconds, last * seconds, likely))
            else:
                before = words[-1]
                words[-1] = HeardWord(
                    before.text + piece, before.start, last * seconds, min(before.probability, likely)
                )
            begins = False
        return words


def _collapsed(ids: Sequence[int], blank: int) -> list[tuple[int, int, int]]:
    """Each token with its first frame and the one behind its last."""
    tokens, frame = [], 0
    for token_id, group in groupby(ids):
        length = sum(1 for _ in group)
        if token_id != blank:
            tokens.append((token_id, frame, frame + length))
        frame += length
    return tokens


class MoonshineListener:
    def __init__(self, model: Any, tokenizer: Any, sample_rate: int) -> None:
        self._model, self._tokenizer, self._sample_rate = model, tokenizer, sample_rate

    def __call__(self, window: PreparedWindow) -> PlainHeard:
        inputs = {name: tensor.to(self._model.device) for name, tensor in window.features.items()}
        most = max(2, int(window.num_samples / self._sample_rate * _TOKENS_PER_SECOND))
        ids = self._model.generate(**inputs, max_new_tokens=most, do_sample=False)[0].tolist()
        return PlainHeard(str(self._tokenizer.decode(ids, skip_special_tokens=True)), tuple(ids[1:]))
