"""The model folder as it lies on disk, readable with plain `from_pretrained`."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from transformers import AutoModelForImageTextToText, AutoTokenizer, PreTrainedTokenizerFast

from scripts.demo_model.architecture import picture_preprocessing, video_preprocessing
from scripts.demo_model.asking import DemoModel
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.qwen_vision import QwenVision

MAX_FOLDER_BYTES = 8_000_000


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def save_preprocessing(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    _write_json(out / "preprocessor_config.json", picture_preprocessing())
    _write_json(out / "video_preprocessor_config.json", video_preprocessing())


def vision_of(folder: Path, model: Any, tokenizer: PreTrainedTokenizerFast) -> QwenVision:
    """The server's own: what is learned and checked here is what will be shown there."""
    text = model.config.text_config
    return QwenVision(folder, model.config, HfTokenizer(tokenizer, [text.eos_token_id], text.vocab_size))


def save(model: Any, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    save_preprocessing(out)
    # safetensors writes for its owner only; a checked-out file is readable by all.
    (out / "model.safetensors").chmod(0o644)


def keep_all_but_weights(start: Path, out: Path) -> None:
    """transformers writes other words into the files of a model that it has read than into those of a new one."""
    for path in start.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copyfile(path, out / path.name)


def load(folder: Path) -> DemoModel:
    model, tokenizer = AutoModelForImageTextToText.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    return DemoModel(model.eval(), tokenizer, vision_of(folder, model, tokenizer))


def weights_sha256(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
