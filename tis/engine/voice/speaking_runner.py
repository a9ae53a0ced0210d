"""Computes sentences one at a time, by the model's own code."""

from typing import Any

import torch

from tis.engine.errors import OutOfMemory
from tis.engine.faults import DeviceLost, device_answers, free_memory, is_out_of_memory
from tis.engine.request import Delivery, HandOut
from tis.engine.voice.own_noise import OwnNoise
from tis.engine.voice.speaking_model import SpeakingModel
from tis.engine.voice.spoken import SentenceToSay
from tis.engine.voice.voice_request import SpeakingRequest
from tis.errors import GenerationFailed, ServiceError
from tis.observability.logs import log_exception

_MAX_RUNNING = 2  # the next one is at hand; those behind wait in the queue, which serves owners in turn


class SpeakingRunner:
    def __init__(self, model: SpeakingModel, device: Any) -> None:
        self._model, self._device = model, device
        self._running: list[SpeakingRequest] = []

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
        """A sentence is computed whole: in one forward pass, or in as many as the model likes."""
        return self._model.is_one_pass

    @property
    def running(self) -> list[SpeakingRequest]:
        return self._running

    def admit(self, request: SpeakingRequest) -> None:
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        """One sentence."""
        self._running = [request for request in self._running if not request.is_cancelled]
        if not self._running:
            return
        request = self._running[0]
        delivery: Delivery
        try:
            delivery = (request, self.samples(request.sentence))
        except Exception as fault:
            if isinstance(fault, DeviceLost) or not self.device_answers():
                raise
            delivery = (request, _error_of(fault, request.label))
        self._running.remove(request)
        hand_out([delivery])

    def samples(self, sentence: SentenceToSay) -> Any:
        with torch.inference_mode(), OwnNoise(sentence.seed):
            made = self._model.say(sentence.text, sentence.voice, sentence.pace).float()
        if not bool(torch.isfinite(made).all()):
            raise GenerationFailed("The model computed no usable numbers (NaN).")
        return made.cpu().numpy()

    def drop_all(self) -> None:
        self._running = []

    def device_answers(self) -> bool:
        return device_answers(self._device)


def _error_of(fault: Exception, label: str) -> ServiceError:
    if is_out_of_memory(fault):
        fault.__traceback__ = None  # its frames hold tensors
        free_memory()
        return OutOfMemory()
    if isinstance(fault, ServiceError):
        return fault
    log_exception("a sentence could not be spoken", fault, label)
    return GenerationFailed(f"The model failed on this request; the log has the reason under {label}.")
