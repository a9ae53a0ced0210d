"""What the settings and the catalogue say of memory, as the engine gets it."""

from pathlib import Path
from typing import Any

import pytest

from tis.arguments import loading
from tis.arguments.catalogue import served_models_of
from tis.arguments.loading import fetcher_of, loader_of
from tis.engine.batching.limits import BatchLimits
from tis.engine.models.catalogue import CatalogueEntry
from tis.settings import Settings

MIB = 2**20


def folder_of(path: Path, num_mib: int, name: str = "model.safetensors") -> str:
    path.mkdir()
    with (path / name).open("wb") as file:
        file.truncate(num_mib * MIB)  # no bytes on the disk
    (path / "config.json").write_text('{"model_type": "qwen3"}')
    return str(path)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    places = {"base": folder_of(tmp_path / "base", 60), "other": folder_of(tmp_path / "other", 30)}
    places |= {name: folder_of(tmp_path / name, 5, "adapter_model.safetensors") for name in ("one", "two")}
    (tmp_path / "models.yaml").write_text(
        f"""
models:
  base: {{repo: {places["base"]}, adapters: {{one: {places["one"]}, two: {places["two"]}}}}}
  other: {{repo: {places["other"]}, limits: {{cache_tokens: 4096, max_batch_size: 3}}, dtype: float32}}
"""
    )
    variables = {"MODEL_CONFIG": str(tmp_path / "models.yaml"), "MODELS": "base,other", "MODEL_MEMORY_MB": "200"}
    return Settings.from_env(variables, env_file=None)


def entry_of(settings: Settings, name: str) -> CatalogueEntry:
    [entry] = [one for one in served_models_of(settings) if one.id == name]
    return entry


def test_a_model_is_weighed_with_its_adapters(settings: Settings) -> None:
    fetch = fetcher_of(settings)
    need = fetch(entry_of(settings, "base"), lambda stage, share: None)
    assert (need.num_bytes, need.limit_bytes) == (70 * MIB, 200 * MIB)
    assert fetch(entry_of(settings, "other"), lambda stage, share: None).num_bytes == 30 * MIB


def test_adapters_take_no_share_of_the_memory_and_limits_are_of_their_model(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def load_model(repo: str, options: Any, *others: Any) -> None:
        asked[Path(repo).name] = options

    monkeypatch.setattr(loading, "load_model", load_model)
    load = loader_of(settings)
    for name in ("base", "other"):
        load(entry_of(settings, name), lambda stage, share: None)
    base, other = asked["base"].batch, asked["other"].batch
    assert (base.num_models, base.bytes_of_others, base.limit_bytes) == (2, 30 * MIB, 200 * MIB)
    assert other.bytes_of_others == 60 * MIB
    assert (other.cache_tokens, other.max_running, asked["other"].dtype) == (4096, 3, "float32")
    assert (base.cache_tokens, base.max_running) == (0, BatchLimits().max_running)
    assert not asked["base"].may_download  # that was before
