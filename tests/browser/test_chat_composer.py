"""Where a message is written: pictures by drop and camera, documents, a microphone, on a desktop and on a phone."""

import base64
import io
import wave
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from scripts.demo_whisper.sentences import sentences
from tests.browser.asking import answer_of, ask, drag, field_of, request_of
from tests.browser.conftest import FAKE_DEVICES, DemoChat, Visitor, chromium_path
from tests.browser.page_watch import require_accessible
from tests.serving import REPOSITORY, Served, served, settings_with

_GREEN = base64.b64encode((REPOSITORY / "docs/samples/green.jpg").read_bytes()).decode()
_MAX_PIXELS = 12_000_000
_RATE = 48_000
_SLOW_FILES = """() => {
  const read = Blob.prototype.arrayBuffer;
  const wished = new Promise((resolve) => { window.readFiles = resolve; });
  Blob.prototype.arrayBuffer = function () { return wished.then(() => read.call(this)); };
}"""


@pytest.fixture(scope="module")
def slow_server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=40")) as server:
        yield server


def test_a_picture_is_dropped_and_asked_about_beside_a_document(visitor: Visitor, demo_chat: DemoChat) -> None:
    page = visitor.open(demo_chat.url)
    page.get_by_role("button", name="What colour is this picture?").wait_for()
    require_accessible(page)
    visitor.picture(page, "chat-empty")
    drag(page, "green.jpg", "image/jpeg", _GREEN, "dragenter", "dragover")
    expect(page.get_by_text("Drop to attach")).to_be_visible()
    drag(page, "green.jpg", "image/jpeg", _GREEN, "drop")
    expect(page.get_by_text("Drop to attach")).not_to_be_visible()
    page.get_by_role("button", name="Remove green.jpg").wait_for()
    _choose(page, ("goods.csv", "text/csv", b"name,price\nkopi,1000\n"), ("report.pdf", "application/pdf", b"%PDF-1.7"))
    expect(page.get_by_role("alert")).to_contain_text("report.pdf is a PDF")
    page.get_by_role("button", name="Remove goods.csv").wait_for()
    require_accessible(page)
    visitor.picture(page, "chat-attachments")
    page.get_by_role("button", name="Remove goods.csv").click()
    body = ask(page, "What colour is this picture?")
    [picture, question] = body["messages"][-1]["content"]
    assert picture == {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{_GREEN}"}}
    assert question == {"type": "text", "text": "What colour is this picture?"}
    expect(answer_of(page)).to_contain_text("The picture is green.")
    expect(page.locator(".chips")).to_have_count(0)
    # The next turn sends the picture again, out of the browser's store, also after a reload.
    page.reload()
    answer_of(page)
    markup = (
        b"<style>p { color: red }</style><h1>Goods</h1><p style='color: red'>Kopi<br>Teh</p><script>alert(1)</script>"
    )
    _choose(page, ("goods.html", "text/html", markup))
    page.get_by_role("button", name="Remove goods.html").wait_for()
    body = ask(page, "Hello")
    assert body["messages"][0]["content"][0] == picture
    assert body["messages"][-1]["content"][0]["text"] == "goods.html:\n\n```\nGoods\nKopi\nTeh\n```\n"
    answer_of(page)
    visitor.picture(page, "chat-picture-answered")


def test_a_file_stays_with_the_conversation_where_it_was_given(
    visitor: Visitor, slow_server: Served, tmp_path: Path
) -> None:
    page = visitor.open(slow_server.url)
    ask(page, "Here")
    answer_of(page)
    page.evaluate(_SLOW_FILES)
    _choose(page, ("goods.csv", "text/csv", b"name,price\nkopi,1000\n"))
    expect(page.locator(".chip")).to_contain_text("Reading")
    page.get_by_role("button", name="New chat").click()
    expect(page.locator(".chip")).to_have_count(0)
    page.evaluate("window.readFiles()")
    page.wait_for_timeout(100)
    expect(page.locator(".chip")).to_have_count(0)
    sidebar = page.get_by_role("navigation", name="Conversations")
    sidebar.get_by_role("link", name="Here").click()
    page.get_by_role("button", name="Remove goods.csv").wait_for()
    document = "goods.csv:\n\n```\nname,price\nkopi,1000\n\n```\n"
    assert ask(page, "How much?")["messages"][-1]["content"][0]["text"] == document
    answer_of(page)
    # An export has the text of documents, and an import takes it.
    page.get_by_role("banner").get_by_role("button", name="More", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="JSON").click()
    download.value.save_as(tmp_path / "chat.json")
    page.locator("input[type=file][aria-label=Import]").set_input_files(tmp_path / "chat.json")
    expect(sidebar.get_by_role("link", name="Here")).to_have_count(2)
    assert ask(page, "And now?")["messages"][2]["content"][0]["text"] == document


def test_a_large_picture_is_scaled_and_stands_upright(visitor: Visitor, demo_chat: DemoChat) -> None:
    page = visitor.open(demo_chat.url)
    orientation = Image.Exif()
    orientation[0x0112] = 6  # the camera was turned by a quarter
    file = io.BytesIO()
    Image.new("RGB", (5000, 3000), (255, 215, 0)).save(file, "JPEG", exif=orientation, quality=50)
    _choose(page, ("large.jpg", "image/jpeg", file.getvalue()))
    page.get_by_role("button", name="Remove large.jpg").wait_for()
    body = ask(page, "What colour is this picture?")
    url = body["messages"][-1]["content"][0]["image_url"]["url"]
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as sent:
        assert sent.width / sent.height == pytest.approx(3 / 5, rel=0.01)
        assert sent.width * sent.height <= _MAX_PIXELS
        assert not sent.getexif().get(0x0112)
    expect(answer_of(page)).to_contain_text("The picture is yellow.")


def test_what_is_said_is_written_into_the_field(
    visitor: Visitor, demo_chat: DemoChat, browser: Browser, tmp_path: Path, artefacts: Path
) -> None:
    said = sentences()[0]
    recording = tmp_path / "said.wav"
    _write_recording(said.path, recording)
    speaking = browser.browser_type.launch(
        executable_path=chromium_path(),
        args=[*FAKE_DEVICES, f"--use-file-for-fake-audio-capture={recording}%noloop"],
    )
    try:
        speaker = Visitor(speaking, artefacts)
        page = speaker.open(demo_chat.url, "phone", "dark", "id-ID")
        field_of(page).fill("Toko:")
        page.get_by_role("button", name="Bicara").click()
        expect(page.get_by_role("timer")).to_contain_text("4", timeout=15_000)
        require_accessible(page)
        speaker.picture(page, "chat-microphone-phone-dark-id")
        page.get_by_role("button", name="Selesai", exact=True).click()
        expect(field_of(page)).to_have_value(f"Toko: {said.text}", timeout=30_000)
        page.get_by_role("button", name="Bicara").click()
        page.get_by_role("button", name="Buang rekaman").click()
        expect(field_of(page)).to_have_value(f"Toko: {said.text}")
        speaker.close()
    finally:
        speaking.close()


def test_the_camera_takes_a_picture(visitor: Visitor, demo_chat: DemoChat) -> None:
    page = visitor.open(demo_chat.url, theme="dark")
    page.get_by_role("button", name="Attach").click()
    page.get_by_role("menuitem", name="Camera").click()
    page.get_by_role("button", name="Take the picture").click()
    page.get_by_role("button", name="Again").click()
    page.get_by_role("button", name="Take the picture").click()
    require_accessible(page)
    visitor.picture(page, "chat-camera-dark")
    page.get_by_role("button", name="Use this picture").click()
    page.get_by_role("button", name="Remove Photo.jpg").wait_for()
    body = ask(page, "What colour is this picture?")
    assert body["messages"][-1]["content"][0]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    # Chromium's camera without a camera shows a green field.
    expect(answer_of(page)).to_contain_text("The picture is green.")


def test_the_camera_records_a_video(visitor: Visitor, demo_chat: DemoChat, slow_server: Served) -> None:
    page = visitor.open(demo_chat.url, locale="id-ID")
    page.get_by_role("button", name="Lampirkan").click()
    page.get_by_role("menuitem", name="Rekam video").click()
    record, stop = (page.get_by_role("button", name=name, exact=True) for name in ("Rekam", "Berhenti"))
    record.click()
    expect(page.get_by_role("timer")).to_contain_text("0:01 / 0:30")
    require_accessible(page)
    visitor.picture(page, "chat-film-id")
    stop.click()
    page.get_by_role("button", name="Buang").click()
    record.click()
    expect(page.get_by_role("timer")).to_contain_text("0:01")
    stop.click()
    require_accessible(page)
    page.get_by_role("button", name="Pakai video ini").click()
    page.get_by_role("button", name="Hapus Film.webm").wait_for()
    body = ask(page, "What colour is this?")
    [film, _] = body["messages"][-1]["content"]
    data = base64.b64decode(film["video_url"]["url"].removeprefix("data:video/webm;base64,"))
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(video=0))
        assert len(frames) > 1 and frames[0].width > frames[0].height > 0
    expect(answer_of(page).locator(".rich")).not_to_be_empty()
    expect(answer_of(page).locator(".note")).to_have_count(0)
    # A long one ends by itself.
    page.clock.install()
    page.get_by_role("button", name="Lampirkan").click()
    page.get_by_role("menuitem", name="Rekam video").click()
    record.click()
    expect(page.get_by_role("timer")).to_be_visible()
    page.clock.fast_forward(31_000)
    page.get_by_role("button", name="Pakai video ini").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator(".chip")).to_have_count(0)
    # The echo model watches nothing: nobody records in vain.
    page = visitor.open(slow_server.url, locale="id-ID")
    page.get_by_role("button", name="Lampirkan").click()
    page.get_by_role("menuitem", name="Rekam video").click()
    expect(page.get_by_role("alert")).to_contain_text("tidak bisa menonton video")


