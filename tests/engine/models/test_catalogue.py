from pathlib import Path

import pytest

from tests.serving import REPOSITORY
from tis.arguments.catalogue import served_models_of
from tis.engine.models.catalogue import CatalogueEntry, CatalogueError, read_catalogue, select_served
from tis.engine.models.entry_fields import EntryLimits
from tis.settings import Settings

ENTRIES = [CatalogueEntry("small", "models/small"), CatalogueEntry("hub/big", "hub/big")]


def read(tmp_path: Path, text: str) -> list[CatalogueEntry]:
    path = tmp_path / "catalogue.yaml"
    path.write_text(text)
    return read_catalogue(path)


def test_the_bundled_catalogue_has_the_demo_and_the_default_model() -> None:
    ids = [entry.id for entry in read_catalogue(REPOSITORY / "configs/model_config.yaml")]
    assert {"demo", "Qwen/Qwen3-VL-2B-Thinking"} <= set(ids)


def test_an_entry_needs_nothing_but_its_name(tmp_path: Path) -> None:
    assert read(tmp_path, "models:\n  hub/big:\n") == [CatalogueEntry("hub/big", "hub/big")]


@pytest.mark.parametrize("wrong", ["-1", "many", "1.5", "true"])
def test_an_entry_may_declare_its_memory(tmp_path: Path, wrong: str) -> None:
    [entry] = read(tmp_path, "models: {a: {memory_mb: 3000}}")
    assert entry.memory_mb == 3000
    with pytest.raises(CatalogueError, match="memory_mb of a is a whole number of MiB"):
        read(tmp_path, f"models: {{a: {{memory_mb: {wrong}}}}}")


def test_an_entry_may_set_the_tool_format(tmp_path: Path) -> None:
    [entry] = read(tmp_path, "models: {a: {tool_format: llama}}")
    assert entry.tool_format == "llama"
    with pytest.raises(CatalogueError, match="tool_format of a is one of hermes, llama, mistral, json"):
        read(tmp_path, "models: {a: {tool_format: smoke}}")


def test_an_entry_may_have_everything_that_is_documented(tmp_path: Path) -> None:
    [entry] = read(
        tmp_path,
        """
models:
  shop:
    repo: intfloat/some
    revision: v1.0
    task: embedding
    aliases: [text-embedding-3-small, "Shop embeddings"]
    dtype: float32
    pooling: cls
    reasoning_format: none
    limits: {max_context_tokens: 512, max_queue_size: 4}
    memory_mb: 900
""",
    )
    assert (entry.revision, entry.dtype, entry.pooling, entry.memory_mb) == ("v1.0", "float32", "cls", 900)
    assert entry.limits == EntryLimits(max_context_tokens=512, max_queue_size=4)
    assert all(entry.is_called(name) for name in ("shop", "intfloat/some", "Shop embeddings"))
    assert not entry.is_called("other") and not entry.is_called(None)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{revision: 1.0}", "revision of a is a branch"),
        ("{revision: ../../etc}", "revision of a is a branch"),
        ("{aliases: gpt-4o}", "aliases of a are a list"),
        ("{dtype: int4}", "dtype of a is one of auto, float32"),
        ("{pooling: cls}", "pooling of a is for the task embedding"),
        ("{task: embedding, pooling: best}", "pooling of a is one of cls, max"),
        ("{limits: {max_tokens: 1}}", "limits of a may have max_context_tokens"),
        ("{limits: {max_queue_size: 0}}", "limits of a are whole numbers above 0"),
        ("{repo: 5}", "repo of a is a text"),
        ("{task: transcription, handler: a.B}", "a has a handler, which the task transcription does not take"),
        ("{task: speech, handler: a.B}", "a has a handler, which the task speech does not take"),
        ("{voices: {ani: 1}}", "a has voices or a vocoder, which are for the task speech"),
        ("{task: speech, voices: [ani]}", "voices of a map the name of each to the number"),
        ("{task: speech, voices: {ani: 1.5}}", "voices of a map the name of each to the number"),
        ("{task: speech, vocoder: 3}", "vocoder of a is a text"),
        ("{task: painting}", "task of a is one of chat, embedding, rerank, transcription"),
    ],
)
def test_a_broken_entry_is_one_line_that_names_it(tmp_path: Path, entry: str, words: str) -> None:
    with pytest.raises(CatalogueError, match=words) as refused:
        read(tmp_path, f"models: {{a: {entry}}}")
    assert "\n" not in str(refused.value)


def test_an_alias_belongs_to_one_model(tmp_path: Path) -> None:
    for text in ("{a: {aliases: [x]}, b: {aliases: [x]}}", "{a: {aliases: [b]}, b: {}}"):
        with pytest.raises(CatalogueError, match="the alias . of . is a name of"):
            read(tmp_path, f"models: {text}")


