"""`tis keys`: adds, lists and revokes the keys of a file."""

import stat
from pathlib import Path

import pytest

from tis.cli import keys
from tis.cli.main import parser
from tis.http.api_keys import digest_of
from tis.http.key_file import read_keys


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("API_KEYS_FILE", raising=False)


def tis_keys(*arguments: str) -> None:
    keys.run(parser().parse_args(["keys", *arguments]))


def refusal(*arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        tis_keys(*arguments)
    assert isinstance(ended.value.code, str) and "\n" not in ended.value.code
    return ended.value.code


def test_keys_are_added_listed_and_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api-keys.yaml"
    tis_keys("add", "web", "--models", "demo, other", "--share", "0.25", "--expires", "30d")
    key = capsys.readouterr().out.strip()
    assert key.startswith("sk-tis-") and "\n" not in key
    [read] = read_keys(path)
    assert (read.digest, read.models) == (digest_of(key), frozenset({"demo", "other"}))
    assert key not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600

    monkeypatch.setenv("API_KEYS_FILE", str(path))
    tis_keys("list")
    listed = capsys.readouterr().out
    assert "web" in listed and "demo,other" in listed and "0.25" in listed and read.digest.hex() not in listed

    assert "already" in refusal("add", "web")
    tis_keys("revoke", "web")
    assert read_keys(path) == [] and [one.name for one in tmp_path.iterdir()] == [path.name]


def test_two_commands_at_once_lose_no_key(tmp_path: Path) -> None:
    (tmp_path / ".api-keys.yaml.lock").touch()
    assert "another `tis keys`" in refusal("add", "web")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("add", "a b"), "name"),
        (("add", "admin"), "taken"),
        (("add", "web", "--expires", "soon"), "no date"),
        (("add", "web", "--share", "2"), "share"),
        (("revoke", "nobody"), "cannot be read"),
        (("add", "web", "--file", "no/such/folder.yaml"), "cannot be written"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    assert why in refusal(*arguments)
    assert not list(tmp_path.iterdir())
