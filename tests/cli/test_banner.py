"""The lines of the banner."""

from pathlib import Path

import pytest

from tests.serving import settings_with
from tis.cli.banner import Banner
from tis.engine.models.model_status import ModelFootprint, ModelStatus

READY = ModelStatus("demo", "ready", footprint=ModelFootprint("cpu", "float32", 5 * 2**20, 65_536, 2**30))


def banner(model: ModelStatus = READY, **settings: object) -> str:
    lines = Banner(settings_with(**settings), [model]).lines()
    assert len(lines) <= 8
    return "\n".join(lines)


def test_it_shows_model_device_dtype_memory_and_addresses() -> None:
    shown = banner(port=4000)
    assert "demo: cpu, float32" in shown and "5 MiB for weights, up to 1.0 GiB for a cache of 65,536 tokens" in shown
    assert "http://127.0.0.1:4000/v1" in shown and "http://127.0.0.1:4000 in a browser" in shown


def test_it_shows_that_a_model_is_not_loaded_yet() -> None:
    assert "will be loaded at the first request" in banner(ModelStatus("demo", "unloaded"))


def test_keys_are_counted_and_never_shown() -> None:
    shown = banner(api_keys="sesame,simsim")
    assert "on: 2 keys" in shown and "sesame" not in shown


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_loopback_address_needs_no_keys(host: str) -> None:
    assert Banner(settings_with(host=host), [READY]).warning == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.com"])
def test_a_server_open_to_the_network_without_keys_is_a_warning(host: str) -> None:
    assert "Set API_KEYS" in banner(host=host)
    assert "Set API_KEYS" in Banner(settings_with(host=host), [READY]).warning
    assert Banner(settings_with(host=host, api_keys="sesame"), [READY]).warning == ""


def test_files_are_shown_by_their_absolute_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shown = banner(persist_sessions=True, database_url="sqlite:///./market.db")
    assert f"{tmp_path}/sessions.db" in shown and f"{tmp_path}/market.db" in shown


def test_the_password_of_a_database_is_not_shown() -> None:
    url = "postgresql://somebody:hidden@localhost/market"
    assert "hidden" not in banner(database_url=url, jwt_secret_key="0123456789abcdef" * 2)
