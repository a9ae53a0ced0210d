"""A model folder with a FIFO, a socket or a device in it is refused at once: to open one may wait for ever."""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.engine.conftest import DEMO
from tis.arguments.loading import fetcher_of
from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import describe_unloaded
from tis.engine.models.hub_files import HubSource, find_folder
from tis.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")

_MAX_SECONDS = 60  # a machine may be busy; what hangs takes for ever


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        before = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            one.bind(path.name)
        finally:
            os.chdir(before)


def make_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": lambda path: os.mkfifo(path),
    "socket": make_socket,
    "device": make_link_to_a_device,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copied = tmp_path / "model"
    copied.mkdir()
    for path in Path(DEMO).iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copy(path, copied)
    return copied


@pytest.fixture
def at_once() -> Iterator[Callable[[Callable[[], object]], object]]:
    pool = ThreadPoolExecutor(1)
    yield lambda work: pool.submit(work).result(timeout=_MAX_SECONDS)
    pool.shutdown(wait=False, cancel_futures=True)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "1_Pooling/config.json"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_with_one_is_refused_by_name(
    folder: Path, kind: str, name: str, at_once: Callable[[Callable[[], object]], object]
) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    with pytest.raises(LoadFailed, match=f"{name} in model is a FIFO, a socket or a device"):
        at_once(lambda: find_folder(str(folder), HubSource(), lambda stage, share: None))
    fetch = fetcher_of(Settings(model_memory_mb=1000))
    with pytest.raises(LoadFailed, match=f"{name} in model"):
        at_once(lambda: fetch(CatalogueEntry("m", str(folder)), lambda stage, share: None))


@pytest.mark.parametrize("name", ["config.json", "chat_template.jinja"])
def test_a_model_that_is_not_loaded_is_described_without_it(
    folder: Path, name: str, at_once: Callable[[Callable[[], object]], object]
) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert at_once(lambda: describe_unloaded(str(folder)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_gguf_file_that_is_none_is_refused(
    tmp_path: Path, kind: str, at_once: Callable[[Callable[[], object]], object]
) -> None:
    path = tmp_path / "model.gguf"
    KINDS[kind](path)
    with pytest.raises(LoadFailed, match="There is no file"):
        at_once(lambda: find_folder(str(path), HubSource(), lambda stage, share: None))
    assert at_once(lambda: describe_unloaded(str(path)))


def test_files_behind_links_are_files(folder: Path) -> None:
    (folder / "model.safetensors").symlink_to(Path(DEMO) / "model.safetensors")
    (folder / "gone.json").symlink_to(folder / "nowhere")
    assert find_folder(str(folder), HubSource(), lambda stage, share: None) == folder
