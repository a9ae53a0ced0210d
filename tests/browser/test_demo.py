"""What `make demo` shows: one clicks, the server dies in mid-answer, and the answer goes on before one's eyes.

The pictures of README and docs/pages.md are made here, so they show the pages as they are:
`WRITE_PICTURES=1 pytest tests/browser/test_demo.py` puts them into docs/pictures; else they are artefacts.
"""

import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from scripts.demo_model.smalltalk import STORIES
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
from tests.browser.demo_process import demo_process
from tests.browser.looks import DESKTOP, PHONE, SIZES, on_both_screens
from tests.browser.page_watch import require_accessible
from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, served, settings_with, wait_until_loaded

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

PICTURES = REPOSITORY / "docs" / "pictures"
MAX_BYTES = 150_000
WRITES_PICTURES = os.environ.get("WRITE_PICTURES") == "1"
LOST = ("ERR_", "503")
_FRAME_SECONDS = 0.25 if WRITES_PICTURES else 1
_WEBP: dict[str, Any] = {"format": "WEBP", "quality": 80, "method": 6}
_FRAMES = (60, 30, 15)  # at most
_TRAFFIC_SECONDS = 45 if WRITES_PICTURES else 8  # what there is for charts to show
_QUESTIONS = (
    "Halo! Siapa kamu?",
    "What is 12 + 7?",
    "Tell me a short story.",
    "Ceritakan sebuah cerita pendek.",
    "Count to ten.",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo_process(tmp_path_factory.mktemp("demo")) as url:
        yield url


@pytest.fixture
def folder(artefacts: Path) -> Path:
    folder = PICTURES if WRITES_PICTURES else artefacts
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.model
@on_both_screens
def test_the_answer_goes_on_before_ones_eyes(visitor: Visitor, demo: str, folder: Path) -> None:
    visitor.expected = LOST
    size = SIZES["phone"] if visitor.look.is_phone else {"width": 1080, "height": 680}
    page = visitor.open(demo, viewport=size)
    chat = ChatPage(page, visitor.look)
    kill = page.get_by_role("button", name=chat.t("chat.kill.why"), exact=True)
    kill.wait_for()
    is_shown = visitor.look is DESKTOP  # in the documents
    frames = [picture(page)]
    kill.click()
    expect(chat.dialog).to_contain_text(chat.t("chat.kill.idle"))
    expect(chat.questions).to_have_count(0)
    require_accessible(page)
    visitor.picture(page, "kill-offered")
    frames.append(picture(page))
    chat.button("chat.kill.idle.start").click()
    frames += until(chat.answer.locator(".reconnecting"), page) if is_shown else []
    chat.answer.locator(".reconnecting").wait_for()
    half = chat.text.inner_text().strip()
    require_accessible(page)
    visitor.picture(page, "killed")
    frames += until(page.locator(".message.assistant[aria-busy=false]"), page) if is_shown else []
    chat.until_done(120_000)
    whole = chat.text.inner_text().strip()
    story = STORIES["id" if visitor.look.language == "id" else "en"][1]
    assert whole == story and whole.startswith(half)
    visitor.picture(page, "killed-and-whole")
    wait_until_loaded(demo)
    if is_shown:
        save_animation([*frames, picture(page)], folder / "killed.webp")


def test_a_server_that_is_no_demo_has_no_such_button(visitor: Visitor) -> None:
    with served(settings_with()) as server:
        chat = visitor.chat(server.url)
        chat.page.wait_for_load_state("networkidle")  # parts of the page come later, and the server ends here
        expect(chat.button("composer.send")).to_be_visible()
        expect(chat.button("chat.kill.why")).to_have_count(0)
        assert httpx2.post(f"{server.url}/pages/kill", headers={"origin": server.url}).status_code in (404, 405)


@pytest.mark.model
def test_pictures_of_the_chat(visitor: Visitor, demo: str, folder: Path) -> None:
    page = visitor.open(demo, viewport={"width": 1080, "height": 680})
    chat = ChatPage(page, DESKTOP)
    for question in _QUESTIONS[:2]:
        chat.send(question)
        expect(chat.questions.last).to_contain_text(question)
        chat.until_done()
    save(picture(page), folder / "chat.webp")
    phone = visitor.chat(demo, PHONE)
    phone.page.get_by_role("button", name=phone.t("example.greeting")).click()
    phone.until_done()
    save(picture(phone.page), folder / "chat-on-a-phone.webp")


@pytest.mark.model
def test_the_picture_of_the_status_page_shows_a_server_at_work(visitor: Visitor, demo: str, folder: Path) -> None:
    page = visitor.open(f"{demo}/status", viewport={"width": 1080, "height": 900})
    page.locator("[data-tile=running]").wait_for()
    end = time.monotonic() + _TRAFFIC_SECONDS
    is_over = threading.Event()
    clients = [threading.Thread(target=ask_on, args=(demo, is_over, number)) for number in range(5)]
    try:
        for one in clients:
            one.start()
            page.wait_for_timeout(_TRAFFIC_SECONDS * 100)  # one after the other: a chart that rises
        page.wait_for_timeout(max(0, round((end - time.monotonic()) * 1000)))
        expect(page.locator("[data-tile=running] .tile-value")).not_to_have_text("0")
        expect(page.locator("[data-chart=tokens] [data-value=generated]")).not_to_have_text("0")
        save(picture(page), folder / "status.webp")
    finally:
        is_over.set()
        for one in clients:
            one.join()


def ask_on(url: str, is_over: threading.Event, number: int) -> None:
    """A client that asks one question after the other."""
    while not is_over.is_set():
        httpx2.post(url + CHAT, json=said(_QUESTIONS[number % len(_QUESTIONS)]), timeout=60)
        number += 1


def test_pictures_of_the_documents_are_small() -> None:
    pictures = sorted(PICTURES.glob("*.webp"))
    assert [path.name for path in pictures] == ["chat-on-a-phone.webp", "chat.webp", "killed.webp", "status.webp"]
    assert all(path.stat().st_size < MAX_BYTES for path in pictures)


def until(sight: Locator, page: Page) -> list[Image.Image]:
    """Pictures of what happens until this is seen."""
    frames: list[Image.Image] = []
    end = time.monotonic() + 120
    while time.monotonic() < end and not sight.count():
        frames.append(picture(page))
        page.wait_for_timeout(round(_FRAME_SECONDS * 1000))
    return frames


def picture(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(image: Image.Image, path: Path) -> None:
    image.save(path, **_WEBP)
    assert path.stat().st_size < MAX_BYTES, f"{path.name}: {path.stat().st_size} bytes"


def save_animation(frames: list[Image.Image], path: Path) -> None:
    """With as many frames as the file has room for: on a slow machine more of them differ."""
    for most in _FRAMES:
        shown = [frame.resize((720, 453), Image.Resampling.LANCZOS) for frame in without_still_ones(frames, most)]
        durations = [700, *[200 * _FRAMES[0] // most] * (len(shown) - 2), 2500]
        shown[0].save(path, **_WEBP, save_all=True, append_images=shown[1:], duration=durations, loop=0)
        if path.stat().st_size < MAX_BYTES:
            return
    pytest.fail(f"{path.name}: {path.stat().st_size} bytes")


def without_still_ones(frames: list[Image.Image], most: int) -> list[Image.Image]:
    """The wait for the server is long and shows little: what differs from the frame before, and not too many."""
    changed = [frame for at, frame in enumerate(frames) if at == 0 or frame.tobytes() != frames[at - 1].tobytes()]
    step = -(-len(changed) // most)
    return [*changed[:-1:step], changed[-1]]
