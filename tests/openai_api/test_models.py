"""GET /v1/models, and the model that a name selects."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, Served, served, settings_with


@pytest.fixture
def two_models(tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.yaml"
    path.write_text("models:\n  first: {repo: echo}\n  team/second: {repo: 'echo?tokens_per_second=0'}\n")
    return path


def statuses(names: list[str | None], **settings: object) -> list[tuple[int, str | None]]:
    """Status, and the model that answered, for each name."""
    with served(settings_with(**settings)) as server:
        answers = [httpx2.post(server.url + CHAT, json=said("x", model=name)) for name in names]
    return [(answer.status_code, answer.json().get("model")) for answer in answers]


def test_a_single_model_answers_to_any_name_and_gives_its_own() -> None:
    assert statuses([None, "qwen-local", "echo"]) == [(200, "echo")] * 3


def test_strict_means_404_for_any_name_but_its_own() -> None:
    assert statuses([None, "qwen-local", "echo"], strict_model="1") == [(200, "echo"), (404, None), (200, "echo")]


def test_of_several_models_the_name_decides(two_models: Path) -> None:
    several = {"model_repo_id": "first", "models": "team/second", "model_config_path": str(two_models)}
    names = [None, "team/second", "first", "qwen-local"]
    expected = [(200, "first"), (200, "team/second"), (200, "first")]
    assert statuses(names, **several) == [*expected, (404, None)]
    assert statuses(names, **several, strict_model="0") == [*expected, (200, "first")]


def test_all_are_listed_and_each_is_found(two_models: Path) -> None:
    settings = settings_with(model_repo_id="first", models="team/second", model_config_path=str(two_models))
    with served(settings) as server:
        listed = httpx2.get(f"{server.url}/v1/models").json()
        assert listed["object"] == "list" and [model["id"] for model in listed["data"]] == ["first", "team/second"]
        assert httpx2.get(f"{server.url}/v1/models/team/second").json() == listed["data"][1]
        assert httpx2.get(f"{server.url}/health").json()["modelId"] == "first"


def test_an_alias_selects_its_model_and_limits_are_of_one_model_alone(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(
        "models:\n  first: {repo: echo}\n"
        "  second: {repo: 'echo?thinks=0', aliases: [gpt-4o-mini], limits: {max_context_tokens: 20}}\n"
    )
    with served(settings_with(model_repo_id="first", models="second", model_config_path=str(path))) as server:
        answer = httpx2.post(server.url + CHAT, json=said("Halo", model="gpt-4o-mini", max_tokens=5)).json()
        assert (answer["model"], answer["choices"][0]["message"]["content"]) == ("second", "Halo")
        model = httpx2.get(f"{server.url}/v1/models/gpt-4o-mini").json()
        assert (model["id"], model["aliases"], model["max_model_len"]) == ("second", ["gpt-4o-mini"], 20)
        long = said("a text of more than twenty characters", max_tokens=5)
        statuses = [
            httpx2.post(server.url + CHAT, json={**long, "model": name}).status_code for name in ("first", "second")
        ]
        assert statuses == [200, 400]


DEMO_MODEL = {
    "object": "model",
    "owned_by": "local",
    "max_model_len": 32768,
    "modalities": {"input": ["text", "image", "video"], "output": ["text"]},
    "aliases": [],
    "parent": None,
    "capabilities": ["chat", "vision", "tools", "reasoning", "structured_outputs"],
}


@pytest.mark.model
def test_a_model_says_what_it_can_before_and_after_it_is_loaded(
    tmp_path: Path, sdk: Callable[[Served], OpenAI]
) -> None:
    folder = tmp_path / "Shop-Model"
    shutil.copytree(REPOSITORY / "models/demo", folder)
    os.utime(folder / "model.safetensors", (1_700_000_000, 1_700_000_000))
    expected = {"id": "Shop-Model", "created": 1_700_000_000, **DEMO_MODEL}
    with served(settings_with(model_repo_id=str(folder), load_wait_seconds=120)) as server:
        for state in ("unloaded", "ready"):
            assert httpx2.get(f"{server.url}/health").json()["models"][0]["state"] == state
            listed = httpx2.get(f"{server.url}/v1/models")
            now = {**expected, "status": "loaded" if state == "ready" else state}
            assert listed.json()["data"] == [now] and str(tmp_path) not in listed.text
            for name in ("Shop-Model", str(folder)):
                assert httpx2.get(f"{server.url}/v1/models/{name}").json() == now
            answer = httpx2.post(server.url + CHAT, json=said("Halo", model=str(folder), max_tokens=1), timeout=120)
            assert answer.json()["model"] == "Shop-Model" and str(tmp_path) not in answer.text
        [model] = sdk(server).models.list()
        assert (model.id, model.created) == ("Shop-Model", 1_700_000_000)


@pytest.mark.model
def test_a_model_without_tools_reasoning_and_pictures_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    shutil.copytree(REPOSITORY / "models/demo", folder)
    (folder / "preprocessor_config.json").unlink()
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    with served(settings_with(model_repo_id=str(folder), served_model_name="shop", max_context_tokens=512)) as server:
        [model] = httpx2.get(f"{server.url}/v1/models").json()["data"]
    assert (model["id"], model["max_model_len"]) == ("shop", 512)
    assert model["modalities"] == {"input": ["text"], "output": ["text"]}
    assert model["capabilities"] == ["chat", "structured_outputs"]


def test_the_echo_says_the_same_before_and_after_its_load() -> None:
    with served(settings_with()) as server:
        [before] = httpx2.get(f"{server.url}/v1/models").json()["data"]
        assert httpx2.post(server.url + CHAT, json=said("Halo")).status_code == 200
        [after] = httpx2.get(f"{server.url}/v1/models").json()["data"]
    assert (before.pop("status"), after.pop("status")) == ("unloaded", "loaded")
    assert before == after and before["max_model_len"] == 32768


@pytest.mark.parametrize("config", [None, "{", "[]", '{"max_position_embeddings": "many"}'])
def test_what_is_not_known_before_the_load_is_null(tmp_path: Path, config: str | None) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    repo = "nobody/nothing" if config is None else str(tmp_path)
    with served(settings_with(model_repo_id=repo)) as server:
        [model] = httpx2.get(f"{server.url}/v1/models").json()["data"]
    assert (model["max_model_len"], model["capabilities"]) == (None, ["chat"])
    assert model["modalities"]["input"] == ["text"] and isinstance(model["created"], int)


def test_an_unknown_model_is_told_in_the_usual_words(http: httpx2.Client) -> None:
    answer = http.get("/v1/models/gpt-9")
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "message": "The model `gpt-9` does not exist or you do not have access to it.",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }


@pytest.mark.parametrize(("path", "task"), [("/v1/rerank", "rerank"), ("/v1/embeddings", "embedding")])
def test_without_a_name_a_task_that_no_model_has_is_named(http: httpx2.Client, path: str, task: str) -> None:
    answer = http.post(path, json={"query": "a", "documents": ["b"], "input": "a"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert error["message"] == f"This server has no model for {task}: its catalogue needs one with that task."
