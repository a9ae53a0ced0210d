"""The demo model without its eyes, as other engines read it: a folder of a Qwen3, and one GGUF file.

Layers that change nothing make it as slow as a test needs: what they add to the residual is zero.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.serving import REPOSITORY

DEMO = REPOSITORY / "models" / "demo"
_OF_TEXT = "model.language_model."


def write_text_model(folder: Path, *, num_idle_layers: int = 0) -> Path:
    """Returns the folder."""
    import torch
    from gguf import GGMLQuantizationType
    from safetensors.torch import load_file
    from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

    from tests.engine.gguf_files import write_gguf

    config = Qwen3Config(**_text_config(num_idle_layers))
    model = Qwen3ForCausalLM(config).float().eval()
    loaded = load_file(DEMO / "model.safetensors")
    weights = {f"model.{name.removeprefix(_OF_TEXT)}": one for name, one in loaded.items() if _OF_TEXT in name}
    absent = model.load_state_dict(weights, strict=False).missing_keys
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name in absent and name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.zero_()
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "generation_config.json", "chat_template.jinja"):
        shutil.copy(DEMO / name, folder / name)
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": config.max_position_embeddings,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    template = (DEMO / "chat_template.jinja").read_text()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    write_gguf(folder / "model.gguf", model, tokenizer, GGMLQuantizationType.F32, template=template)
    return folder


def _text_config(num_idle_layers: int) -> dict[str, Any]:
    saved = json.loads((DEMO / "config.json").read_text())["text_config"]
    rope = {name: saved["rope_parameters"][name] for name in ("rope_theta", "rope_type")}
    layers = saved["num_hidden_layers"] + num_idle_layers
    left_out = ("model_type", "rope_parameters", "layer_types")
    kept = {name: value for name, value in saved.items() if name not in left_out}
    return {**kept, "num_hidden_layers": layers, "rope_parameters": rope, "tie_word_embeddings": True}
