"""Loads the official processor of a model folder, with as many parts as work without torchvision."""

import importlib
from pathlib import Path
from typing import Any

import torch

from tis.engine.vision.video_frames import load_video_processor

# SmolVLM's own processor is for videos, too; without them Idefics3's makes the same inputs of images.
_SUBSTITUTES = {"SmolVLMProcessor": "Idefics3Processor"}
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def load_processor(folder: Path, config: Any) -> Any:
    """Raises whatever the library raises if that fails: ImportError, OSError, ValueError and others."""
    import transformers

    try:
        processor = transformers.AutoProcessor.from_pretrained(folder, trust_remote_code=False)
    except ImportError:
        # Processors require all their parts, and the one for videos needs torchvision.
        processor = _load_without_torchvision(folder, config)
    processor.chat_template = processor.chat_template or processor.tokenizer.chat_template
    if isinstance(processor.chat_template, dict):
        processor.chat_template = processor.chat_template["default"]
    return processor


def _load_without_torchvision(folder: Path, config: Any) -> Any:
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    official: Any = PROCESSOR_MAPPING[type(config)]
    videos = load_video_processor(folder, official)
    if official.__name__ in _SUBSTITUTES:
        if videos is None:
            official = getattr(transformers, _SUBSTITUTES[official.__name__])
        else:
            _give_number_names(official)

    class WithoutTorchvision(official):  # type: ignore[misc]
        def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
            if argument is None or argument_name == "video_processor":
                return None
            return super().check_argument_for_proper_class(argument_name, argument)

        def create_mm_token_type_ids(self, input_ids: Any) -> Any:
            # GLM's gives rows of tensors to numpy, which is deprecated.
            return super().create_mm_token_type_ids([torch.as_tensor(row).tolist() for row in input_ids])

    parts = {
        "image_processor": transformers.AutoImageProcessor.from_pretrained(folder, trust_remote_code=False),
        "video_processor": videos,
        "tokenizer": transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False),
    }
    if "feature_extractor" in official.get_attributes():
        parts["feature_extractor"] = transformers.AutoFeatureExtractor.from_pretrained(folder, trust_remote_code=False)
    processor_dict, _ = official.get_processor_dict(folder)
    return WithoutTorchvision.from_args_and_dict(
        [parts.get(part) for part in official.get_attributes()], processor_dict
    )


def _give_number_names(official: Any) -> None:
    """SmolVLM's prompts say in words how many frames a video has. Its module needs a package of its own for that."""
    module: Any = importlib.import_module(official.__module__)
    if not module.num2words:
        module.num2words = number_in_words


def number_in_words(number: int) -> str:
    """As `num2words` writes numbers below a thousand."""
    if number < len(_ONES):
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    rest = f" and {number_in_words(number % 100)}" if number % 100 else ""
    return f"{_ONES[number // 100]} hundred{rest}"
