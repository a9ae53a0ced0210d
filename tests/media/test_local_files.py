"""Files of the machine that requests may name."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.media.loading import load, refused
from tests.media.pictures import a_picture

pytestmark = pytest.mark.anyio
PNG = a_picture()


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    """A folder that is open to requests, beside one that is not."""
    (tmp_path / "open" / "inner").mkdir(parents=True)
    (tmp_path / "closed").mkdir()
    for place in ("open/a.png", "open/inner/b.png", "closed/secret.png"):
        (tmp_path / place).write_bytes(PNG)
    return tmp_path / "open"


async def test_files_below_an_open_folder_are_read(opened: Path) -> None:
    inner = opened / "inner" / "b.png"
    spaced = opened / "a picture.png"
    spaced.write_bytes(PNG)
    values = [str(opened / "a.png"), str(inner), f"{opened}/inner/../a.png", inner.as_uri(), spaced.as_uri()]
    for value in [*values, f"file://localhost{inner}"]:
        assert (await load(value, local_roots=[opened])).data == PNG


async def test_a_link_is_followed_only_within(opened: Path) -> None:
    (opened / "inside.png").symlink_to(opened / "inner" / "b.png")
    (opened / "outside.png").symlink_to(opened.parent / "closed" / "secret.png")
    (opened / "folder").symlink_to(opened.parent / "closed")
    assert (await load(str(opened / "inside.png"), local_roots=[opened])).data == PNG
    assert await refused(str(opened / "outside.png"), local_roots=[opened])
    assert await refused(str(opened / "folder" / "secret.png"), local_roots=[opened])


async def test_an_open_folder_may_itself_be_a_link(opened: Path) -> None:
    (opened.parent / "link").symlink_to(opened)
    assert (await load(str(opened.parent / "link" / "a.png"), local_roots=[opened.parent / "link"])).data == PNG


async def test_missing_and_forbidden_are_the_same_answer(opened: Path) -> None:
    os.mkfifo(opened / "fifo.png")
    (opened / "circle.png").symlink_to(opened / "circle.png")
    closed = opened.parent / "closed"
    values: list[Any] = [
        opened / "missing.png",
        opened,
        opened / "fifo.png",
        opened / "circle.png",
        opened / "a.png" / "x",
    ]
    values += [closed / "secret.png", closed / "missing.png", f"{opened}/../closed/secret.png", f"{opened}-more/a.png"]
    values += [
        "/etc/passwd.",
        "/dev/zero",
        "/proc/self/environ",
        f"file://elsewhere{opened}/a.png",
        f"file:{opened}/a.png?x",
    ]
    values += [f"file://{opened}/%2e%2e/closed/secret.png", f"{opened}/a.png\0", "file:///" + "a" * 5000]
    answers = {
        (error.message, error.code) for value in values for error in [await refused(str(value), local_roots=[opened])]
    }
    assert len(answers) == 1


async def test_without_an_open_folder_there_are_no_files(opened: Path) -> None:
    for value in (str(opened / "a.png"), (opened / "a.png").as_uri()):
        assert (await refused(value)).code == "invalid_image_url"


async def test_a_file_may_be_too_large(opened: Path) -> None:
    error = await refused(str(opened / "a.png"), local_roots=[opened], max_item_bytes=len(PNG) - 1)
    assert error.code == "image_too_large"


async def test_base64_that_begins_like_a_path_is_still_base64(opened: Path) -> None:
    import base64

    jpeg = a_picture("JPEG")
    value = base64.b64encode(jpeg).decode()
    assert value.startswith("/9j/")
    assert (await load(value, local_roots=[opened])).data == jpeg
