"""How a model sees, by what lies in its folder."""

from pathlib import Path
from typing import Any

from server.engine.hf_tokenizer import HfTokenizer
from server.engine.vision.qwen_family import QWEN_FAMILIES
from server.engine.vision.qwen_vision import QwenVision
from server.engine.vision.reading import has_preprocessor
from server.engine.vision.sight import VisionProcessor


def vision_of(folder: Path, config: Any, tokenizer: HfTokenizer) -> VisionProcessor | None:
    if has_preprocessor(folder) and config.model_type in QWEN_FAMILIES:
        return QwenVision(folder, config, tokenizer)
    return None
