"""Random LoRA adapters, made and saved by PEFT."""

import copy
from pathlib import Path
from typing import Any

import peft
import torch


def save_adapter(model: Any, folder: Path, seed: int, **config: Any) -> Any:
    """Returns PEFT's model with it. Changes nothing in `model`."""
    torch.manual_seed(seed)
    adapted = peft.get_peft_model(copy.deepcopy(model), peft.LoraConfig(**config)).eval()
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    adapted.save_pretrained(folder)
    return adapted
