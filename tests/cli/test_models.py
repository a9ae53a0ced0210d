"""`tis models` and `tis download`, from a hub on this machine."""

import json
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.tis_process import TIS, environment, tis
from tests.engine.conftest import DEMO
from tests.engine.models.hub import REPO, hub_with
from tests.serving import served, settings_with
from tests.test_status import until
from tis.engine.models.hub_files import WANTED_FILES

pytestmark = [pytest.mark.slow, pytest.mark.long]

WANTED = {path.name for pattern in WANTED_FILES for path in Path(DEMO).glob(pattern)}
CATALOGUE = f"models:\n  shop: {{repo: {REPO}, aliases: [gpt-4o], revision: v1}}\n  talk: {{repo: echo}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "catalogue.yaml").write_text(CATALOGUE)
    return tmp_path


def variables(folder: Path, hub: str, **more: str) -> dict[str, str]:
    home = str(folder / "hub")
    return {"MODEL_CONFIG": "catalogue.yaml", "HF_ENDPOINT": hub, "HF_HOME": home, "HF_HUB_DISABLE_XET": "1", **more}


def listed(folder: Path, **settings: str) -> dict[str, dict[str, object]]:
    shown = tis("models", "--json", folder=folder, MODEL_CONFIG="catalogue.yaml", **settings)
    assert shown.returncode == 0, shown.stderr
    return {row["id"]: row for row in json.loads(shown.stdout)}


def test_a_model_is_downloaded_by_its_alias_and_then_listed_with_its_size(folder: Path) -> None:
    home = {"HF_HOME": str(folder / "hub")}
    assert listed(folder, **home)["shop"]["bytes"] is None
    with hub_with(Path(DEMO), extra={}) as hub:
        done = tis("download", "gpt-4o", folder=folder, **variables(folder, hub))
    assert done.returncode == 0, done.stderr
    assert "shop: downloading, 100 %" in done.stderr and "shop: 5 MiB in " in done.stderr
    row = listed(folder, **home)["shop"]
    assert row["complete"] and int(str(row["bytes"])) > 5 * 10**6
    table = tis("models", folder=folder, MODEL_CONFIG="catalogue.yaml", **home).stdout.splitlines()
    assert [line.split() for line in table if line.startswith(("MODEL", "shop"))] == [
        ["MODEL", "TASK", "ON", "DISK", "SERVER", "ALIASES"],
        ["shop", "chat", "5.22", "MiB", "-", "gpt-4o"],
    ]


def test_an_interrupted_download_goes_on_and_keeps_what_is_finished(folder: Path) -> None:
    asked: list[str] = []
    begun, goes_on = threading.Event(), threading.Event()

    def on_file(name: str) -> None:
        asked.append(name)
        if name == "model.safetensors":
            begun.set()
            goes_on.wait(30)

    with hub_with(Path(DEMO), extra={}, on_file=on_file) as hub:
        first = subprocess.Popen(
            [*TIS, "download", "shop"], cwd=folder, env=environment(**variables(folder, hub)), stderr=subprocess.PIPE
        )
        assert begun.wait(60)
        until(lambda: finished(folder) == WANTED - {"model.safetensors"})
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=20)
        goes_on.set()
        assert first.returncode == 130 and said.decode().endswith("Stopped.\n")
        kept = finished(folder)
        assert kept == WANTED - {"model.safetensors"}
        assert not list((folder / "hub").rglob("*.incomplete"))
        asked.clear()
        again = tis("download", "shop", folder=folder, **variables(folder, hub))
    assert again.returncode == 0, again.stderr
    assert not kept & set(asked), "a finished file was fetched again"
    assert listed(folder, HF_HOME=str(folder / "hub"))["shop"]["complete"]


def finished(folder: Path) -> set[str]:
    return {path.name for path in (folder / "hub").rglob("*") if path.is_symlink()}


def test_what_the_hub_does_not_have_is_one_line_and_the_others_are_fetched(folder: Path) -> None:
    with hub_with(Path(DEMO), extra={}) as hub:
        done = tis("download", "nobody/nothing", "shop", folder=folder, **variables(folder, hub))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == "Not downloaded: nobody/nothing."
    assert "shop: 5 MiB in " in done.stderr


@pytest.mark.parametrize("offline", [{"AUTO_DOWNLOAD_MODELS": "0"}, {"HF_HUB_OFFLINE": "1"}])
def test_a_server_that_may_not_download_ends_with_one_line(folder: Path, offline: dict[str, str]) -> None:
    with hub_with(Path(DEMO), extra={}) as hub:
        ended = tis("serve", folder=folder, **variables(folder, hub, MODELS="shop", **offline))
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    [line] = [line for line in ended.stderr.splitlines() if line.startswith("Cannot start:")]
    assert "not on this machine" in line and "tis download" in line and next(iter(offline)) in line


def test_models_shows_what_a_running_server_has(folder: Path) -> None:
    settings = settings_with(models="talk", model_repo_id="talk", model_config_path=str(folder / "catalogue.yaml"))
    with served(settings) as server:
        rows = listed(folder, PORT=server.url.rpartition(":")[2], HF_HOME=str(folder / "hub"))
    assert (rows["talk"]["server"] is not None, rows["shop"]["server"]) == (True, None)
