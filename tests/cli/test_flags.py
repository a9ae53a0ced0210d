"""Flags of `tis serve` are settings."""

import argparse
from functools import cache
from pathlib import Path

import pytest

from tis.cli.flags import add_flags, parsed_flags
from tis.setting_types import SettingsError, variable_name
from tis.settings import Settings


@cache
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_flags(made)
    return made


def settings(*flags: str, **variables: str) -> Settings:
    return Settings.from_env(variables, env_file=None, flags=parsed_flags(parser().parse_args(flags)))


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_a_flag_and_its_help_names_the_variable(name: str) -> None:
    [action] = [action for action in parser()._actions if action.dest == name]
    assert "--" + variable_name(name).lower().replace("_", "-") in action.option_strings
    assert f"[{variable_name(name)}" in str(action.help)


def test_help_has_a_heading_for_each_area() -> None:
    shown = parser().format_help()
    for heading in ("Server:", "Model:", "Generation:", "Images and video:", "Streams:", "Marketplace:", "Access:"):
        assert f"\n{heading}\n" in shown


def test_flags_have_the_names_that_other_servers_use() -> None:
    chosen = settings(
        *("models/demo", "--port", "8000", "--host", "0.0.0.0", "--api-key", "one", "--api-key", "two"),
        *("--device", "cpu", "--dtype", "float32", "--max-model-len", "2048", "--quantize", "int8"),
        *("--served-model-name", "shop", "--no-eager"),
    )
    assert (chosen.model_repo_id, chosen.port, chosen.host) == ("models/demo", 8000, "0.0.0.0")
    assert [key.get_secret_value() for key in chosen.api_keys] == ["one", "two"]
    assert (chosen.device_map, chosen.torch_dtype, chosen.max_context_tokens) == ("cpu", "float32", 2048)
    assert (chosen.quantize, chosen.served_model_name) == ("int8", "shop")
    assert chosen.eager_load_model is False and chosen.set_explicitly("eager_load_model")


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=1\nHOST=file\nLOG_LEVEL=error\n")
    flags = parsed_flags(parser().parse_args(["--port", "3"]))
    chosen = Settings.from_env({"PORT": "2", "HOST": "environment"}, tmp_path / ".env", flags)
    assert (chosen.port, chosen.host, chosen.log_level) == (3, "environment", "error")


def test_a_flag_wins_over_a_variable_with_another_name() -> None:
    assert settings("--max-media-mb", "7", MAX_REMOTE_IMAGE_BYTES="1048576").max_media_mb == 7


def test_absent_flags_set_nothing() -> None:
    assert settings().model_fields_set == set()


def test_a_bad_value_is_one_line_that_names_the_flag() -> None:
    with pytest.raises(SettingsError, match=r"^--port='many': .*1 to 65535") as refused:
        settings("--port", "many")
    assert "\n" not in str(refused.value)


def test_a_blank_key_is_refused_and_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"--api-key=\(hidden\)"):
        settings("--api-key", " ")


def test_a_model_given_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="once"):
        settings("models/demo", "--model", "echo")


@pytest.mark.parametrize("flag", ["--api-key", "--host", "--hf-token", "--model"])
def test_an_empty_flag_is_refused_instead_of_undoing_the_environment(flag: str) -> None:
    with pytest.raises(SettingsError, match=f"^{flag} is empty"):
        settings(flag, "", API_KEYS="sesame")
