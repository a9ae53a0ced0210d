"""Pairs of a model and a smaller one of the same tokenizer, made of the demo model."""

import shutil
from pathlib import Path
from typing import Any

import transformers

from tests.engine.conftest import DEMO


def save_cut_demo(folder: Path, num_layers: int = 3) -> Path:
    """Its first layers alone: they foretell some of its tokens."""
    model = transformers.AutoModelForImageTextToText.from_pretrained(DEMO)
    text = model.model.language_model
    text.layers = text.layers[:num_layers]
    return _save(model, folder)


def _save(model: Any, folder: Path) -> Path:
    model.config.text_config.num_hidden_layers = len(model.model.language_model.layers)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "preprocessor_config.json"):
        shutil.copy(Path(DEMO) / name, folder)
    return folder
