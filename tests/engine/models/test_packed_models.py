"""Repositories of GPTQ, AWQ, compressed-tensors and FP8: their weights, and answers of the numbers that they stand for."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.engine.batching.tiny import run
from tests.engine.conftest import DEMO
from tests.engine.gguf_files import tiny_model
from tests.engine.packed_models import PACKINGS, write_packed
from tis.engine.answer import Piece
from tis.engine.batching.limits import BatchLimits
from tis.engine.kernels.native import native_kernels
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.models.packed_files import PackedFiles
from tis.engine.models.quantised_files import packed_format_of, without_quantisation
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams

pytestmark = pytest.mark.model

TEXT = "Hello, how are you today? 12345"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(DEMO)


@pytest.fixture(scope="module")
def qwen3(tokenizer: Any) -> Any:
    return tiny_model(transformers, "Qwen3", len(tokenizer))


def load(path: Path, **options: Any) -> LoadedModel:
    return load_model(
        str(path), LoadOptions(device_map="cpu", **{"dtype": "float32", **options}), lambda stage, share: None
    )


def read_plain(folder: Path) -> Any:
    config = transformers.AutoConfig.from_pretrained(folder)
    form = packed_format_of(config)
    assert form is not None
    return PackedFiles(folder, without_quantisation(config), form).read(
        transformers.AutoModelForCausalLM,
        "float32",
        may_stay_packed=False,
        trust_remote_code=False,
        device_map="cpu",
        attn_implementation=None,
    )


@pytest.mark.parametrize("name", PACKINGS)
def test_weights_are_bit_for_bit_what_the_file_stands_for(name: str, qwen3: Any, tmp_path: Path) -> None:
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS[name])
    found = read_plain(tmp_path / "model").state_dict()
    expected = meant.state_dict()
    assert found.keys() == expected.keys()
    assert [key for key, weight in expected.items() if not torch.equal(weight, found[key])] == []


def likeliest(loaded: LoadedModel, prompt_ids: list[int], num: int = 8) -> list[tuple[int, dict[int, float]]]:
    params = SamplingParams(temperature=0, max_tokens=num, top_logprobs=10, ignore_eos=True)
    request = Request(PreparedRequest("m", "r", loaded.tokenizer, prompt_ids, params, 1))
    readers = run(loaded.new_runner(), [request])
    assert not readers.errors
    pieces: list[Piece] = readers.of(request)
    return [
        (entry.token_id, {one.token_id: one.logprob for one in entry.top})
        for piece in pieces
        for entry in piece.logprobs
    ]


def farthest(loaded: LoadedModel, model: Any, prompt_ids: list[int]) -> tuple[float, bool]:
    """How far logarithms of probabilities are from those of a model, and whether the tokens are the same."""
    context, most, is_same = list(prompt_ids), 0.0, True
    for token_id, ours in likeliest(loaded, prompt_ids):
        with torch.inference_mode():
            theirs = model(input_ids=torch.tensor([context])).logits[0, -1].log_softmax(-1)
        most = max(most, *(abs(logprob - float(theirs[one])) for one, logprob in ours.items()))
        is_same = is_same and token_id == int(theirs.argmax())
        context.append(token_id)
    return most, is_same


@pytest.mark.parametrize("name", PACKINGS)
def test_answers_are_those_of_the_numbers_in_the_file(
    name: str, qwen3: Any, tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.engine")
    packing = PACKINGS[name]
    meant = write_packed(tmp_path / "model", qwen3, packing)
    loaded = load(tmp_path / "model")
    most, is_same = farthest(loaded, meant, tokenizer.encode(TEXT))
    print("XX", name, most, is_same, [r.message for r in caplog.records])
    assert 0


MOE = {"norm_topk_prob": True, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}


@pytest.mark.parametrize("name", ["gptq", "gptq in the order of activations", "compressed with zeros", "w8a8", "gptq of 8 bits", "fp8"])
def test_experts(name: str, tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tis.engine")
    model = tiny_model(transformers, "Qwen3Moe", len(tokenizer), **MOE)
    meant = write_packed(tmp_path / "model", model, PACKINGS[name])
    loaded = load(tmp_path / "model")
    most, is_same = farthest(loaded, meant, tokenizer.encode(TEXT))
    print("XX", name, most, is_same, 8 * loaded.footprint.weight_bytes / model.num_parameters(), [r.message for r in caplog.records])
    assert 0
