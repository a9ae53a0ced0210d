"""Entries with an upstream: the example of docs/upstreams.md as it is printed, and what is wrong with others."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, Served, served, settings_with
from tests.test_status import until
from tests.upstream.gateway import client_of
from tis.arguments.catalogue import served_models_of
from tis.arguments.secrets import upstream_keys_of
from tis.chat.structured_answer import StructuredAnswers
from tis.engine.models.catalogue import SEE_VIDEOS, CatalogueError, read_catalogue
from tis.engine.models.entry_fields import UpstreamSeconds
from tis.settings import Settings
from tis.upstream.kinds import ABILITIES

PAGE = (REPOSITORY / "docs" / "upstreams.md").read_text(encoding="utf-8")


def catalogue(folder: Path, entry: dict[str, Any]) -> Path:
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump({"models": {"far": entry}}))
    return path


def test_the_example_of_the_page_serves(echo_server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example, *others = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for port in (5, 6):
        example = example.replace(f"http://10.0.0.{port}:8000", echo_server.url, 1)
    example = example.replace("Qwen/Qwen3-4B-Instruct-2507", "echo").replace(f", {echo_server.url}/v1]", "]")
    path = tmp_path / "models.yaml"
    for other in others:
        path.write_text(other)
        assert all(entry.upstream for entry in read_catalogue(path))
    path.write_text(example)
    monkeypatch.setenv("VLLM_KEY", "sk-test")
    with served(settings_with(model_config_path=str(path), model_repo_id="shop-chat")) as server:
        with client_of(server) as client:
            answer = client.post(CHAT, json=said("Halo", model="gpt-4o-mini"))
            assert answer.json()["choices"][0]["message"]["content"] == "Halo"
            assert answer.json()["model"] == "shop-chat"
            until(lambda: client.get("/ready").status_code == 200)


def test_models_of_both_sorts_are_served_side_by_side(echo_server: Served, tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    far = {"upstream": f"{echo_server.url}/v1", "upstream_model": "echo", "upstream_kind": "tis"}
    path.write_text(yaml.safe_dump({"models": {"far": far, "near": {"repo": "echo"}}}))
    with served(settings_with(model_config_path=str(path), model_repo_id="near", models="far")) as server:
        with client_of(server) as client:
            for model in ("near", "far"):
                answer = client.post(CHAT, json=said("Halo", model=model)).json()
                assert (answer["model"], answer["choices"][0]["message"]["content"]) == (model, "Halo")
            assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["near", "far"]
            assert [one["id"] for one in client.get("/health").json()["models"]] == ["near", "far"]


def test_the_table_of_kinds_says_what_the_code_does() -> None:
    found = re.findall(r"^\|(.*?)\|(.*)\|$", PAGE.partition("## What each kind")[2], re.MULTILINE)
    rows = {name.strip(): cells for name, cells in found}
    kinds = [one.strip(" `") for one in rows.pop("").split("|")]
    assert kinds == list(ABILITIES)
    said_of = {name: [bool(one.strip()) for one in cells.split("|")] for name, cells in rows.items()}
    for names in (
        "top_k min_p repetition_penalty",
        "min_tokens stop_token_ids",
        "ignore_eos",
        "n",
        "logit_bias",
        "presence_penalty frequency_penalty",
    ):
        row = said_of[", ".join(f"`{name}`" for name in names.split())]
        assert row == [all(name in one.sampling for name in names.split()) for one in ABILITIES.values()]
    assert said_of["JSON schema"] == [one.takes_formats for one in ABILITIES.values()]
    assert said_of["`logprobs`"] == ["top_logprobs" in one.sampling for one in ABILITIES.values()]
    assert said_of["regex, choice, grammar"] == [bool(one.grammars) for one in ABILITIES.values()]
    assert said_of["`chat_template_kwargs`"] == [one.takes_template_options for one in ABILITIES.values()]
    assert said_of["`reasoning_effort`"] == [one.takes_effort for one in ABILITIES.values()]
    assert said_of["`thinking_token_budget`"] == ["thinking_budget" in one.sampling for one in ABILITIES.values()]
    assert said_of["goes on with an answer of another"] == [one.continues for one in ABILITIES.values()]
    assert said_of["`tool_choice`: a call, whichever"] == [one.forces_calls for one in ABILITIES.values()]
    assert said_of["texts that are too long are cut"] == [bool(one.cuts_texts) for one in ABILITIES.values()]
    take_urls = [one.takes_media_urls for one in ABILITIES.values()]
    assert said_of["videos, and sounds of any form (as `audio_url`)"] == take_urls
    assert [kind in SEE_VIDEOS for kind in kinds] == take_urls
    assert said_of["prompts are counted before"] == [one.counts_chats for one in ABILITIES.values()]


def test_the_page_names_the_seconds_as_they_are() -> None:
    seconds = UpstreamSeconds()
    for name in ("connect", "next_token"):
        assert f"`{name}` ({getattr(seconds, name):g})" in PAGE
    for name in ("first_token", "answer", "probe"):
        assert re.search(rf"`{name}` \({getattr(seconds, name):g}[;,]", PAGE)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"upstream": []}, "a URL, or a list"),
        ({"upstream": ["ftp://a/v1"]}, "no http"),
        ({"upstream": ["http://me:secret@a/v1"]}, "no http"),
        ({"upstream": [7]}, "no http"),
        ({"upstream": ["http://a/v1", "http://a/v1"]}, "twice"),
        ({"upstream": "http://a/v1", "upstream_kind": "tgi"}, "upstream_kind of far is one of"),
        ({"upstream": "http://a/v1", "upstream_seconds": {"connect": 0}}, "above 0"),
        ({"upstream": "http://a/v1", "upstream_seconds": {"all": 1}}, "may have connect"),
        ({"upstream": "http://a/v1", "repo": "b"}, "so repo is not for it"),
        ({"upstream": "http://a/v1", "handler": "a.B"}, "so handler is not for it"),
        ({"upstream": "http://a/v1", "task": "speech", "vocoder": "b"}, "so vocoder is not for it"),
        ({"upstream": "http://a/v1", "upstream_key_env": "A", "upstream_key_file": "b"}, "one is enough"),
        ({"repo": "b", "upstream_model": "c"}, "for entries with an upstream"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_in_one_line(entry: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=re.escape(words)) as refused:
        read_catalogue(catalogue(tmp_path, entry))
    assert "\n" not in str(refused.value) and "secret" not in str(refused.value)


def test_a_key_comes_from_a_file_or_a_variable_and_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys(**fields: str) -> dict[str, str]:
        path = catalogue(tmp_path, {"upstream": "http://a/v1", **fields})
        settings = Settings.model_validate({"model_config_path": str(path), "model_repo_id": "far"})
        return upstream_keys_of(served_models_of(settings))

    (tmp_path / "key").write_text("sk-file\n")
    assert keys() == {}
    assert keys(upstream_key_file=str(tmp_path / "key")) == {"far": "sk-file"}
    monkeypatch.setenv("FAR_KEY", "sk-variable")
    assert keys(upstream_key_env="FAR_KEY") == {"far": "sk-variable"}
    monkeypatch.setenv("FAR_KEY", "sk secret")
    for fields in ({"upstream_key_env": "FAR_KEY"}, {"upstream_key_env": "NO_KEY"}, {"upstream_key_file": "/none"}):
        with pytest.raises(CatalogueError, match="the upstream of far") as refused:
            keys(**fields)
        assert "secret" not in str(refused.value)


@pytest.mark.anyio
async def test_the_assistant_asks_another_machine_only_if_it_is_named(echo_server: Served, tmp_path: Path) -> None:
    path = catalogue(tmp_path, {"upstream": f"{echo_server.url}/v1", "upstream_model": "echo"})
    with served(settings_with(model_config_path=str(path), model_repo_id="far")) as server:
        services = server.app.state.services
        assert await StructuredAnswers(services).ready_model() is None
        assert await StructuredAnswers(services, "far").ready_model() == "far"
