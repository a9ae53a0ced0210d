"""Builds a model of a real size: random weights with the tokenizer of the demo model."""

import shutil
from pathlib import Path

from tests.engine.conftest import DEMO

NUM_BYTES = 160 * 10**6  # about, of its weights


def build_model(folder: Path, num_layers: int = 6) -> Path:
    import torch
    import transformers

    torch.manual_seed(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=num_layers,
        num_attention_heads=12,
        num_key_value_heads=4,
        head_dim=64,
        max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id,
    )
    transformers.Qwen3ForCausalLM(config).save_pretrained(folder)
    for path in Path(DEMO).glob("*token*"):
        shutil.copy(path, folder)
    shutil.copy(Path(DEMO) / "chat_template.jinja", folder)
    return folder