def test_devices_that_cannot_be_used_are_explained(visitor: Visitor, demo_chat: DemoChat) -> None:
    page = visitor.open(demo_chat.url)
    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', 'NotAllowedError'); } }"
    )
    page.get_by_role("button", name="Speak", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("This page may not use the microphone.")
    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', 'NotFoundError'); } }"
    )
    page.get_by_role("button", name="Attach").click()
    page.get_by_role("menuitem", name="Camera").click()
    expect(page.get_by_role("dialog")).to_contain_text("There is no camera on this device.")


def test_on_a_phone_enter_breaks_the_line_and_the_button_sends_and_stops(visitor: Visitor, slow_server: Served) -> None:
    page = visitor.open(slow_server.url, "phone", "dark", "id-ID")
    field = field_of(page)
    field.click()
    height = field.bounding_box()
    field.press_sequentially("satu")
    field.press("Enter")
    page.keyboard.insert_text("dua " * 60)
    grown = field.bounding_box()
    assert height and grown and grown["height"] > height["height"] * 2
    assert field.input_value().startswith("satu\ndua")
    require_accessible(page)
    visitor.picture(page, "chat-phone-dark-id")
    # The echo model sees nothing: the page says so before anything is sent.
    _choose(page, ("green.jpg", "image/jpeg", base64.b64decode(_GREEN)))
    expect(page.locator(".chip")).to_contain_text("tidak bisa melihat gambar")
    page.get_by_role("button", name="Hapus green.jpg").click()
    body = request_of(page, page.get_by_role("button", name="Kirim").click)
    assert body["messages"][-1]["content"].startswith("satu\ndua")
    page.get_by_role("button", name="Hentikan").click()
    expect(page.get_by_role("button", name="Kirim")).to_be_visible()
    answer_of(page)


def _choose(page: Page, *files: tuple[str, str, bytes]) -> None:
    payloads = [{"name": name, "mimeType": media_type, "buffer": data} for name, media_type, data in files]
    page.locator("[data-role=files]").set_input_files(payloads)  # type: ignore[arg-type]


def _write_recording(source: Path, target: Path) -> None:
    """What Chromium's microphone hears: a pause, the sentence, and silence."""
    resampler = av.AudioResampler("s16", "mono", _RATE)
    with av.open(str(source)) as container:
        heard = [out.to_ndarray()[0] for frame in container.decode(audio=0) for out in resampler.resample(frame)]
    silence = np.zeros(_RATE // 2, dtype=np.int16)
    samples = np.concatenate([silence, *heard, *[silence] * 40])
    with wave.open(str(target), "wb") as file:
        file.setparams((1, 2, _RATE, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
