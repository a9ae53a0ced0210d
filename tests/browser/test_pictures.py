"""The pictures of README and docs/pages.md, among them the killed server. Made here, they show the pages as they are.

`WRITE_PICTURES=1 pytest tests/browser/test_pictures.py` puts them into docs/pictures; else they are artefacts.
"""

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.demo_process import demo_process
from tests.serving import REPOSITORY

PICTURES = REPOSITORY / "docs" / "pictures"
MAX_BYTES = 150_000
_FRAME_SECONDS = 0.25
_MAX_FRAMES = 60


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo_process(tmp_path_factory.mktemp("demo")) as url:
        yield url


@pytest.fixture
def folder(artefacts: Path) -> Path:
    folder = PICTURES if os.environ.get("WRITE_PICTURES") == "1" else artefacts
    folder.mkdir(exist_ok=True)
    return folder


def ask(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Your message").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article.assistant").last).to_have_attribute("aria-busy", "false")


def picture(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(image: Image.Image, path: Path, **options: object) -> None:
    image.save(path, "WEBP", quality=80, method=6, **options)
    assert path.stat().st_size < MAX_BYTES, f"{path.name}: {path.stat().st_size} bytes"


@pytest.mark.model
def test_the_chat_and_the_killed_server(visitor: Visitor, demo: str, folder: Path) -> None:
    visitor.expected = ("ERR_", "503")
    page = visitor.open(demo, viewport={"width": 1080, "height": 680})
    ask(page, "Halo! Siapa kamu?")
    ask(page, "What is 12 + 7?")
    save(picture(page), folder / "chat.webp")
    page.get_by_role("button", name="New chat").click()
    frames = [picture(page)]
    page.get_by_role("button", name="Kill the server").click()
    answer = page.locator("article.assistant")
    until = time.monotonic() + 120
    while time.monotonic() < until and len(frames) < 400:
        frames.append(picture(page))
        if answer.count() and answer.get_attribute("aria-busy") == "false":
            break
        page.wait_for_timeout(round(_FRAME_SECONDS * 1000))
    frames.append(picture(page))
    shown = [frame.resize((720, 453), Image.Resampling.LANCZOS) for frame in without_still_ones(frames)]
    durations = [700, *[200] * (len(shown) - 2), 2500]
    save(shown[0], folder / "killed.webp", save_all=True, append_images=shown[1:], duration=durations, loop=0)


def without_still_ones(frames: list[Image.Image]) -> list[Image.Image]:
    """The wait for the server is long and shows little: what differs from the frame before, and not too many."""
    changed = [frame for at, frame in enumerate(frames) if at == 0 or frame.tobytes() != frames[at - 1].tobytes()]
    step = -(-len(changed) // _MAX_FRAMES)
    return [*changed[:-1:step], changed[-1]]


@pytest.mark.model
def test_the_status_page_and_a_phone(visitor: Visitor, demo: str, folder: Path) -> None:
    page = visitor.open(demo, "phone", "dark", "id-ID")
    page.get_by_role("button", name="Siapa kamu").click()
    expect(page.locator("article.assistant")).to_have_attribute("aria-busy", "false")
    save(picture(page), folder / "chat-on-a-phone.webp")
    status = visitor.open(f"{demo}/status", viewport={"width": 1080, "height": 900})
    status.wait_for_timeout(7000)  # some points for the charts
    save(picture(status), folder / "status.webp")


def test_pictures_of_the_documents_are_small() -> None:
    pictures = sorted(PICTURES.glob("*.webp"))
    assert [path.name for path in pictures] == ["chat-on-a-phone.webp", "chat.webp", "killed.webp", "status.webp"]
    assert all(path.stat().st_size < MAX_BYTES for path in pictures)
