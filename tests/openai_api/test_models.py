from pathlib import Path

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with


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


def test_an_unknown_model_is_told_in_the_usual_words(http: httpx2.Client) -> None:
    answer = http.get("/v1/models/gpt-9")
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "message": "The model `gpt-9` does not exist or you do not have access to it.",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
