"""CSM and Dia: models that write the codes of a codec, which makes them sound."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.voice.speaking_model import ReadWeights

_MAX_CHARS = 160
# Of a sentence: more is a loop.
_MIN_SECONDS, _SECONDS_PER_CHAR, _MAX_SECONDS = 2.0, 0.3, 30.0
_MIN_SPEAKERS = 2


class CsmVoice:
    """The codec is a part of the model."""

    sets_pace = False
    max_chars = _MAX_CHARS
    min_token_seconds = 0.0

    def __init__(self, model: Any, tokenizer: Any, named: Mapping[str, str | int]) -> None:
        codec = model.config.codec_config
        self.sample_rate = int(codec.sampling_rate)
        self._speakers = named or {str(number): number for number in range(_MIN_SPEAKERS)}
        self.voices = tuple(self._speakers)
        self._model, self._tokenizer = model, tokenizer
        self._frame_rate = codec.frame_rate

    def num_tokens(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def say(self, text: str, voice: str, pace: float) -> Any:
        device = self._model.device
        given = self._tokenizer(f"[{self._speakers[voice]}]{text}", return_tensors="pt", add_special_tokens=True)
        ids, mask = given["input_ids"].to(device), given["attention_mask"].to(device)
        [made] = self._model.generate(
            input_ids=ids, attention_mask=mask, output_audio=True, max_new_tokens=_max_frames(text, self._frame_rate)
        )
        return made


class DiaVoice:
    """The codec, a DAC, is a model of its own."""

    sets_pace = False
    max_chars = _MAX_CHARS
    min_token_seconds = 0.0
    voices = ("default",)

    def __init__(self, model: Any, processor: Any, codec: Any) -> None:
        self.sample_rate = int(codec.config.sampling_rate)
        self._model, self._processor = model, processor
        self._frame_rate = self.sample_rate / codec.config.hop_length

    def num_tokens(self, text: str) -> int:
        return len(self._processor.tokenizer(text)["input_ids"])

    def say(self, text: str, voice: str, pace: float) -> Any:
        given = self._processor(text=[f"[S1] {text}"], padding=False, return_tensors="pt").to(self._model.device)
        codes = self._model.generate(**given, max_new_tokens=_max_frames(text, self._frame_rate))
        return self._processor.batch_decode(codes)[0]


def _max_frames(text: str, frame_rate: float) -> int:
    return int(frame_rate * min(_MAX_SECONDS, _MIN_SECONDS + len(text) * _SECONDS_PER_CHAR))


def read_csm(transformers: Any, folder: Path, read: ReadWeights, named: Mapping[str, str | int]) -> CsmVoice:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return CsmVoice(read(transformers.CsmForConditionalGeneration), tokenizer, named)


def read_dia(transformers: Any, folder: Path, read: ReadWeights, named: Mapping[str, str | int]) -> DiaVoice:
    if named:
        raise LoadFailed("A Dia takes no voices in its catalogue entry: it chooses a voice for each text.")
    model = read(transformers.DiaForConditionalGeneration)
    codec = read(transformers.DacModel, vocoder=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    extractor = transformers.DiaFeatureExtractor(sampling_rate=codec.config.sampling_rate)
    return DiaVoice(model, transformers.DiaProcessor(extractor, tokenizer, codec), codec)
