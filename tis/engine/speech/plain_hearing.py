"""Models that Transformers transcribes with and that are no Whisper: a window at a time, by their own code.

CTC models (Wav2Vec2, MMS, HuBERT, Parakeet) write a token for each frame, so their words have times. Moonshine writes
text alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from tis.engine.errors import OutOfMemory
from tis.engine.faults import DeviceLost, device_answers, free_memory, is_out_of_memory
from tis.engine.request import Delivery, HandOut
from tis.engine.speech.attempt import compression_ratio
from tis.engine.speech.heard import HeardSegment, HeardWindow, HeardWord
from tis.engine.speech.speech_request import PreparedWindow, SpeechRequest
from tis.errors import GenerationFailed
from tis.observability.logs import log_exception

_MAX_RUNNING = 32  # windows; those behind wait in the queue
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


class PlainHearingRunner:
    def __init__(self, listen: Listen, device: Any) -> None:
        self._listen, self._device = listen, device
        self._running: list[SpeechRequest] = []

    @property
    def has_room(self) -> bool:
        return len(self._running) < _MAX_RUNNING

    def owes_place(self, owner: str) -> bool:
        return False

    @property
    def cache_use(self) -> None:
        return None

    @property
    def has_bounded_steps(self) -> bool:
        """A window is computed whole."""
        return False

    @property
    def running(self) -> list[SpeechRequest]:
        return self._running

    def admit(self, request: SpeechRequest) -> None:
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        """One window."""
        self._running = [request for request in self._running if not request.is_cancelled]
        if not self._running:
            return
        request = self._running[0]
        delivery: Delivery
        try:
            with torch.inference_mode():
                delivery = (request, self._listen(request.window))
        except Exception as fault:
            if isinstance(fault, DeviceLost) or not self.device_answers():
                raise
            if is_out_of_memory(fault):
                free_memory()
                delivery = (request, OutOfMemory())
            else:
                log_exception("a window could not be heard", fault, request.label)
                message = f"The model failed on this request; the log has the reason under {request.label}."
                delivery = (request, GenerationFailed(message))
        self._running.remove(request)
        hand_out([delivery])

    def warm_up(self, window: PreparedWindow) -> None:
        with torch.inference_mode():
            self._listen(window)

    def drop_all(self) -> None:
        self._running = []

    def device_answers(self) -> bool:
        return device_answers(self._device)


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
