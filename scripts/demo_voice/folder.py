"""The folder of the small voice: VITS's own classes of Transformers read it unmodified."""

import json
from pathlib import Path
from typing import Any

MAX_VOICE_BYTES = 6_100_000


def save_voice(model: Any, letters: Any, folder: Path) -> None:
    """The numbers are kept in 16 bits and computed in 32, as the configuration says."""
    from safetensors.torch import load_file, save_file

    model.save_pretrained(folder)
    letters.save_pretrained(folder)
    weights = folder / "model.safetensors"
    tensors = {name: tensor.half().contiguous() for name, tensor in load_file(str(weights)).items()}
    save_file(tensors, str(weights), metadata={"format": "pt"})
    weights.chmod(0o644)  # safetensors writes for its owner only
    path = folder / "config.json"
    read = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**read, "dtype": "float32"}, indent=2) + "\n", encoding="utf-8")