def test_models_alone_choose_what_is_served_and_model_repo_id_comes_first(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("models: {one: {repo: echo, aliases: [uno]}, two: {repo: 'echo?thinks=1'}}")
    path = str(tmp_path / "c.yaml")

    def served_ids(**variables: str) -> list[str]:
        settings = Settings.from_env({"MODEL_CONFIG": path, **variables}, env_file=None)
        return [entry.id for entry in served_models_of(settings)]

    assert served_ids(MODELS="two,uno") == ["two", "one"]
    assert served_ids(MODELS="two", MODEL_REPO_ID="one") == ["one", "two"]
    assert served_ids(MODEL_REPO_ID="uno") == ["one"]
    assert served_ids() == ["Qwen/Qwen3-VL-2B-Thinking"]
    with pytest.raises(CatalogueError, match="MODELS names 'three'"):
        served_ids(MODELS="three,one")


@pytest.mark.parametrize("name", ["none.yaml", "."])
def test_an_unreadable_catalogue_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(CatalogueError, match="cannot be read"):
        read_catalogue(tmp_path / name)


def test_defaults_are_converted_to_their_types(tmp_path: Path) -> None:
    [entry] = read(tmp_path, "models: {a: {defaults: {stop: [x], logit_bias: {'5': 1}, temperature: 1}}}")
    assert entry.defaults == {"stop": ("x",), "logit_bias": {5: 1.0}, "temperature": 1.0}


@pytest.mark.parametrize(
    "text",
    [
        "models: [",
        "[]",
        "models: []",
        "models: {a: 5}",
        "models: {a: {colour: red}}",
        "models: {a: {defaults: {temperature: 9}}}",
        "models: {a: {defaults: {temperature: warm}}}",
        "models: {a: {defaults: {made_up: 1}}}",
        "models: {a: {defaults: 3}}",
        "models: {a: {defaults: {stop_token_ids: 5}}}",
        "models: {a: {defaults: {seed: x}}}",
        "models: {a: {defaults: {max_tokens: 1.5}}}",
    ],
)
def test_an_error_is_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("main", "found"), [("small", "small"), ("models/small", "small"), ("any/other", "any/other")])
def test_the_main_model_is_found_by_id_or_repository_or_is_its_own_entry(main: str, found: str) -> None:
    assert [entry.id for entry in select_served(ENTRIES, main)] == [found]


def test_further_models_come_from_the_catalogue_once_each() -> None:
    assert [entry.id for entry in select_served(ENTRIES, "small", ["hub/big", "small"])] == ["small", "hub/big"]
    with pytest.raises(CatalogueError, match="nobody"):
        select_served(ENTRIES, "small", ["nobody"])


@pytest.mark.parametrize("main", ["small", "./models/small", "models/small"])
def test_a_folder_of_the_catalogue_is_found_with_and_without_its_dot(main: str) -> None:
    entry = CatalogueEntry("small", "./models/small")
    assert select_served([entry], main) == [entry]


@pytest.mark.parametrize(
    ("main", "name"),
    [
        ("/srv/models/Qwen3", "Qwen3"),
        ("./here/Qwen3/", "Qwen3"),
        ("~/Qwen3", "Qwen3"),
        ("a/b/Qwen3", "Qwen3"),
        ("models/../models/demo", "demo"),
        ("C:\\models\\Qwen3", "Qwen3"),
        ("models/demo", "demo"),
        ("hub/other", "hub/other"),
        ("gpt2", "gpt2"),
        ("echo?tokens_per_second=5", "echo?tokens_per_second=5"),
    ],
)
def test_the_id_of_a_folder_is_its_name_and_never_its_path(main: str, name: str) -> None:
    assert select_served([], main) == [CatalogueEntry(name, main)]


def test_a_folder_with_the_name_of_another_model_needs_an_id_of_its_own() -> None:
    with pytest.raises(CatalogueError, match="without SERVED_MODEL_NAME"):
        select_served(ENTRIES, "/srv/small", ["small"])
    assert [entry.id for entry in select_served(ENTRIES, "/srv/small", ["small"], "shop")] == ["shop", "small"]


def test_the_main_model_may_have_another_id_for_clients() -> None:
    assert [entry.id for entry in select_served(ENTRIES, "small", ["small", "hub/big"], "shop")] == ["shop", "hub/big"]
    with pytest.raises(CatalogueError, match="SERVED_MODEL_NAME"):
        select_served(ENTRIES, "small", ["hub/big"], "hub/big")
