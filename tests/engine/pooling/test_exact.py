"""Vectors and scores equal those of sentence-transformers, alone and in company."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import sentence_transformers
import torch
import transformers

from tests.engine.pooling.models import TEXTS, add_sentence_files, save
from tis.engine.kernels.native import native_kernels
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loading import LoadOptions
from tis.engine.pooling.encoder import Encoder
from tis.engine.pooling.fused_encoder import fuse_encoder_layers
from tis.engine.pooling.load_pooling import load_pooling
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, PairScores

pytestmark = pytest.mark.model

_MEAN, _CLS, _LAST = ({f"pooling_mode_{name}": True} for name in ("mean_tokens", "cls_token", "lasttoken"))
_WINDOW = {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
_MODERN = {"local_attention": 16, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
_HEADS = {"num_key_value_heads": 2, "head_dim": 16}
_GEMMA = {**_HEADS, **_WINDOW, "use_bidirectional_attention": True}
FAMILIES: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "bge": ("BertModel", {}, _CLS),
    "e5": ("XLMRobertaModel", {}, _MEAN),
    "distil": ("DistilBertModel", {}, {"pooling_mode": ["mean", "max"]}),
    "mpnet": ("MPNetModel", {}, {"pooling_mode": "mean_sqrt_len_tokens"}),
    "modern": ("ModernBertModel", _MODERN, _MEAN),
    "qwen": ("Qwen3Model", _HEADS, _LAST),
    "gemma": ("Gemma3TextModel", _GEMMA, {"pooling_mode": "weightedmean"}),
}
PADDED = {"mpnet"}


async def _with_engine(folder: Path, task: Any, ask: Any) -> Any:
    entry = CatalogueEntry("m", str(folder), task)
    engine = LocalEngine([entry], lambda entry, report: load_pooling(entry, LoadOptions(), report), EngineLimits())
    await engine.open()
    try:
        return await ask(engine)
    finally:
        await engine.close()


def embedded(folder: Path, texts: Sequence[Any] = TEXTS, **options: Any) -> Embeddings:
    async def ask(engine: LocalEngine) -> Embeddings:
        return await engine.embed("m", texts, EmbeddingOptions(**options))

    made: Embeddings = asyncio.run(_with_engine(folder, "embedding", ask))
    return made


def scored(folder: Path, pairs: Sequence[tuple[str, str]], **options: Any) -> PairScores:
    async def ask(engine: LocalEngine) -> PairScores:
        return await engine.score("m", pairs, **options)

    made: PairScores = asyncio.run(_with_engine(folder, "rerank", ask))
    return made


def expected(folder: Path, texts: Sequence[str] = TEXTS, **options: Any) -> Any:
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    return model.encode(list(texts), **options)


@pytest.mark.parametrize("name", FAMILIES)
def test_vectors_are_those_of_sentence_transformers(name: str, tmp_path: Path) -> None:
    kind, options, pooling = FAMILIES[name]
    folder = add_sentence_files(save(tmp_path, kind, **options), pooling)
    made = embedded(folder)
    numpy.testing.assert_allclose(numpy.stack(made.vectors), expected(folder), atol=2e-5)
    encoder = Encoder(transformers.AutoModel.from_pretrained(folder).eval(), 0)
    assert encoder.is_packed == (name not in PADDED)


@pytest.mark.parametrize("name", ["bge", "qwen", "mpnet"])
def test_company_changes_no_vector(name: str, tmp_path: Path) -> None:
    kind, options, pooling = FAMILIES[name]
    folder = add_sentence_files(save(tmp_path, kind, **options), pooling)
    together = embedded(folder).vectors
    for text, vector in zip(TEXTS, together, strict=True):
        [alone] = embedded(folder, [text]).vectors
        numpy.testing.assert_allclose(vector, alone, atol=2e-5)


def test_prompts_dense_layers_and_cases(tmp_path: Path) -> None:
    folder = add_sentence_files(
        save(tmp_path, "BertModel"),
        {**_MEAN, "include_prompt": False},
        dense=(64, 24),
        lower_case=True,
        prompts={"query": "Kopi apa: ", "document": ""},
        default_prompt_name="query",
    )
    for options in ({}, {"prompt_name": "query"}, {"prompt_name": "document"}):
        made = embedded(folder, **options)
        numpy.testing.assert_allclose(numpy.stack(made.vectors), expected(folder, **options), atol=2e-5)
        assert len(made.vectors[0]) == 24


def test_a_folder_without_sentence_files_gives_normalised_means(tmp_path: Path) -> None:
    folder = save(tmp_path, "BertModel")
    plain = torch.nn.functional.normalize(torch.tensor(expected(folder)), dim=-1)
    numpy.testing.assert_allclose(numpy.stack(embedded(folder).vectors), plain, atol=2e-5)


def test_a_long_text_is_cut_as_sentence_transformers_cuts_it(tmp_path: Path) -> None:
    folder = add_sentence_files(save(tmp_path, "BertModel"), _MEAN)
    long = "kopi Gayo dari Aceh " * 60
    [vector] = embedded(folder, [long], truncate=True).vectors
    numpy.testing.assert_allclose(vector, expected(folder, [long])[0], atol=2e-5)


def test_token_ids_are_a_text_that_is_encoded(tmp_path: Path) -> None:
    folder = add_sentence_files(save(tmp_path, "BertModel"), _MEAN)
    ids = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS[1])["input_ids"]
    made = embedded(folder, [TEXTS[1], ids])
    assert (made.vectors[0] == made.vectors[1]).all() and made.num_tokens == 2 * len(ids)


def test_fewer_dimensions_are_normalised_again(tmp_path: Path) -> None:
    folder = add_sentence_files(save(tmp_path, "BertModel"), _MEAN)
    short = numpy.stack(embedded(folder, dimensions=16).vectors)
    numpy.testing.assert_allclose(short, expected(folder, truncate_dim=16, normalize_embeddings=True), atol=2e-5)


PAIRS = [("kopi dari Aceh", text) for text in TEXTS] + [(TEXTS[7], TEXTS[7] + TEXTS[3])]


@pytest.mark.parametrize(
    "kind",
    ["BertForSequenceClassification", "XLMRobertaForSequenceClassification", "ModernBertForSequenceClassification"],
)
def test_scores_are_those_of_a_cross_encoder(kind: str, tmp_path: Path) -> None:
    options = _MODERN if kind.startswith("Modern") else {}
    folder = save(tmp_path, kind, num_labels=1, **options)
    reference = sentence_transformers.CrossEncoder(str(folder), device="cpu").predict(PAIRS)
    numpy.testing.assert_allclose(scored(folder, PAIRS, truncate=True).values, reference, atol=2e-5)


def test_a_causal_reranker_says_yes_or_no(tmp_path: Path) -> None:
    folder = save(tmp_path, "Qwen3ForCausalLM", **_HEADS)
    words = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    pairs = [("kopi", "kopi Gayo"), ("keyboard", "A cup of coffee")]
    made = scored(folder, pairs, instruction="Cari barang")
    for (query, document), value in zip(pairs, made.values, strict=True):
        text = (
            "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
            'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
            f"<Instruct>: Cari barang\n<Query>: {query}\n<Document>: {document}"
            "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
        )
        ids = torch.tensor([words.encode(text, add_special_tokens=False)])
        with torch.inference_mode():
            logits = model(ids).logits[0, -1]
        yes, no = (logits[words.convert_tokens_to_ids(word)] for word in ("yes", "no"))
        assert abs(float(torch.softmax(torch.stack([no, yes]), 0)[1]) - value) < 2e-5


@pytest.mark.parametrize(("kind", "activation"), [("BertModel", "gelu"), ("XLMRobertaModel", "gelu_new")])
def test_layers_are_fused_where_the_numbers_stay(kind: str, activation: str, tmp_path: Path) -> None:
    """A GELU of another form has its layers left as they are."""
    if (kernels := native_kernels()) is None:
        pytest.skip("there are no native kernels here")
    folder = add_sentence_files(save(tmp_path, kind, hidden_act=activation), _CLS)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    encoder = Encoder(model, 0, kernels)
    assert encoder.is_packed
    assert fuse_encoder_layers(model, kernels) == (2 if activation == "gelu" else 0)
    numpy.testing.assert_allclose(embedded(folder).vectors, expected(folder, normalize_embeddings=True), atol=2e-5)
