"""Repositories of GPTQ, AWQ, compressed-tensors and FP8: their weights, and the answers of what they stand for."""

import json
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.engine.batching.tiny import new_model_of, run
from tests.engine.conftest import DEMO
from tests.engine.gguf_files import tiny_model
from tests.engine.packed_models import PACKINGS, Written, gptq, write_packed
from tis.arguments.loading import fetcher_of
from tis.engine.answer import Piece
from tis.engine.batching.limits import BatchLimits
from tis.engine.errors import LoadFailed
from tis.engine.kernels.grouped_product import GroupedProduct
from tis.engine.kernels.int8_spans import Int8SpanProduct
from tis.engine.kernels.integer_product import Int8Product
from tis.engine.kernels.native import native_kernels
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.models.packed_files import PackedFiles
from tis.engine.models.packed_memory import WeightOptions, packed_bytes_of
from tis.engine.models.quantised_files import packed_format_of, without_quantisation
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams
from tis.engine.weights.int4 import Int4Linear
from tis.engine.weights.int8 import Int8Linear
from tis.engine.weights.packed import pack_blocks
from tis.settings import Settings

pytestmark = [pytest.mark.model, pytest.mark.long]

TEXT = "Hello, how are you today? 12345"
MOE = {"norm_topk_prob": True, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
# How far the logarithms of the ten likeliest tokens are from those of the file's own numbers, at most. Rows beside
# weights of 4 bits have 8 (0118), beside those of 8 bits 16 or 8 (0086), with groups 16 (0134).
OF_4_BITS, OF_8_BITS, OF_FLOATS = 0.3, 0.01, 1e-4


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


def read(folder: Path, *, may_stay_packed: bool) -> Any:
    config = transformers.AutoConfig.from_pretrained(folder)
    form = packed_format_of(config)
    assert form is not None
    return PackedFiles(folder, without_quantisation(config), form).read(
        transformers.AutoModelForCausalLM,
        "float32",
        may_stay_packed=may_stay_packed,
        trust_remote_code=False,
        device_map="cpu",
        attn_implementation=None,
    )


@pytest.mark.parametrize("name", PACKINGS)
def test_weights_are_bit_for_bit_what_the_file_stands_for(name: str, qwen3: Any, tmp_path: Path) -> None:
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS[name]).state_dict()
    found = read(tmp_path / "model", may_stay_packed=False).state_dict()
    assert found.keys() == meant.keys()
    assert [key for key, weight in meant.items() if not torch.equal(weight, found[key])] == []


@pytest.mark.parametrize("name", [name for name, packing in PACKINGS.items() if packing.bits == 4])
def test_numbers_of_4_bits_their_zeros_and_their_scales_stay(name: str, qwen3: Any, tmp_path: Path) -> None:
    if (kernels := native_kernels()) is None:
        pytest.skip("they stay where kernels are")
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS[name]).state_dict()
    model = read(tmp_path / "model", may_stay_packed=True)
    assert pack_blocks(model, kernels) == 14
    packed = {layer: one for layer, one in model.named_modules() if isinstance(one, Int4Linear)}
    assert len(packed) == 14
    for layer, one in packed.items():
        assert isinstance(one.product, GroupedProduct)
        assert torch.equal(one.product.weights, meant[f"{layer}.weight"])


@pytest.mark.parametrize("name", [name for name, packing in PACKINGS.items() if packing.bits == 8])
def test_numbers_of_8_bits_their_zeros_and_their_scales_stay(name: str, qwen3: Any, tmp_path: Path) -> None:
    if (kernels := native_kernels()) is None:
        pytest.skip("they stay where kernels are")
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS[name]).state_dict()
    model = read(tmp_path / "model", may_stay_packed=True)
    assert pack_blocks(model, kernels) == 14
    packed = {layer: one for layer, one in model.named_modules() if isinstance(one, Int8Linear)}
    assert len(packed) == 14
    has_groups = name not in ("gptq of 8 bits and outputs", "w8a8")  # or zeros
    for layer, one in packed.items():
        assert isinstance(one.product, Int8SpanProduct if has_groups else Int8Product)
        assert torch.equal(one.product.weights, meant[f"{layer}.weight"])


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


