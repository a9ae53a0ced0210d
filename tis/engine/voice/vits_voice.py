"""VITS and MMS-TTS: a sentence in one forward pass, with as many speakers as the model has."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.voice.romanised_texts import RomanisedTexts
from tis.engine.voice.speaking_model import MAX_SENTENCE_SECONDS, ReadWeights
from tis.errors import BadRequest

_MAX_CHARS = 160
_ONLY_VOICE = "default"


class VitsVoice:
    sets_pace = True
    max_chars = _MAX_CHARS

    def __init__(self, model: Any, tokenizer: Any, named: Mapping[str, str | int]) -> None:
        """`named`: voices of the catalogue, each with the number of its speaker."""
        config = model.config
        self.sample_rate = int(config.sampling_rate)
        self._model, self._tokenizer = model, tokenizer
        self._speakers = _speakers_of(config.num_speakers, named)
        self.voices = tuple(self._speakers)
        self._frame_seconds = math.prod(config.upsample_rates) / config.sampling_rate
        self.min_token_seconds = self._frame_seconds
        self._rate = float(config.speaking_rate)
        model.duration_predictor.register_forward_hook(self._refuse_endless)

    def num_tokens(self, text: str) -> int:
        ids = self._ids(text)
        return len(ids) if len(ids) > bool(self._tokenizer.add_blank) else 0  # of no text, a blank is left

    def say(self, text: str, voice: str, pace: float) -> Any:
        import torch

        self._rate = float(self._model.config.speaking_rate) * pace
        ids = torch.tensor([self._ids(text)], device=self._model.device)
        made = self._model(input_ids=ids, speaker_id=self._speakers[voice], speaking_rate=self._rate)
        return made.waveform[0]

    def _ids(self, text: str) -> list[int]:
        """Without those that the model has no embedding of, such as the unknown character of MMS-TTS."""
        return [one for one in self._tokenizer(text)["input_ids"] if one < self._model.config.vocab_size]

    def _refuse_endless(self, module: Any, given: Any, log_durations: Any) -> None:
        """Before the samples are computed, which take memory by their number."""
        seconds = float(log_durations.float().exp().sum()) / self._rate * self._frame_seconds
        if not seconds <= MAX_SENTENCE_SECONDS:  # also if it is no number
            raise BadRequest(
                f"input: one sentence would take more than {MAX_SENTENCE_SECONDS:g} seconds. Send shorter sentences, "
                "or a higher speed.",
                param="input",
            )


def _speakers_of(number: int, named: Mapping[str, str | int]) -> Mapping[str, int | None]:
    if number < 2:
        if len(named) > 1:
            raise LoadFailed(f"The model has one speaker, and the catalogue names {len(named)} voices.")
        return dict.fromkeys(named or [_ONLY_VOICE])
    if not named:
        return {str(speaker): speaker for speaker in range(number)}
    for name, speaker in named.items():
        if not isinstance(speaker, int) or not 0 <= speaker < number:
            raise LoadFailed(f"The voice {name} is {speaker!r}: this model has the speakers 0 to {number - 1}.")
    return {name: int(speaker) for name, speaker in named.items()}


def read_vits(transformers: Any, folder: Path, read: ReadWeights, named: Mapping[str, str | int]) -> VitsVoice:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    needed = {
        "phonemizer": tokenizer.phonemize and not transformers.utils.is_phonemizer_available(),
        "uroman": tokenizer.is_uroman and not transformers.utils.is_uroman_available(),
    }
    for package, is_missing in needed.items():
        if is_missing:
            raise LoadFailed(f"The tokenizer of this VITS needs the package {package}: pip install {package}.")
    model = read(transformers.VitsModel)
    return VitsVoice(model, RomanisedTexts(tokenizer) if tokenizer.is_uroman else tokenizer, named)
