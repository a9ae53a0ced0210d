"""GGUF files of tiny models, written with the official package: their weights, tokens and answers."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFWriter
from gguf.quants import dequantize

from tests.engine.batching.tiny import run
from tests.engine.conftest import DEMO
from tests.engine.gguf_files import PLAIN, tiny_model, write_gguf
from tis.engine.answer import Piece
from tis.engine.batching.limits import BatchLimits
from tis.engine.errors import LoadFailed
from tis.engine.kernels.gguf_types import TYPES_OF_GGUF
from tis.engine.kernels.native import native_kernels
from tis.engine.models.description import describe_loaded, describe_unloaded
from tis.engine.models.gguf_config import config_of
from tis.engine.models.gguf_file import read_gguf_header
from tis.engine.models.gguf_tokenizer import tokenizer_of
from tis.engine.models.gguf_weights import GgufWeights
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.models.revision import revision_of
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams

pytestmark = pytest.mark.model

KINDS = [Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K]
FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {"tie_word_embeddings": True},
    "Phi3": {"pad_token_id": 0},
    "Gemma2": {"sliding_window": 64, "query_pre_attn_scalar": 64, "tie_word_embeddings": True},
    "Gemma3Text": {"sliding_window": 64, "query_pre_attn_scalar": 64},
    "Qwen2Moe": {
        **{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256},
        **{"shared_expert_intermediate_size": 512, "norm_topk_prob": False},
    },
    "Qwen3Moe": {"norm_topk_prob": True, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256},
}
TEXT = "Hello, how are you? Wie geht's, 12345   tabs\tand\n\n<|im_start|>user\n<think>e\u0301</think> 你好"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(DEMO)


def load(path: Path, **options: Any) -> LoadedModel:
    return load_model(
        str(path), LoadOptions(device_map="cpu", **{"dtype": "float32", **options}), lambda stage, share: None
    )


def of_all_kinds() -> Callable[[str], Kind]:
    kinds = cycle([*KINDS, *PLAIN])
    return lambda name: next(kinds)


def has_more_bits(name: str) -> bool:
    """As llama.cpp mixes them: also matrices that others are merged with."""
    return any(part in name for part in ("attn_v", "ffn_down", "output.weight"))


def like_q4_k_m(name: str) -> Kind:
    return Kind.Q6_K if has_more_bits(name) else Kind.Q4_K


def like_q5_k_m(name: str) -> Kind:
    return Kind.Q6_K if has_more_bits(name) else Kind.Q5_K


def like_q4_k_m_of_odd_rows(name: str) -> Kind:
    """Where they are no whole super-blocks, llama.cpp takes these instead of k-quants."""
    return Kind.Q8_0 if has_more_bits(name) else Kind.Q5_0


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_bit_for_bit_those_of_the_official_reader(family: str, tokenizer: Any, tmp_path: Path) -> None:
    model = tiny_model(transformers, family, len(tokenizer), **FAMILIES[family])
    meant = write_gguf(tmp_path / "a.gguf", model, tokenizer, of_all_kinds())
    header = read_gguf_header(tmp_path / "a.gguf")
    read = GgufWeights(header, config_of(header), may_stay_in_blocks=False).read(
        transformers.AutoModelForCausalLM, "float32", device_map="cpu"
    )
    found = read.state_dict()
    assert meant.keys() == found.keys() - ({"lm_head.weight"} if model.config.tie_word_embeddings else set())
    assert [name for name, weight in meant.items() if not torch.equal(weight, found[name])] == []
    ids = torch.arange(3, 40)[None]
    model.load_state_dict(meant, strict=False)
    with torch.inference_mode():
        assert torch.equal(read(input_ids=ids).logits, model(input_ids=ids).logits)


# How far the logarithms of the ten likeliest tokens are from those of the file's own numbers, at most. Measured with
# AVX2: 6e-6 for floats, 0.16 for types of 4 bits.
# The weights of which are those of the file.
EXACT = (Kind.Q8_0, Kind.Q5_0, Kind.Q5_1, Kind.Q5_K, Kind.Q6_K, like_q5_k_m, like_q4_k_m_of_odd_rows)
ALLOWED: dict[Any, float] = {**dict.fromkeys(PLAIN, 1e-4), **dict.fromkeys(EXACT, 0.005)}
OF_INTEGERS = 0.25


def likeliest(loaded: LoadedModel, prompt_ids: list[int], num: int = 6) -> list[tuple[int, dict[int, float]]]:
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


def name_of(choose: Any) -> str:
    return choose.name if isinstance(choose, Kind) else choose.__name__.removeprefix("like_").upper()


@pytest.mark.parametrize("choose", [*KINDS, *PLAIN, like_q4_k_m, like_q5_k_m, like_q4_k_m_of_odd_rows], ids=name_of)
def test_answers_are_near_to_those_of_the_numbers_in_the_file(choose: Any, tokenizer: Any, tmp_path: Path) -> None:
    family = "Llama" if choose in (Kind.Q4_0, Kind.F16, like_q4_k_m) else "Qwen3"
    model = tiny_model(transformers, family, len(tokenizer), **FAMILIES[family])
    meant = write_gguf(tmp_path / "a.gguf", model, tokenizer, choose)
    model.load_state_dict(meant, strict=False)
    loaded = load(tmp_path / "a.gguf")
    prompt_ids = tokenizer.encode(TEXT)
    allowed = ALLOWED.get(choose, OF_INTEGERS)
    context = list(prompt_ids)
    for token_id, ours in likeliest(loaded, prompt_ids):
        with torch.inference_mode():
            theirs = model(input_ids=torch.tensor([context])).logits[0, -1].log_softmax(-1)
        assert max(abs(logprob - float(theirs[one])) for one, logprob in ours.items()) < allowed
        if choose in PLAIN:
            assert token_id == int(theirs.argmax())
        context.append(token_id)
    if native_kernels() and choose not in PLAIN:
        assert loaded.footprint is not None
        bits = 8 * loaded.footprint.weight_bytes / model.num_parameters()
        has_four_bits = choose in (Kind.Q4_0, Kind.Q4_1, Kind.Q4_K)
        assert bits < (6.5 if has_four_bits else 9.5 if choose in (Kind.Q8_0, like_q4_k_m_of_odd_rows) else 7.5)


@pytest.mark.parametrize("choose", EXACT, ids=name_of)
@pytest.mark.parametrize("is_tied", [False, True], ids=["with a head", "tied"])
def test_tokens_are_those_of_generate_where_the_file_loses_nothing(
    choose: Any, is_tied: bool, tokenizer: Any, tmp_path: Path
) -> None:
    model = tiny_model(transformers, "Qwen3", len(tokenizer), tie_word_embeddings=is_tied)
    model.load_state_dict(write_gguf(tmp_path / "a.gguf", model, tokenizer, choose), strict=False)
    prompt_ids = tokenizer.encode(TEXT)
    with torch.inference_mode():
        theirs = model.generate(
            torch.tensor([prompt_ids]), do_sample=False, max_new_tokens=24, eos_token_id=None, pad_token_id=0
        )
    ours = [token for token, _ in likeliest(load(tmp_path / "a.gguf"), prompt_ids, 24)]
    assert ours == theirs[0, len(prompt_ids) :].tolist()


def test_experts_beside_integers_are_near_to_those_of_the_file(
    tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tis.engine")
    model = tiny_model(transformers, "Qwen3Moe", len(tokenizer), **FAMILIES["Qwen3Moe"])
    model.load_state_dict(write_gguf(tmp_path / "a.gguf", model, tokenizer, Kind.Q8_0), strict=False)
    prompt_ids = tokenizer.encode("Hello")
    with torch.inference_mode():
        theirs = model(input_ids=torch.tensor([prompt_ids])).logits[0, -1].log_softmax(-1)
    [(_, ours)] = likeliest(load(tmp_path / "a.gguf"), prompt_ids, 1)
    assert max(abs(logprob - float(theirs[one])) for one, logprob in ours.items()) < ALLOWED[Kind.Q8_0]
    if native_kernels():
        assert "fused the experts of 2 layers" in caplog.text


def test_without_kernels_and_with_another_setting_the_answers_are_those_of_the_file(
    tokenizer: Any, tmp_path: Path
) -> None:
    model = tiny_model(transformers, "Qwen3", len(tokenizer))
    model.load_state_dict(write_gguf(tmp_path / "a.gguf", model, tokenizer, like_q4_k_m), strict=False)
    prompt_ids = tokenizer.encode(TEXT)
    with torch.inference_mode():
        theirs = model(input_ids=torch.tensor([prompt_ids])).logits[0, -1].log_softmax(-1)
    for limits, allowed in ((BatchLimits(native_kernels=False), 1e-4), (BatchLimits(quantisation="int8"), OF_INTEGERS)):
        [(_, ours)] = likeliest(load(tmp_path / "a.gguf", batch=limits), prompt_ids, 1)
        assert max(abs(logprob - float(theirs[one])) for one, logprob in ours.items()) < allowed


def test_tokenizer_template_ends_sampling_and_context_are_those_of_the_file(tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "shop.gguf"
    model = tiny_model(transformers, "Qwen3", len(tokenizer))
    write_gguf(path, model, tokenizer, Kind.Q8_0, general__sampling__top_k=20)
    loaded = load(path)
    for text in (TEXT, " leading", "ends ", "it's 3.14\r\n\r\n", "\u00e9 e\u0301 \U0001f600", ""):
        assert loaded.tokenizer.encode_text(text) == tokenizer.encode(text)
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}]
    ours = loaded.tokenizer.encode_chat(ChatPrompt(chat))
    assert ours == tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    ends = {tokenizer.convert_tokens_to_ids(one) for one in ("<|im_end|>", "<|endoftext|>")}
    assert set(loaded.tokenizer.eos_ids) == ends
    assert loaded.generation_defaults == {"top_k": 20}
    assert loaded.context_length == 512
    unloaded, known = describe_unloaded(str(path)), describe_loaded(loaded)
    assert (unloaded.context_length, unloaded.weights_bytes) == (512, path.stat().st_size)
    assert (unloaded.calls_tools, unloaded.reasons) == (known.calls_tools, known.reasons)
    assert unloaded.chat_template == known.chat_template


def sentencepiece_tokenizer() -> Any:
    """As that of Llama 2 and Mistral, with a few words."""
    words = "hello how are you the then there three shop shops in 12".split()
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        piece = "\u2581"
        for letter in word:
            merges.setdefault((piece, letter))
            piece += letter
    letters = sorted({letter for word in words for letter in word} | set("\u2581.,!?ABC"))
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    tokens += [token for token in dict.fromkeys("".join(pair) for pair in merges) if token not in tokens]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return transformers.LlamaTokenizer(vocab=vocabulary, merges=list(merges))


def test_tokens_of_sentencepiece_are_made_of_scores(tmp_path: Path) -> None:
    original = sentencepiece_tokenizer()
    model = tiny_model(transformers, "Llama", len(original))
    write_gguf(tmp_path / "a.gguf", model, original, Kind.Q8_0)
    loaded = load(tmp_path / "a.gguf")
    for text in ("hello, how are you?", "three shops  in\nthe 12!", " then", "\u00e9 \u4f60\U0001f600", "</s>there"):
        ours = loaded.tokenizer.encode_raw(text, adds_special_tokens=True)
        assert ours == [original.bos_token_id, *original.encode(text, add_special_tokens=False)]
        assert tokenizer_of(read_gguf_header(tmp_path / "a.gguf")).decode(ours[1:]) == original.decode(ours[1:])
    assert set(loaded.tokenizer.eos_ids) == {original.eos_token_id}


def test_the_revision_follows_vocabulary_and_weights(tokenizer: Any, tmp_path: Path) -> None:
    model = tiny_model(transformers, "Qwen3", len(tokenizer))
    first, again, other = (tmp_path / name for name in ("first.gguf", "again.gguf", "other.gguf"))
    for path, kind in ((first, Kind.Q8_0), (again, Kind.Q8_0), (other, Kind.Q4_0)):
        write_gguf(path, model, tokenizer, kind)
    renamed = again.rename(tmp_path / "folder.gguf").rename(first)  # the same bytes under the same name
    same = revision_of(renamed)
    assert same != revision_of(other)
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    assert revision_of(first) != same


def test_frequencies_of_llama_3_are_divided(tokenizer: Any, tmp_path: Path) -> None:
    rope = {"rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0}
    rope |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 128}
    model = tiny_model(transformers, "Llama", len(tokenizer), rope_parameters=rope)
    plain = 1 / 10_000.0 ** (torch.arange(0, 64, 2) / 64)
    write_gguf(tmp_path / "a.gguf", model, tokenizer, Kind.F32, rope_factors=plain / model.model.rotary_emb.inv_freq)
    loaded = load(tmp_path / "a.gguf")
    prompt_ids = tokenizer.encode(TEXT)
    with torch.inference_mode():
        theirs = model(input_ids=torch.tensor([prompt_ids])).logits[0, -1].log_softmax(-1)
    [(token_id, ours)] = likeliest(loaded, prompt_ids, 1)
    assert token_id == int(theirs.argmax())
    assert max(abs(logprob - float(theirs[one])) for one, logprob in ours.items()) < 1e-4


def test_a_wrong_template_changes_no_more_than_a_template(tokenizer: Any, tmp_path: Path) -> None:
    """It runs in the sandbox, as that of any repository."""
    path = tmp_path / "a.gguf"
    template = "{{ messages.__class__.__mro__[1].__subclasses__() }}"
    write_gguf(path, tiny_model(transformers, "Qwen3", len(tokenizer)), tokenizer, Kind.Q8_0, template=template)
    loaded = load(path)
    with pytest.raises(Exception, match=r"template|unsafe|attribute"):
        loaded.tokenizer.encode_chat(ChatPrompt([{"role": "user", "content": "Hi"}]))


WRONG_MODELS: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], None], str]] = {
    "architecture": (lambda entries, tensors: entries.update({"general.architecture": "clip"}), "architecture 'clip'"),
    "no layers": (lambda entries, tensors: entries.update({"qwen3.block_count": 0}), "block_count"),
    "too many layers": (lambda entries, tensors: entries.update({"qwen3.block_count": 2**31}), "block_count"),
    "more layers": (lambda entries, tensors: entries.update({"qwen3.block_count": 9}), "lacks a tensor"),
    "another width": (lambda entries, tensors: entries.update({"qwen3.embedding_length": 512}), "shape"),
    "text for a number": (lambda entries, tensors: entries.update({"qwen3.block_count": "two"}), "block_count"),
    "no context": (lambda entries, tensors: entries.pop("qwen3.context_length"), "max_position_embeddings"),
    "no heads": (lambda entries, tensors: entries.update({"qwen3.attention.head_count": 0}), "head_count"),
    "missing tensor": (lambda entries, tensors: tensors.pop("blk.1.attn_q.weight"), "lacks a tensor"),
    "no tokens": (lambda entries, tensors: entries.pop("tokenizer.ggml.tokens"), "no tokenizer"),
    "no merges": (lambda entries, tensors: entries.pop("tokenizer.ggml.merges"), "merges"),
    "foreign merges": (
        lambda entries, tensors: entries.update({"tokenizer.ggml.merges": ["never there"]}),
        "no valid tokenizer",
    ),
    "kind of tokenizer": (lambda entries, tensors: entries.update({"tokenizer.ggml.model": "bert"}), "'bert'"),
    "end behind the vocabulary": (
        lambda entries, tensors: entries.update({"tokenizer.ggml.eos_token_id": 10**6}),
        "eos_token_id",
    ),
    "stretched by tensors": (
        lambda entries, tensors: tensors.update(
            {"rope_factors_long.weight": replace(tensors["output_norm.weight"], name="rope_factors_long.weight")}
        ),
        "rope_factors_long",
    ),
    "stretched in an unknown way": (
        lambda entries, tensors: entries.update(
            {"qwen3.rope.scaling.type": "spiral", "qwen3.rope.scaling.factor": 2.0}
        ),
        "spiral",
    ),
}


@pytest.fixture(scope="module")
def good(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("gguf") / "good.gguf"
    write_gguf(path, tiny_model(transformers, "Qwen3", len(tokenizer)), tokenizer, Kind.Q8_0)
    return read_gguf_header(path)


@pytest.mark.parametrize("name", WRONG_MODELS)
def test_models_that_are_none_are_refused_by_name(name: str, good: Any) -> None:
    change, reason = WRONG_MODELS[name]
    entries, tensors = dict(good.metadata), dict(good.tensors)
    change(entries, tensors)
    header = replace(good, metadata=entries, tensors=tensors)
    with pytest.raises(LoadFailed, match=reason) as refused:
        config = config_of(header)
        tokenizer_of(header)
        GgufWeights(header, config, may_stay_in_blocks=True).read(
            transformers.AutoModelForCausalLM, "auto", device_map="cpu"
        )
    assert "good.gguf" in refused.value.message


@pytest.mark.parametrize("kind", [Kind.Q2_K, Kind.Q3_K, Kind.IQ4_NL, Kind.IQ4_XS], ids=lambda kind: kind.name)
def test_types_without_a_kernel_become_the_official_numbers(kind: Kind, tmp_path: Path) -> None:
    known = TYPES_OF_GGUF[int(kind)]
    random = np.random.default_rng(5)
    raw = random.integers(0, 256, (4, 512 // known.numbers, known.num_bytes), dtype=np.uint8)
    for at in {Kind.Q2_K: (80, 82), Kind.Q3_K: (108,)}.get(kind, (0,)):
        raw[..., at : at + 2] = random.normal(0, 0.01, (*raw.shape[:2], 1)).astype(np.float16).view(np.uint8)
    writer = GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_tensor("a", raw.reshape(4, -1), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = read_gguf_header(tmp_path / "a.gguf")
    weights = GgufWeights(header, None, may_stay_in_blocks=True)
    assert not weights.stay_in_blocks(header.tensors["a"])
    numbers = weights.numbers(header.tensors["a"])
    assert numbers.shape == (4, 512)
    torch.testing.assert_close(numbers, torch.from_numpy(dequantize(raw.reshape(4, -1), kind)), rtol=1e-6, atol=1e-9)