def require_near(loaded: LoadedModel, model: Any, prompt_ids: list[int], allowed: float) -> None:
    """The logarithms of probabilities, and each token is the likeliest of the model but for as much."""
    context = list(prompt_ids)
    for token_id, ours in likeliest(loaded, prompt_ids):
        with torch.inference_mode():
            theirs = model(input_ids=torch.tensor([context])).logits[0, -1].log_softmax(-1)
        assert max(abs(logprob - float(theirs[one])) for one, logprob in ours.items()) < allowed
        assert float(theirs.max() - theirs[token_id]) < allowed
        context.append(token_id)


def allowed_of(name: str) -> float:
    packing = PACKINGS[name]
    return {16: OF_FLOATS, 8: OF_8_BITS, 4: OF_4_BITS}[packing.bits]


@pytest.mark.parametrize("name", PACKINGS)
def test_answers_are_those_of_the_numbers_in_the_file(name: str, qwen3: Any, tokenizer: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    meant = write_packed(folder, qwen3, PACKINGS[name])
    foreseen = packed_bytes_of(folder, WeightOptions("cpu", dtype="float32"))
    loaded = load(folder)
    require_near(loaded, meant, tokenizer.encode(TEXT), allowed_of(name))
    if native_kernels():
        assert loaded.footprint is not None and foreseen is not None
        assert 0.98 < foreseen / loaded.footprint.weight_bytes < 1.02


def test_a_load_asks_for_the_memory_that_it_takes(qwen3: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_packed(folder, qwen3, PACKINGS["gptq"])
    matrices = sum(weight.numel() for name, weight in qwen3.state_dict().items() if name.endswith("proj.weight"))

    def need(**settings: Any) -> int:
        fetch = fetcher_of(Settings(model_memory_mb=1000, device_map="cpu", **settings))
        return fetch(CatalogueEntry("m", str(folder)), lambda stage, share: None).num_bytes

    packed, plain = need(), need(kernels="off", torch_dtype="float32")
    assert plain - packed == pytest.approx((4 - 4.5 / 8) * matrices, rel=0.01)
    with pytest.raises(LoadFailed, match="saved with hqq"):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": "hqq"}}))
        load(folder)


@pytest.mark.parametrize(
    "name",
    [
        "gptq",
        "gptq in the order of activations",
        "compressed with zeros",
        "w8a8",
        "gptq of 8 bits",
        "compressed of 8 bits with zeros",
        "fp8",
    ],
)
def test_experts_are_those_of_the_file(
    name: str, tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.engine")
    folder = tmp_path / "model"
    meant = write_packed(folder, tiny_model(transformers, "Qwen3Moe", len(tokenizer), **MOE), PACKINGS[name])
    foreseen = packed_bytes_of(folder, WeightOptions("cpu", dtype="float32"))
    loaded = load(folder)
    require_near(loaded, meant, tokenizer.encode(TEXT), allowed_of(name))
    if native_kernels():
        assert "fused the experts of 2 layers" in caplog.text
        assert loaded.footprint is not None and foreseen is not None
        assert 0.98 < foreseen / loaded.footprint.weight_bytes < 1.02


@pytest.mark.parametrize("quantise", [None, "int4"])
@pytest.mark.parametrize("in_order", [0, 1])
def test_some_experts_may_have_no_order(
    in_order: int, quantise: Any, tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No activation was seen of an expert that no text has chosen: so its inputs stay where they are."""
    caplog.set_level("INFO", "tis.engine")
    ordered, plain, number = gptq(act_order=True), gptq(), count()

    def write(weight: Any) -> Written:
        return (plain if next(number) % MOE["num_experts"] == in_order else ordered).write(weight)

    folder, model = tmp_path / "model", tiny_model(transformers, "Qwen3Moe", len(tokenizer), **MOE)
    meant = write_packed(folder, model, replace(ordered, write=write), packed=lambda name: ".experts." in name)
    foreseen = packed_bytes_of(folder, WeightOptions("cpu", dtype="float32"))
    loaded = load(folder, batch=BatchLimits(quantisation=quantise))
    require_near(loaded, meant, tokenizer.encode(TEXT), OF_4_BITS if quantise is None else 1.5)
    if native_kernels():
        assert "fused the experts of 2 layers" in caplog.text
        assert loaded.footprint is not None and foreseen is not None
        assert quantise or 0.98 < foreseen / loaded.footprint.weight_bytes < 1.02


@pytest.mark.parametrize("name", ["gptq with zeros", "awq", "w8a8", "fp8"])
def test_without_kernels_weights_become_plain_ones(
    name: str, qwen3: Any, tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.engine")
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS[name])
    loaded = load(tmp_path / "model", batch=BatchLimits(native_kernels=False))
    require_near(loaded, meant, tokenizer.encode(TEXT), OF_FLOATS)
    told = [record.message for record in caplog.records if "14 matrices" in record.message]
    assert len(told) == 1 and "become float32, one at a time" in told[0]
    foreseen = packed_bytes_of(tmp_path / "model", WeightOptions("cpu", native_kernels=False, dtype="float32"))
    assert loaded.footprint is not None and foreseen is not None
    assert 0.98 < foreseen / loaded.footprint.weight_bytes < 1.02


def test_what_is_not_kept_of_activations_is_said_once(
    qwen3: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.engine")
    write_packed(tmp_path / "model", qwen3, PACKINGS["w8a8"])
    load(tmp_path / "model")
    assert caplog.text.count("what it says of input_activations is not used") == 1


@pytest.mark.parametrize("name", ["gptq", "w8a8", "fp8"])
@pytest.mark.parametrize("quantise", ["int8", "int4"])
def test_another_setting_rounds_what_has_more_bits(
    name: str, quantise: Any, qwen3: Any, tokenizer: Any, tmp_path: Path
) -> None:
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS[name])
    loaded = load(tmp_path / "model", batch=BatchLimits(quantisation=quantise))
    is_kept = name == "gptq" or quantise == "int8"
    require_near(loaded, meant, tokenizer.encode(TEXT), OF_4_BITS if is_kept else 1.5)


@pytest.mark.parametrize("name", ["gptq in the order of activations", "compressed of 8 bits and outputs", "fp8"])
def test_a_repository_of_16_bits_is_computed_as_any_other(
    name: str, qwen3: Any, tokenizer: Any, tmp_path: Path
) -> None:
    saved = "bfloat16" if name == "fp8" else "float16"
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS[name], dtype=saved).to(getattr(torch, saved)).float()
    require_near(load(tmp_path / "model", dtype="auto"), meant, tokenizer.encode(TEXT), OF_4_BITS)


def test_fp8_takes_16_bits_where_the_cpu_computes_in_32(
    qwen3: Any, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = native_kernels()
    if kernels is None or kernels.isa == "scalar":
        pytest.skip("weights become narrow where kernels are")
    monkeypatch.setattr("tis.engine.weights.cpu_dtype.computes_in_bfloat16", lambda: False)
    meant = write_packed(tmp_path / "model", qwen3, PACKINGS["fp8"], dtype="bfloat16")
    for parameter in meant.parameters():  # frequencies of rotary embeddings are no parameters, and stay
        parameter.data = parameter.data.bfloat16().float()
    loaded = load(tmp_path / "model", dtype="auto")
    require_near(loaded, meant, tokenizer.encode(TEXT), OF_FLOATS)
    assert loaded.footprint is not None and loaded.footprint.dtype == "float32"
    embedding = qwen3.get_input_embeddings().weight.numel()
    assert loaded.footprint.weight_bytes < 2.02 * (qwen3.num_parameters() - embedding) + 4 * embedding


@pytest.mark.parametrize("name", ["gptq in the order of activations", "compressed with zeros", "fp8"])
def test_tied_heads_and_biases_stay_beside_packed_layers(name: str, tokenizer: Any, tmp_path: Path) -> None:
    model = tiny_model(transformers, "Qwen2", len(tokenizer), tie_word_embeddings=True)
    meant = write_packed(tmp_path / "model", model, PACKINGS[name])
    require_near(load(tmp_path / "model"), meant, tokenizer.encode(TEXT), allowed_of(name))


def test_experts_may_be_packed_alone(tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tis.engine")
    model = tiny_model(transformers, "Qwen3Moe", len(tokenizer), **MOE)
    meant = write_packed(tmp_path / "model", model, PACKINGS["compressed"], packed=lambda name: ".experts." in name)
    loaded = load(tmp_path / "model")
    require_near(loaded, meant, tokenizer.encode(TEXT), OF_4_BITS)
    assert "packed matrices have become plain weights" not in caplog.text or not native_kernels()


def test_a_head_of_4_bits_keeps_them(qwen3: Any, tokenizer: Any, tmp_path: Path) -> None:
    meant = write_packed(
        tmp_path / "model", qwen3, gptq(), packed=lambda name: name.endswith(("proj.weight", "lm_head.weight"))
    )
    require_near(load(tmp_path / "model"), meant, tokenizer.encode(TEXT), OF_4_BITS)


def test_latents_of_fp8_are_those_of_the_file(tokenizer: Any, tmp_path: Path) -> None:
    """As DeepSeek publishes it: the last block of a matrix is not whole."""
    model = new_model_of(
        "DeepseekV3",
        **{"vocab_size": len(tokenizer), "hidden_size": 256, "intermediate_size": 192, "moe_intermediate_size": 64},
        **{"q_lora_rank": 64, "kv_lora_rank": 64, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1},
        **{"topk_group": 1, "first_k_dense_replace": 1, "num_key_value_heads": 4, "num_attention_heads": 4},
    )
    meant = write_packed(
        tmp_path / "model",
        model,
        PACKINGS["fp8"],
        packed=lambda name: name.endswith(("proj.weight", "proj_with_mqa.weight")) or "_b_proj" in name,
    )
    require_near(load(tmp_path / "model"), meant, tokenizer.encode(TEXT), 1e-3)


@pytest.mark.parametrize("name", ["gptq of 32 in the order of activations", "awq of 32", "w8a8", "fp8"])
def test_a_trained_model_gives_the_same_tokens(name: str, tmp_path: Path) -> None:
    demo = transformers.AutoModelForImageTextToText.from_pretrained(DEMO, dtype="float32")
    packing = PACKINGS.get(name) or gptq(group=32, act_order=True)
    meant = write_packed(
        tmp_path / "packed", demo, packing, packed=lambda one: "language_model" in one and one.endswith("proj.weight")
    )
    meant.save_pretrained(tmp_path / "plain")
    for folder in ("packed", "plain"):
        for file in Path(DEMO).glob("*"):
            if not (tmp_path / folder / file.name).exists():
                shutil.copy(file, tmp_path / folder)
    packed, plain = load(tmp_path / "packed"), load(tmp_path / "plain")
    assert packed.generation_defaults == plain.generation_defaults
    assert packed.tokenizer.eos_ids == plain.tokenizer.eos_ids
    assert packed.vision is not None
    for text in ("Hello", "Do you have a black backpack below 100?", "What is the capital of France?"):
        prompt_ids = plain.tokenizer.encode_chat(ChatPrompt([{"role": "user", "content": text}]))
        ours, theirs = (likeliest(one, prompt_ids, 24) for one in (packed, plain))
        assert [token_id for token_id, _ in ours] == [token_id for token_id, _ in theirs]
