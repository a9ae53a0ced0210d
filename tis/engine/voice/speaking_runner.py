"""Computes sentences one at a time, by the model's own code."""

from typing import Any

import torch

from tis.engine.one_by_one_runner import ForwardPasses, OneByOneRunner
from tis.engine.voice.own_noise import OwnNoise
from tis.engine.voice.speaking_model import SpeakingModel
from tis.engine.voice.spoken import SentenceToSay
from tis.engine.voice.voice_request import SpeakingRequest
from tis.errors import GenerationFailed

_MAX_RUNNING = 2


class SpeakingRunner(OneByOneRunner[SpeakingRequest]):
    def __init__(self, model: SpeakingModel, passes: ForwardPasses, device: Any) -> None:
        super().__init__(passes, device, max_running=_MAX_RUNNING, failure="a sentence could not be spoken")
        self._model = model

    def compute(self, request: SpeakingRequest) -> Any:
        return self.samples(request.sentence)

    def samples(self, sentence: SentenceToSay) -> Any:
        with torch.inference_mode(), OwnNoise(sentence.seed):
            made = self._model.say(sentence.text, sentence.voice, sentence.pace).float()
        if not bool(torch.isfinite(made).all()):
            raise GenerationFailed("The model computed no usable numbers (NaN).")
        return made.cpu().numpy()
