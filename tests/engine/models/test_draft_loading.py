"""A draft model is loaded beside the model, its memory is counted, and one that cannot draft is refused."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import transformers

from tests.engine.batching.drafts import AlwaysDrafts, counts
from tests.engine.batching.grammars import make_folder
from tests.engine.batching.tiny import run, tokens
from tests.engine.conftest import DEMO
from tests.engine.cut_models import save_cut_demo
from tis.arguments.catalogue import served_models_of
from tis.arguments.loading import fetcher_of
from tis.engine.batching import choose_runner
from tis.engine.batching.limits import BatchLimits
from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import CatalogueEntry, CatalogueError
from tis.engine.models.draft_rules import why_other_vocabulary
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams
from tis.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cut_demo(tmp_path_factory.mktemp("cut") / "model")


def load(repo: str, draft: Path | None, limits: BatchLimits | None = None) -> LoadedModel:
    options = LoadOptions(batch=limits or BatchLimits(cache_tokens=4096))
    return load_model(repo, options, lambda stage, share: None, draft_model=str(draft) if draft else None)


def answers_of(model: LoadedModel, **how: Any) -> list[list[int]]:
    requests = []
    for seed, text in enumerate(("What is a keyboard?", "Halo!", "Berapa 2 + 3?")):
        ids = model.tokenizer.encode_chat(ChatPrompt([{"role": "user", "content": text}]))
        params = SamplingParams(**{"temperature": 0.0, "max_tokens": 24} | how)
        requests.append(Request(PreparedRequest("demo", "r1", model.tokenizer, ids, params, seed)))
    assert not run(model.new_runner(), requests, every=3).errors
    return [tokens(request) for request in requests]


def test_answers_are_the_same_and_the_memory_of_both_is_counted(
    demo: LoadedModel, cut: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_runner, "DraftPolicy", lambda share: AlwaysDrafts(4))
    alone, both = load(DEMO, None), load(DEMO, cut)
    before = counts()
    for how in ({}, {"temperature": 1.0, "ignore_eos": True}):
        assert answers_of(both, **how) == answers_of(demo, **how)
    assert counts()[0] > before[0] and counts()[1] > before[1]
    assert alone.footprint and both.footprint
    assert both.revision == alone.revision  # it changes no answer: what one began, the other resumes
    assert both.footprint.cache_tokens == alone.footprint.cache_tokens == 4096
    # Three of four layers, the same embedding.
    assert 1.6 < both.footprint.weight_bytes / alone.footprint.weight_bytes < 2
    assert both.footprint.cache_bytes == alone.footprint.cache_bytes * 7 / 4
    small = load(DEMO, cut, BatchLimits(memory_bytes=16 * 2**20)).footprint
    assert small and small.weight_bytes + small.cache_bytes <= 16 * 2**20


def test_integers_of_the_setting_are_made_of_both(cut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_runner, "DraftPolicy", lambda share: AlwaysDrafts(4))
    limits = BatchLimits(cache_tokens=4096, quantisation="int4")
    alone, both, plain = load(DEMO, None, limits), load(DEMO, cut, limits), load(DEMO, cut)
    before = counts()
    assert answers_of(both) == answers_of(alone) and counts()[1] > before[1]
    assert both.footprint and plain.footprint and both.footprint.weight_bytes < plain.footprint.weight_bytes / 2


def test_another_vocabulary_is_refused_before_weights_are_read(cut: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(cut, tmp_path / "other"))
    written = json.loads((other / "tokenizer.json").read_text())
    vocabulary = written["model"]["vocab"]
    first, second = sorted(vocabulary, key=vocabulary.__getitem__)[300:302]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (other / "tokenizer.json").write_text(json.dumps(written))
    (other / "model.safetensors").write_bytes(b"")
    with pytest.raises(LoadFailed, match=r"other has another vocabulary than the model: 2 of 2,0\d\d tokens, such as"):
        load(DEMO, other)


def test_which_vocabularies_are_the_same() -> None:
    ours = {"a": 0, "b": 1}
    assert why_other_vocabulary(ours, {"b": 1, "a": 0}) is None
    assert why_other_vocabulary(ours, {"a": 0, "b": 2}) == "1 of 2 tokens, such as 'b' with the number 1"
    assert why_other_vocabulary(ours, {"a": 0}) == "1 of 2 tokens, such as 'b' with the number 1"
    assert why_other_vocabulary(ours, {**ours, "c": 2}) == "it has 1 tokens more"


def test_a_larger_model_is_refused(cut: Path) -> None:
    with pytest.raises(LoadFailed, match="a draft model is the smaller one"):
        load(str(cut), Path(DEMO))


def test_a_model_may_draft_for_itself(demo: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_runner, "DraftPolicy", lambda share: AlwaysDrafts(4))
    before = counts()
    expected = answers_of(demo)
    assert answers_of(load(DEMO, Path(DEMO))) == expected
    drafted, accepted = (now - then for now, then in zip(counts(), before, strict=True))
    assert drafted and accepted >= 0.9 * drafted  # but for what is drafted behind an end


def test_kinds_that_cannot_draft_and_models_that_cannot_check_are_refused(tmp_path: Path) -> None:
    states = make_folder(tmp_path / "states", "Lfm2")
    plain = make_folder(tmp_path / "plain", "Llama bias tied")
    turns = tmp_path / "turns"
    made = transformers.BloomForCausalLM(transformers.BloomConfig(hidden_size=32, n_layer=1, n_head=2, vocab_size=2048))
    made.save_pretrained(turns)
    transformers.AutoTokenizer.from_pretrained(DEMO).save_pretrained(turns)
    large = partial(load, DEMO)
    cases: list[tuple[Callable[[], LoadedModel], str]] = [
        (lambda: large(states), "cannot draft: its layers keep states"),
        (lambda: large(turns), "cannot draft: .*replaced"),
        (lambda: load(str(states), states), "its layers keep states"),
    ]
    for attempt, words in cases:
        with pytest.raises(LoadFailed, match=words):
            attempt()
    for main, words in ((states, "layers of this model keep states"), (turns, "cannot be batched")):
        monkey = pytest.MonkeyPatch()
        monkey.setattr("tis.engine.models.draft_rules.weights_bytes_of", lambda folder: None)
        with pytest.raises(LoadFailed, match=f"DRAFT_MODEL does not apply: .*{words}"):
            load(str(main), plain)
        monkey.undo()


def _settings(tmp_path: Path, catalogue: str, **variables: str) -> Settings:
    (tmp_path / "models.yaml").write_text(catalogue)
    return Settings.from_env({"MODEL_CONFIG": str(tmp_path / "models.yaml"), **variables}, env_file=None)


def test_the_setting_is_for_the_main_model_and_the_catalogue_for_any(tmp_path: Path, cut: Path) -> None:
    catalogue = f"models:\n  a: {{repo: {DEMO}}}\n  b: {{repo: {DEMO}, draft_model: {cut}}}\n"
    settings = _settings(tmp_path, catalogue, MODELS="a,b", DRAFT_MODEL=str(cut), MODEL_MEMORY_MB="200")
    entries: dict[str, CatalogueEntry] = {entry.id: entry for entry in served_models_of(settings)}
    assert entries["a"].draft_model == entries["b"].draft_model == str(cut)
    need = fetcher_of(settings)(entries["a"], lambda stage, share: None)
    weights = [(Path(folder) / "model.safetensors").stat().st_size for folder in (DEMO, cut)]
    assert need.num_bytes == sum(weights)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"MODEL_REPO_ID": "echo", "DRAFT_MODEL": DEMO}, "DRAFT_MODEL is for models of weights"),
        ({"MODEL_REPO_ID": "vectors", "DRAFT_MODEL": DEMO}, "DRAFT_MODEL is for models of weights"),
        ({"MODEL_REPO_ID": DEMO, "DRAFT_MODEL": "./nowhere"}, "no folder './nowhere'"),
        ({"MODEL_REPO_ID": DEMO, "DRAFT_MODEL": "a/b", "AUTO_DOWNLOAD_MODELS": "0"}, "a/b is not on this machine"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    settings = _settings(
        tmp_path, "models:\n  vectors: {repo: ./models/demo-embedding, task: embedding}\n", **variables
    )
    with pytest.raises(CatalogueError, match=words):
        served_models_of(settings)


def test_an_entry_of_another_task_has_no_draft_model(tmp_path: Path) -> None:
    settings = _settings(tmp_path, "models:\n  a: {repo: ./x, task: rerank, draft_model: ./y}\n", MODELS="a")
    with pytest.raises(CatalogueError, match="a has a draft_model, which is for the task chat"):
        served_models_of(settings)
