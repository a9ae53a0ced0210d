"""Bark: three models that write codes one after the other, in the voice of a preset, or in one of their own choice."""

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.voice.speaking_model import ReadWeights
from tis.engine.voice.voice_files import read_array

_MAX_CHARS = 120  # it speaks for some fifteen seconds at most
_MAX_TOKENS = 256  # of a text
_OWN_CHOICE = "default"
_PARTS = {"semantic_prompt": 1, "coarse_prompt": 2, "fine_prompt": 2}  # of a preset, with their dimensions


class BarkVoice:
    sets_pace = False
    max_chars = _MAX_CHARS
    min_token_seconds = 0.0

    def __init__(self, model: Any, tokenizer: Any, presets: Mapping[str, Mapping[str, Any] | None]) -> None:
        """`presets`: arrays of each voice, by their names. None: Bark chooses a voice for each sentence."""
        self.sample_rate = int(model.generation_config.sample_rate)
        self.voices = tuple(presets)
        self._model, self._tokenizer, self._presets = model, tokenizer, presets
        self._tokenizing = threading.Lock()  # both methods set the padding of one tokenizer, in threads of their own

    def num_tokens(self, text: str) -> int:
        with self._tokenizing:
            return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def say(self, text: str, voice: str, pace: float) -> Any:
        import torch

        device = self._model.device
        with self._tokenizing:
            given = self._tokenizer(
                text,
                return_tensors="pt",
                padding="max_length",
                truncation=True,
                max_length=_MAX_TOKENS,
                add_special_tokens=False,
            )
        preset = self._presets[voice]
        history = preset and {name: torch.from_numpy(array).to(device) for name, array in preset.items()}
        ids, mask = given["input_ids"].to(device), given["attention_mask"].to(device)
        return self._model.generate(input_ids=ids, attention_mask=mask, history_prompt=history)[0]


def read_bark(transformers: Any, folder: Path, read: ReadWeights, named: Mapping[str, str | int]) -> BarkVoice:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    presets = {name: _preset(folder, name, str(preset)) for name, preset in named.items()}
    return BarkVoice(read(transformers.BarkModel), tokenizer, presets or dict.fromkeys([_OWN_CHOICE]))


def _preset(folder: Path, name: str, preset: str) -> Mapping[str, Any]:
    """By its name in the files of the model, such as v2/en_speaker_6."""
    path = folder / "speaker_embeddings_path.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not isinstance(known.get(preset), dict):
        some = ", ".join(sorted(set(known) - {"repo_or_path"})[:9]) or "none"
        raise LoadFailed(f"The voice {name} is the preset {preset!r}, which this Bark does not have. It has: {some}.")
    arrays = {part: read_array(folder, name, str(known[preset].get(part))) for part in _PARTS}
    if any(arrays[part].ndim != dimensions for part, dimensions in _PARTS.items()):
        raise LoadFailed(f"The voice {name} is no preset of Bark: its arrays have other dimensions.")
    return {part: array.astype("int64") for part, array in arrays.items()}
