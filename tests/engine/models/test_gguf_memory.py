"""What a GGUF file takes in memory is foreseen before it is loaded: packed on a CPU, and as plain weights elsewhere."""

from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Kind

from tests.engine.conftest import DEMO
from tests.engine.gguf_files import PLAIN, tiny_model, write_gguf
from tis.arguments.loading import fetcher_of
from tis.engine.batching.limits import BatchLimits
from tis.engine.errors import ModelTooLarge
from tis.engine.kernels.native import native_kernels
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.models.model_memory import ModelMemory
from tis.engine.models.packed_memory import WeightOptions, packed_bytes_of
from tis.settings import Settings

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(DEMO)


def like_q4_k_m(name: str) -> Kind:
    return Kind.Q6_K if any(part in name for part in ("attn_v", "ffn_down", "output.weight")) else Kind.Q4_K


def like_q5_k_m(name: str) -> Kind:
    return Kind.Q6_K if like_q4_k_m(name) is Kind.Q6_K else Kind.Q5_K


KINDS: dict[str, Any] = {kind.name: kind for kind in (Kind.Q4_0, Kind.Q5_1, Kind.Q6_K, Kind.Q8_0, *PLAIN)}
KINDS["Q4_K_M"] = like_q4_k_m
KINDS["Q5_K_M"] = like_q5_k_m
KINDS["Q5_0 beside Q8_0"] = lambda name: Kind.Q8_0 if like_q4_k_m(name) is Kind.Q6_K else Kind.Q5_0


def weight_bytes(path: Path, **limits: Any) -> int:
    options = LoadOptions(device_map="cpu", dtype="float32", batch=BatchLimits(cache_tokens=64, **limits))
    footprint = load_model(str(path), options, lambda stage, share: None).footprint
    assert footprint is not None
    return footprint.weight_bytes


@pytest.mark.parametrize("kernels", [True, False], ids=["packed", "without kernels"])
@pytest.mark.parametrize("is_tied", [False, True], ids=["with a head", "tied"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_of_a_file_is_foreseen(
    kind: str, is_tied: bool, kernels: bool, tokenizer: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.gguf"
    model = tiny_model(transformers, "Qwen3", len(tokenizer), tie_word_embeddings=is_tied)
    write_gguf(path, model, tokenizer, KINDS[kind])
    foreseen = packed_bytes_of(path, WeightOptions("cpu", native_kernels=kernels, dtype="float32"))
    assert foreseen is not None
    assert 0.98 < foreseen / weight_bytes(path, native_kernels=kernels) < 1.02


@pytest.mark.parametrize("is_tied", [False, True], ids=["with a head", "tied"])
@pytest.mark.parametrize("quantise", ["int8", "int4"])
def test_the_memory_of_a_file_that_is_rounded_again_is_foreseen(
    quantise: Literal["int8", "int4"], is_tied: bool, tokenizer: Any, tmp_path: Path
) -> None:
    path, kinds = tmp_path / "a.gguf", cycle([Kind.Q4_K, Kind.Q8_0, Kind.F16])
    model = tiny_model(transformers, "Qwen3", len(tokenizer), tie_word_embeddings=is_tied)
    write_gguf(path, model, tokenizer, lambda name: next(kinds))
    foreseen = packed_bytes_of(path, WeightOptions("cpu", dtype="float32", rounded_to=quantise))
    assert foreseen is not None
    if native_kernels():
        assert 0.98 < foreseen / weight_bytes(path, quantisation=quantise) < 1.02


def test_on_a_gpu_numbers_have_16_bits(tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gguf"
    model = tiny_model(transformers, "Qwen3", len(tokenizer))
    write_gguf(path, model, tokenizer, Kind.Q4_0)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert packed_bytes_of(path, WeightOptions()) == pytest.approx(2 * model.num_parameters(), rel=0.01)
    assert packed_bytes_of(path, WeightOptions(dtype="float32")) == pytest.approx(4 * model.num_parameters(), rel=0.01)


@pytest.mark.anyio
async def test_a_load_that_would_not_fit_as_plain_weights_is_refused_before_it_begins(
    tokenizer: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.gguf"
    model = tiny_model(transformers, "Qwen3", len(tokenizer), intermediate_size=4096)
    write_gguf(path, model, tokenizer, Kind.Q4_0)

    class Slot:
        name, held_bytes, idle_seconds = "m", 0, None

        async def unload(self) -> bool:
            raise NotImplementedError

    settings = {"model_memory_mb": 8, "device_map": "cpu", "torch_dtype": "float32"}
    assert path.stat().st_size < 8 * 2**20 < 4 * model.num_parameters()
    need = fetcher_of(Settings(kernels="off", **settings))(CatalogueEntry("m", str(path)), lambda stage, share: None)
    with pytest.raises(ModelTooLarge, match="needs"):
        await ModelMemory().make_room(Slot(), need, may_unload=True)
    if native_kernels():
        fits = fetcher_of(Settings(**settings))(CatalogueEntry("m", str(path)), lambda stage, share: None)
        await ModelMemory().make_room(Slot(), fits, may_unload=True)
