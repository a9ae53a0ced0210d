"""Loads models from folders, and refuses unusable ones."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.engine.batching.tiny import run, tokens
from tests.engine.conftest import DEMO
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.errors import LoadFailed
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams
from tis.errors import BadRequest


def load(repo: str, **options: bool) -> LoadedModel:
    return load_model(repo, LoadOptions(**options), lambda stage, progress: None)  # type: ignore[arg-type]


def answer_of(model: LoadedModel, prompt_ids: list[int] | None = None) -> list[int]:
    question = ChatPrompt([{"role": "user", "content": "What is a keyboard?"}])
    prompt_ids = prompt_ids or model.tokenizer.encode_chat(question)
    params = SamplingParams(temperature=0, max_tokens=8)
    request = Request(PreparedRequest("demo", "r1", model.tokenizer, prompt_ids, params, 1))
    assert not run(model.new_runner(), [request]).errors
    assert len(tokens(request)) > 1
    return tokens(request)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO, tmp_path / "model"))


def rewrite(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.model
def test_a_loaded_model_has_its_context_length_and_eos_tokens(demo: LoadedModel) -> None:
    assert demo.context_length == 32768 and demo.generation_defaults == {"temperature": 0.0}
    assert len(demo.tokenizer.eos_ids) == 2


@pytest.mark.model
def test_defaults_are_the_valid_ones_of_the_generation_config(copied: Path) -> None:
    configured = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 7, "min_p": None}
    rewrite(copied / "generation_config.json", **configured)
    assert load(str(copied)).generation_defaults == {"temperature": 0.6, "top_k": 20}


@pytest.mark.model
def test_a_template_in_a_file_of_its_own_is_found(copied: Path) -> None:
    template = (copied / "chat_template.jinja").read_text()
    (copied / "chat_template.jinja").unlink()
    (copied / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    assert load(str(copied)).tokenizer._tokenizer.chat_template == template  # type: ignore[attr-defined]


@pytest.mark.model
def test_weights_are_read_again_where_preparing_them_fails(demo: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> int:
        raise AssertionError("an injected fault")

    stages: list[str] = []
    monkeypatch.setattr("tis.engine.batching.choose_runner.pack_weights", fail)
    loaded = load_model(DEMO, LoadOptions(), lambda stage, progress: stages.append(stage))
    assert stages.count("preparing the weights") == 2
    assert isinstance(loaded.new_runner(), BatchRunner)
    assert answer_of(loaded) == answer_of(demo)


@pytest.mark.model
def test_files_beside_the_weights_may_be_damaged(copied: Path, caplog: pytest.LogCaptureFixture) -> None:
    (copied / "chat_template.jinja").unlink()
    (copied / "chat_template.json").write_text("{")
    (copied / "generation_config.json").write_text("[")
    (copied / "preprocessor_config.json").write_text("{")
    loaded = load(str(copied))
    assert loaded.generation_defaults == {} and loaded.vision is None
    with pytest.raises(BadRequest, match="no chat template"):
        loaded.tokenizer.encode_chat(ChatPrompt([{"role": "user", "content": "Hello"}]))
    assert answer_of(loaded, loaded.tokenizer.encode_text("What is"))
    for missing in ("its recommended sampling", "the template of its own file", "image processor"):
        assert sum(missing in message for message in caplog.messages) == 1


@pytest.mark.model
def test_a_model_of_unknown_size_answers(demo: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> int:
        raise AssertionError("an injected fault")

    monkeypatch.setattr("transformers.PreTrainedModel.get_memory_footprint", fail)
    monkeypatch.setattr("tis.engine.text.hf_tokenizer.find_reasoning_tokens", fail)
    loaded = load(DEMO)
    assert loaded.footprint and loaded.footprint.weight_bytes == 0 and loaded.reasoning_tokens is None
    assert answer_of(loaded) == answer_of(demo)


def test_weights_in_a_format_that_can_run_code_are_not_read(copied: Path) -> None:
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        load(str(copied))


def test_a_model_without_text_generation_is_refused(copied: Path) -> None:
    (copied / "config.json").write_text(json.dumps({"model_type": "vit"}))
    with pytest.raises(LoadFailed, match="vit"):
        load(str(copied))


@pytest.mark.parametrize("repo", ["./nowhere", "/nowhere/at/all", "a/b/c"])
def test_a_missing_folder_is_an_error_before_any_work(repo: str) -> None:
    stages: list[str] = []
    with pytest.raises(LoadFailed, match="no folder"):
        load_model(repo, LoadOptions(), lambda stage, progress: stages.append(stage))
    assert stages == []


def test_4_bit_without_cuda_is_an_error() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(LoadFailed, match="LOAD_IN_4BIT=1 needs a CUDA device"):
        load(DEMO, load_in_4bit=True)
