"""The demo model with its first layers alone: a smaller model of the same tokenizer, which foretells some tokens."""

import shutil
from pathlib import Path

import transformers

from tests.engine.conftest import DEMO


def save_cut_demo(folder: Path, num_layers: int = 3) -> Path:
    model = transformers.AutoModelForImageTextToText.from_pretrained(DEMO)
    text = model.model.language_model
    text.layers = text.layers[:num_layers]
    model.config.text_config.num_hidden_layers = num_layers
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "preprocessor_config.json"):
        shutil.copy(Path(DEMO) / name, folder)
    return folder
