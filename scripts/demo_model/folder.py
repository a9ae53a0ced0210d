"""The model folder as it lies on disk, readable with plain `from_pretrained`."""

import hashlib
import json
from pathlib import Path
from typing import Any

from transformers import AutoModelForImageTextToText, AutoTokenizer, PreTrainedTokenizerFast

from scripts.demo_model.architecture import picture_preprocessing, video_preprocessing

LARGEST_FOLDER_BYTES = 8_000_000


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def save(model: Any, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    _write_json(out / "preprocessor_config.json", picture_preprocessing())
    _write_json(out / "video_preprocessor_config.json", video_preprocessing())
    # safetensors writes for its owner only; a checked-out file is readable by all.
    (out / "model.safetensors").chmod(0o644)


def load(folder: Path) -> tuple[Any, PreTrainedTokenizerFast]:
    model = AutoModelForImageTextToText.from_pretrained(folder)
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def weights_sha256(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
