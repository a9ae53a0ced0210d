"""Chooses the vision processor of a model, by its family and by the files of its folder."""

import logging
from pathlib import Path
from typing import Any

from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.hearing_families import HEARING_FAMILIES
from tis.engine.vision.official_processor import load_processor
from tis.engine.vision.official_vision import OfficialVision
from tis.engine.vision.preprocessor_config import has_preprocessor
from tis.engine.vision.qwen_family import QWEN_FAMILIES
from tis.engine.vision.qwen_vision import QwenVision
from tis.engine.vision.vision_input import VisionProcessor

_log = logging.getLogger("tis.engine")


def choose_vision(
    folder: Path, config: Any, tokenizer: HfTokenizer, max_pixels: int | None = None
) -> VisionProcessor | None:
    """Returns None for a text model, and for a model whose processor cannot be loaded here."""
    from transformers import AutoModelForImageTextToText

    hears = config.model_type in HEARING_FAMILIES
    if not (hears or type(config) in AutoModelForImageTextToText._model_mapping) or not has_preprocessor(folder):
        return None
    try:
        if config.model_type in QWEN_FAMILIES:
            return QwenVision(folder, config, tokenizer, max_pixels)
        return OfficialVision(load_processor(folder, config), tokenizer, config)
    except Exception as error:  # processors may raise anything; the model can still answer text
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        _log.warning(
            "%s accepts text only: its %s processor cannot be loaded (%s)",
            config.model_type,
            "audio" if hears else "image",
            reason,
        )
        return None
