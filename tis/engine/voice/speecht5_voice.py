"""SpeechT5: frames one after the other, made into sound by a vocoder, in the voice of an embedding of its speaker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.voice.speaking_model import MAX_SENTENCE_SECONDS, ReadWeights
from tis.engine.voice.voice_files import read_vector

_MAX_CHARS = 160
_MAX_FRAMES_PER_TOKEN = 20.0  # as Transformers has it: more is a loop


class SpeechT5Voice:
    sets_pace = False
    max_chars = _MAX_CHARS
    min_token_seconds = 0.0

    def __init__(self, model: Any, vocoder: Any, tokenizer: Any, speakers: Mapping[str, Any]) -> None:
        self.sample_rate = int(vocoder.config.sampling_rate)
        self.voices = tuple(speakers)
        self._model, self._vocoder, self._tokenizer = model, vocoder, tokenizer
        self._speakers = speakers
        frames_per_second = self.sample_rate / _product(vocoder.config.upsample_rates)
        self._max_frames = MAX_SENTENCE_SECONDS * frames_per_second

    def num_tokens(self, text: str) -> int:
        ids = self._ids(text)
        unknown = {self._tokenizer.unk_token_id, *self._tokenizer.all_special_ids}
        return len(ids) if any(one not in unknown for one in ids) else 0

    def say(self, text: str, voice: str, pace: float) -> Any:
        import torch

        device = self._model.device
        ids = torch.tensor([self._ids(text)], device=device)
        ratio = min(_MAX_FRAMES_PER_TOKEN, self._max_frames / ids.shape[1])
        embedding = self._speakers[voice].to(device, self._model.dtype)
        return self._model.generate_speech(ids, embedding, vocoder=self._vocoder, maxlenratio=ratio)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text)["input_ids"]
        return ids[: self._model.config.max_text_positions]


def _product(numbers: Any) -> int:
    made = 1
    for number in numbers:
        made *= number
    return made


def read_speecht5(transformers: Any, folder: Path, read: ReadWeights, named: Mapping[str, str | int]) -> SpeechT5Voice:
    config = transformers.AutoConfig.from_pretrained(folder)
    if not named:
        raise LoadFailed(
            "A SpeechT5 needs voices in its catalogue entry: names, each with a .npy file, the speaker's embedding of "
            f"{config.speaker_embedding_dim} numbers."
        )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    except ImportError as error:
        raise LoadFailed("The tokenizer of this SpeechT5 needs sentencepiece: pip install sentencepiece.") from error
    size = config.speaker_embedding_dim
    speakers = {name: read_vector(folder, name, place, size) for name, place in named.items()}
    model = read(transformers.SpeechT5ForTextToSpeech)
    return SpeechT5Voice(model, read(transformers.SpeechT5HifiGan, vocoder=True), tokenizer, speakers)
