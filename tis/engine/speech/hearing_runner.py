"""Computes many windows at once: slices of the encoder for those that are new, then a token of all that it has heard.

A slice ends after a while, so that a queue of windows does not hold up the running ones. A group that fails is computed
again one by one; a window that fails alone fails alone.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from tis.engine.errors import OutOfMemory
from tis.engine.faults import DeviceLost, device_answers, free_memory, is_out_of_memory
from tis.engine.request import Delivery, HandOut
from tis.engine.speech.running_window import HearingStage, RunningWindow, WindowRules
from tis.engine.speech.speech_request import SpeechRequest
from tis.engine.speech.whisper_decoder import WhisperDecoder
from tis.engine.speech.whisper_encoder import EncoderPass, WhisperEncoder
from tis.engine.speech.window_slots import DecoderRow, WindowSlots
from tis.errors import GenerationFailed, ServiceError
from tis.observability.logs import log_exception

_MAX_KEPT = 8  # windows whose encoding is remembered: a language is detected before the window is heard


@dataclass(frozen=True, slots=True)
class HearingLimits:
    group: int  # windows that go through the encoder together
    step_seconds: float  # of the encoder, while others wait for their next token


@dataclass(slots=True)
class _Group:
    """Windows in the encoder, and then in the layers of the decoder that read what it made."""

    windows: list[RunningWindow]
    encoding: EncoderPass | None
    encoded: list[Any]
    num_layers: int = 0  # of the decoder, that have heard them


class HearingRunner:
    num_passes = 0

    def __init__(
        self,
        encoder: WhisperEncoder,
        decoder: WhisperDecoder,
        slots: WindowSlots,
        rules: WindowRules,
        limits: HearingLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._encoder, self._decoder, self._slots = encoder, decoder, slots
        self._rules, self._limits, self._clock = rules, limits, clock
        self._free = list(range(slots.number))
        self._windows: list[RunningWindow] = []
        self._group: _Group | None = None
        self._kept: OrderedDict[bytes, Any] = OrderedDict()

    @property
    def has_room(self) -> bool:
        return bool(self._free)

    def owes_place(self, owner: str) -> bool:
        return False

    @property
    def cache_use(self) -> float:
        return 1 - len(self._free) / self._slots.number

    @property
    def has_bounded_steps(self) -> bool:
        return True

    @property
    def running(self) -> list[SpeechRequest]:
        return [window.request for window in self._windows]

    def admit(self, request: SpeechRequest) -> None:
        self._windows.append(RunningWindow(request, self._free.pop(0), self._rules))

    def step(self, hand_out: HandOut) -> None:
        deliveries: list[Delivery] = []
        try:
            for window in [one for one in self._windows if one.request.is_cancelled]:
                self._leave(window)
            with torch.inference_mode():
                self._hear(deliveries)
                self._decode(self._at(HearingStage.LANGUAGE, HearingStage.TOKENS), deliveries)
                for window in self._at(HearingStage.DONE):
                    self._finish(window, deliveries)
        finally:
            hand_out(deliveries)

    def drop_all(self) -> None:
        self._windows, self._group = [], None
        self._free = list(range(self._slots.number))

    def device_answers(self) -> bool:
        return device_answers(self._encoder.device)

    def warm_up(self, features: Any) -> None:
        """Computes a window and a token of it, before there are requests."""
        with torch.inference_mode():
            encoding = self._encoder.begin([features])
            while not encoding.is_done:
                encoding.advance()
            [encoded] = encoding.results()
            for layer in range(self._decoder.num_layers):
                self._decoder.hear(layer, encoded, 0, self._slots)
            self._decoder.step([DecoderRow(0, [self._rules.vocabulary.start], 0, [0])], self._slots)

    def _at(self, *stages: HearingStage) -> list[RunningWindow]:
        return [window for window in self._windows if window.stage in stages]

    def _hear(self, deliveries: list[Delivery]) -> None:
        """As many layers of the encoder as the step has time for."""
        begun_at = self._clock()
        while self._at(HearingStage.ENCODER):
            group = self._group = self._group or self._next_group()
            if not self._of_group(group):
                self._group = None  # all of it are cancelled
                continue
            try:
                if self._advance(group):
                    self._group = None
            except Exception as fault:
                self._group = None
                self._hear_each(group, fault, deliveries)
            if self._clock() - begun_at >= self._limits.step_seconds:
                return

    def _of_group(self, group: _Group) -> list[RunningWindow]:
        return [window for window in group.windows if window in self._windows]

    def _hear_each(self, group: _Group, fault: Exception, deliveries: list[Delivery]) -> None:
        self._require_device(fault)
        if len(group.windows) == 1:
            self._fail(group.windows[0], fault, deliveries)
            return
        for window in self._of_group(group):
            try:
                alone = self._group_of([window])
                while not self._advance(alone):
                    pass
            except Exception as own_fault:
                self._require_device(own_fault)
                self._fail(window, own_fault, deliveries)

    def _next_group(self) -> _Group:
        """The oldest windows. Those whose encoding is remembered come first: they take no time."""
        waiting = self._at(HearingStage.ENCODER)
        if known := [one for one in waiting if one.request.window.digest in self._kept]:
            return _Group(known, None, [self._kept[one.request.window.digest] for one in known])
        return self._group_of(waiting[: self._limits.group])

    def _group_of(self, windows: list[RunningWindow]) -> _Group:
        return _Group(windows, self._encoder.begin([one.request.window.features for one in windows]), [])

    def _advance(self, group: _Group) -> bool:
        """Computes a layer. Returns whether it was the last."""
        encoding = group.encoding
        if encoding and not encoding.is_done:
            encoding.advance()
            return False
        if encoding:
            group.encoded, group.encoding = encoding.results(), None
            for window, encoded in zip(group.windows, group.encoded, strict=True):
                self._keep(window.request.window.digest, encoded)
        for window, encoded in zip(group.windows, group.encoded, strict=True):
            if window in self._windows:
                self._decoder.hear(group.num_layers, encoded, window.slot, self._slots)
        group.num_layers += 1
        if group.num_layers < self._decoder.num_layers:
            return False
        for window in self._of_group(group):
            window.heard()
        return True

    def _keep(self, digest: bytes, encoded: Any) -> None:
        self._kept[digest] = encoded.clone()  # a view would keep those of the whole group
        while len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)

    def _decode(self, windows: Sequence[RunningWindow], deliveries: list[Delivery]) -> None:
        """A step of these windows."""
        if not windows:
            return
        rows = [window.row() for window in windows]
        try:
            logits = self._decoder.step(rows, self._slots)
        except Exception as fault:
            self._require_device(fault)
            if len(windows) == 1:
                self._fail(windows[0], fault, deliveries)
                return
            for window in windows:
                self._decode([window], deliveries)
            return
        begin = 0
        for window, row in zip(windows, rows, strict=True):
            end = begin + len(row.wanted)
            try:
                window.take(logits[begin:end])
            except Exception as fault:
                self._fail(window, fault, deliveries)
            begin = end

    def _finish(self, window: RunningWindow, deliveries: list[Delivery]) -> None:
        result = window.result
        assert result
        if ids := window.alignment_ids:
            try:
                result = replace(result, alignment=self._decoder.alignment(ids, window.slot, self._slots))
            except Exception as fault:
                self._require_device(fault)
                self._fail(window, fault, deliveries)
                return
        deliveries.append((window.request, result))
        self._leave(window)

    def _require_device(self, fault: Exception) -> None:
        if isinstance(fault, DeviceLost) or not self.device_answers():
            raise fault
        if is_out_of_memory(fault):
            fault.__traceback__ = None  # its frames hold the tensors of the step
            free_memory()

    def _fail(self, window: RunningWindow, fault: Exception, deliveries: list[Delivery]) -> None:
        label = window.request.label
        error: ServiceError = OutOfMemory()
        if isinstance(fault, GenerationFailed):
            error = fault
        elif not is_out_of_memory(fault):
            log_exception("a window could not be heard", fault, label)
            error = GenerationFailed(f"The model failed on this request; the log has the reason under {label}.")
        deliveries.append((window.request, error))
        self._leave(window)

    def _leave(self, window: RunningWindow) -> None:
        self._windows.remove(window)
        self._free.append(window.slot)
        self._free.sort()
