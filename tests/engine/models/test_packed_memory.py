"""A packed repository is loaded in much less memory than its numbers would take."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file

from tests.engine.conftest import DEMO
from tests.engine.gguf_files import tiny_model
from tests.engine.packed_models import PACKINGS, write_packed
from tis.engine.kernels.native import native_kernels

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.long]

HIDDEN, INNER, LAYERS = 512, 2048, 24
NUM_WEIGHTS = LAYERS * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * INNER)  # 100 million
# Beside the mapped file and what the imports take: one byte for each weight, and 130 MB for the cache, embeddings, one
# matrix in floats, and threads of the loader. As bfloat16 the weights alone would be 200 MB.
MAX_BYTES = NUM_WEIGHTS + 130 * 10**6

LOAD = """
import resource, sys
from pathlib import Path
from tis.engine.batching.limits import BatchLimits
from tis.engine.models.loading import LoadOptions, load_model

def load(folder, **limits):
    batch = BatchLimits(cache_tokens=256, **limits)
    return load_model(folder, LoadOptions(device_map="cpu", batch=batch), lambda stage, share: None)

small, large, kernels, max_bytes = sys.argv[1:]
load(small)  # imports
[line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData")]
limit = int(line.split()[1]) * 1024 + int(max_bytes)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
loaded = load(large, native_kernels=kernels == "on")
print("loaded", loaded.footprint.weight_bytes)
"""


def write_large(folder: Path) -> Path:
    """As `desc_act` leaves it; the numbers are any."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    sizes = {"hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS}
    model = tiny_model(transformers, "Llama", len(tokenizer), **sizes, num_attention_heads=8, num_key_value_heads=8)
    torch.manual_seed(0)
    tensors = {}
    for name, weight in model.state_dict().items():
        if not name.endswith("proj.weight"):
            tensors[name] = weight.bfloat16()
            continue
        (outputs, inputs), stem = weight.shape, name.removesuffix(".weight")
        g_idx = (torch.arange(inputs) // 128)[torch.randperm(inputs, generator=torch.Generator().manual_seed(inputs))]
        tensors |= {
            f"{stem}.qweight": torch.randint(-(2**31), 2**31, (inputs // 8, outputs), dtype=torch.int64).int(),
            f"{stem}.qzeros": torch.full((inputs // 128, outputs // 8), 0x77777777, dtype=torch.int32),
            f"{stem}.scales": torch.full((inputs // 128, outputs), 0.003, dtype=torch.float16),
            f"{stem}.g_idx": g_idx.int(),
        }
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = {**model.config.to_dict(), "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"}
    quantisation = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": quantisation}))
    tokenizer.save_pretrained(folder)
    return folder


def test_no_float_copy_of_the_weights_is_ever_in_memory(tmp_path: Path) -> None:
    if not native_kernels():
        pytest.skip("weights stay packed where kernels are")
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(DEMO))
    write_packed(tmp_path / "small", tiny_model(transformers, "Llama", vocabulary), PACKINGS["gptq"])
    large = write_large(tmp_path / "large")
    num_mapped = (large / "model.safetensors").stat().st_size

    def load(kernels: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", LOAD, str(tmp_path / "small"), str(large), kernels, str(MAX_BYTES + num_mapped)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    packed, plain = load("on"), load("off")
    assert packed.returncode == 0, packed.stderr[-2000:]
    assert int(packed.stdout.split()[-1]) < 0.65 * NUM_WEIGHTS
    assert plain.returncode != 0 and "memory" in plain.stderr  # as plain weights they do not fit
