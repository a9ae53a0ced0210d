"""Pairs of a model and a smaller one of the same tokenizer, made of the demo model."""

import copy
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


def save_slow_demo(folder: Path, num_idle: int = 40) -> Path:
    """With so many layers more, which add nothing: it says what the demo model says, and takes longer."""
    model = transformers.AutoModelForImageTextToText.from_pretrained(DEMO)
    layers = model.model.language_model.layers
    idle = copy.deepcopy(layers[-1])
    for projection in (idle.self_attn.o_proj, idle.mlp.down_proj):
        projection.weight.data.zero_()
    for _ in range(num_idle):
        layers.append(copy.deepcopy(idle))
        layers[-1].self_attn.layer_idx = len(layers) - 1
    return _save(model, folder)


def _save(model: Any, folder: Path) -> Path:
    model.config.text_config.num_hidden_layers = len(model.model.language_model.layers)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "preprocessor_config.json"):
        shutil.copy(Path(DEMO) / name, folder)
    return folder
