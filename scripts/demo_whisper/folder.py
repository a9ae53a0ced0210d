"""The model folder as it lies on disk: Whisper's own classes of Transformers read it unmodified."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperProcessor, WhisperTokenizer

from scripts.demo_whisper.architecture import feature_extractor, generation_configuration

MAX_FOLDER_BYTES = 3_000_000


@dataclass(frozen=True)
class DemoWhisper:
    model: Any
    processor: WhisperProcessor

    @property
    def tokenizer(self) -> WhisperTokenizer:
        return self.processor.tokenizer

    @property
    def extractor(self) -> WhisperFeatureExtractor:
        return self.processor.feature_extractor


def save(model: Any, tokenizer: WhisperTokenizer, heads: Sequence[tuple[int, int]], folder: Path) -> None:
    """The numbers are kept in 16 bits and computed in 32, as the configuration says."""
    from safetensors.torch import load_file, save_file

    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = generation_configuration(tokenizer, heads)
    model.save_pretrained(folder)
    weights = folder / "model.safetensors"
    tensors = {name: tensor.half().contiguous() for name, tensor in load_file(str(weights)).items()}
    save_file(tensors, str(weights), metadata={"format": "pt"})
    weights.chmod(0o644)  # safetensors writes for its owner only
    _rewrite(folder / "config.json", {"dtype": "float32"})
    feature_extractor().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _make_compact(folder / "tokenizer.json")


def load(folder: Path, **options: Any) -> DemoWhisper:
    model = WhisperForConditionalGeneration.from_pretrained(folder, **options).eval()
    return DemoWhisper(model, WhisperProcessor.from_pretrained(folder))


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _rewrite(path: Path, changes: dict[str, Any]) -> None:
    read = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**read, **changes}, indent=2) + "\n", encoding="utf-8")


def _make_compact(path: Path) -> None:
    """The tokens of times take a line each, and no more."""
    read = json.loads(path.read_text(encoding="utf-8"))
    added = ",\n".join(json.dumps(token, ensure_ascii=False, separators=(",", ":")) for token in read["added_tokens"])
    rest = {name: value for name, value in read.items() if name != "added_tokens"}
    text = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f'{text[:-1]},\n"added_tokens":[\n{added}\n]}}\n', encoding="utf-8")
