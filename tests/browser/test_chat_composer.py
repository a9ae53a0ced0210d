"""Where a message is written: pictures by drop and camera, documents, a microphone, on a desktop and on a phone."""

import base64
import io
import json
import re
import wave
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from scripts.demo_whisper.sentences import sentences
from tests.browser.conftest import FAKE_DEVICES, DemoChat, Visitor, chromium_path
from tests.browser.looks import DARK_DESKTOP, LIGHT_PHONE, PHONE, in_looks, on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.serving import REPOSITORY, Served, served, settings_with

_GREEN_BYTES = (REPOSITORY / "docs/samples/green.jpg").read_bytes()
_GREEN = base64.b64encode(_GREEN_BYTES).decode()
_MAX_PIXELS = 12_000_000
_RATE = 48_000
_SLOW_FILES = """() => {
  const read = Blob.prototype.arrayBuffer;
  const wished = new Promise((resolve) => { window.readFiles = resolve; });
  Blob.prototype.arrayBuffer = function () { return wished.then(() => read.call(this)); };
}"""
# Types as soon as the page is drawn: before the browser has found time for anything else.
_TYPE_AT_ONCE = """async (button, text) => {
  button.click();
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => { port1.onmessage = resolve; port2.postMessage(0); });
  const field = document.querySelector("textarea.composer-field");
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, text);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}"""
_DENIED = "() => {{ navigator.mediaDevices.getUserMedia = async () => {{ throw new DOMException('', '{}'); }} }}"

# The camera of a busy machine may give one frame in a second.
_FRAMES_COME = """() => new Promise((resolve) => {
  const view = document.querySelector(".camera-view");
  let left = 5;
  const shown = () => (--left ? view.requestVideoFrameCallback(shown) : resolve());
  view.requestVideoFrameCallback(shown);
})"""

_SAID = re.compile(r"^([4-9][.,]|\d\d\s)")  # seconds, from the fourth on
_RUNS = re.compile(r"0:(0[1-9]|[12]\d) / 0:30")  # a busy machine skips seconds


@pytest.fixture(scope="module")
def slow_server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=40")) as server:
        yield server


@on_both_screens
def test_a_picture_is_dropped_and_asked_about_beside_a_document(visitor: Visitor, demo_chat: DemoChat) -> None:
    chat = visitor.chat(demo_chat.url)
    page, t = chat.page, chat.t
    page.get_by_role("button", name=t("example.picture")).wait_for()
    require_accessible(page)
    visitor.picture(page, "chat-empty")
    if chat.look.is_phone:  # where nothing can be dropped
        chat.attach(("green.jpg", "image/jpeg", _GREEN_BYTES))
    else:
        chat.drag("green.jpg", "image/jpeg", _GREEN, "dragenter", "dragover")
        expect(page.get_by_text(t("attach.drop"))).to_be_visible()
        chat.drag("green.jpg", "image/jpeg", _GREEN, "drop")
        expect(page.get_by_text(t("attach.drop"))).not_to_be_visible()
    chat.button("attach.remove", name="green.jpg").wait_for()
    goods, report = (
        ("goods.csv", "text/csv", b"name,price\nkopi,1000\n"),
        ("report.pdf", "application/pdf", b"%PDF-1.7"),
    )
    chat.attach(goods, report)
    expect(page.get_by_role("alert")).to_contain_text(t("attach.no.pdf", name="report.pdf"))
    remove = chat.button("attach.remove", name="goods.csv")
    remove.wait_for()
    require_accessible(page)
    visitor.picture(page, "chat-attachments")
    remove.click()
    question = "What colour is this picture?"
    body = chat.ask(question)
    [picture, text] = body["messages"][-1]["content"]
    assert picture == {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{_GREEN}"}}
    assert text == {"type": "text", "text": question}
    expect(chat.until_done()).to_contain_text("The picture is green.")
    expect(page.get_by_role("list", name=t("attach.list"))).to_have_count(0)
    # The next turn sends the picture again, out of the browser's store, also after a reload.
    page.reload()
    chat.until_done()
    markup = (
        b"<style>p { color: red }</style><h1>Goods</h1><p style='color: red'>Kopi<br>Teh</p><script>alert(1)</script>"
    )
    chat.attach(("goods.html", "text/html", markup))
    chat.button("attach.remove", name="goods.html").wait_for()
    body = chat.ask("Hello")
    assert body["messages"][0]["content"][0] == picture
    assert body["messages"][-1]["content"][0]["text"] == "goods.html:\n\n```\nGoods\nKopi\nTeh\n```\n"
    chat.until_done()
    require_accessible(page)
    visitor.picture(page, "chat-picture-answered")


@in_looks(LIGHT_PHONE)
def test_an_exported_chat_has_its_pictures_and_an_import_sends_them_again(
    visitor: Visitor, demo_chat: DemoChat, tmp_path: Path
) -> None:
    chat = visitor.chat(demo_chat.url)
    chat.attach(("green.jpg", "image/jpeg", _GREEN_BYTES))
    sent = chat.ask("What colour is this picture?")["messages"][-1]["content"][0]
    chat.until_done()
    exported = tmp_path / "green.json"
    chat.menu().click()
    with chat.page.expect_download() as download:
        chat.choose("chat.export_json")
    download.value.save_as(exported)
    other = visitor.chat(demo_chat.url)
    other.sidebar()
    other.import_file(exported)
    expect(other.questions.locator("button.picture img")).to_have_js_property("naturalWidth", 160)
    assert other.ask("Hello")["messages"][0]["content"][0] == sent
    other.until_done()
    forged = json.loads(exported.read_text())
    [picture] = [one for message in forged["messages"] for one in message["attachments"]]
    picture["data"] = "data:text/html;base64,PGI+"
    exported.write_text(json.dumps(forged))
    other.sidebar()
    other.import_file(exported)
    expect(other.questions).to_contain_text(["What colour is this picture?"])
    expect(other.questions.locator("button.picture")).to_have_count(0)


@on_both_screens_too
def test_what_is_typed_at_once_in_a_new_chat_stays(visitor: Visitor, slow_server: Served) -> None:
    chat = visitor.chat(slow_server.url)
    chat.send("Here")
    chat.until_done()
    button = chat.sidebar().get_by_role("button", name=chat.t("chat.new"), exact=True)
    button.evaluate(_TYPE_AT_ONCE, "There")
    body = chat.request_of(chat.button("composer.send").click)
    assert [one["content"] for one in body["messages"]] == ["There"]
    chat.until_text("There")


@on_both_screens_too
def test_a_file_stays_with_the_conversation_where_it_was_given(
    visitor: Visitor, slow_server: Served, tmp_path: Path
) -> None:
    chat = visitor.chat(slow_server.url)
    page, t = chat.page, chat.t
    chat.send("Here")
    chat.until_done()
    page.evaluate(_SLOW_FILES)
    chat.attach(("goods.csv", "text/csv", b"name,price\nkopi,1000\n"))
    chips = page.get_by_role("list", name=t("attach.list"))
    expect(chips).to_contain_text(t("attach.reading"))
    chat.new_chat()
    expect(chips).to_have_count(0)
    page.evaluate("window.readFiles()")
    page.wait_for_timeout(100)
    expect(chips).to_have_count(0)
    chat.sidebar().get_by_role("link", name="Here").click()
    chat.button("attach.remove", name="goods.csv").wait_for()
    document = "goods.csv:\n\n```\nname,price\nkopi,1000\n\n```\n"
    assert chat.ask("How much?")["messages"][-1]["content"][0]["text"] == document
    chat.until_done()
    # An export has the text of documents, and an import takes it.
    chat.menu().click()
    with page.expect_download() as download:
        chat.choose("chat.export_json")
    download.value.save_as(tmp_path / "chat.json")
    sidebar = chat.sidebar()
    chat.import_file(tmp_path / "chat.json")
    if chat.look.is_phone:  # an import shows what it has read
        chat.sidebar()
    expect(sidebar.get_by_role("link", name="Here")).to_have_count(2)
    if chat.look.is_phone:
        chat.button("close").click()
    assert chat.ask("And now?")["messages"][2]["content"][0]["text"] == document


def test_a_large_picture_is_scaled_and_stands_upright(visitor: Visitor, demo_chat: DemoChat) -> None:
    chat = visitor.chat(demo_chat.url)
    orientation = Image.Exif()
    orientation[0x0112] = 6  # the camera was turned by a quarter
    file = io.BytesIO()
    Image.new("RGB", (5000, 3000), (255, 215, 0)).save(file, "JPEG", exif=orientation, quality=50)
    chat.attach(("large.jpg", "image/jpeg", file.getvalue()))
    chat.button("attach.remove", name="large.jpg").wait_for()
    body = chat.ask("What colour is this picture?")
    url = body["messages"][-1]["content"][0]["image_url"]["url"]
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as sent:
        assert sent.width / sent.height == pytest.approx(3 / 5, rel=0.01)
        assert sent.width * sent.height <= _MAX_PIXELS
        assert not sent.getexif().get(0x0112)
    expect(chat.until_done()).to_contain_text("The picture is yellow.")


def test_what_is_said_is_written_into_the_field(
    demo_chat: DemoChat, browser: Browser, tmp_path: Path, artefacts: Path
) -> None:
    """On a phone and on a desktop, of one browser: which sound its microphone hears is an argument of its start."""
    said = sentences()[0]
    recording = tmp_path / "said.wav"
    _write_recording(said.path, recording)
    speaking = browser.browser_type.launch(
        executable_path=chromium_path(),
        args=[*FAKE_DEVICES, f"--use-file-for-fake-audio-capture={recording}%noloop"],
    )
    try:
        speaker = Visitor(speaking, artefacts, PHONE)
        chat = speaker.chat(demo_chat.url)
        chat.field.fill("Toko:")
        chat.button("mic.start").click()
        expect(chat.page.get_by_role("timer")).to_contain_text(_SAID)
        require_accessible(chat.page)
        speaker.picture(chat.page, "chat-microphone")
        chat.button("mic.done").click()
        expect(chat.field).to_have_value(f"Toko: {said.text}", timeout=120_000)
        chat.button("mic.start").click()
        chat.button("mic.cancel").click()
        expect(chat.field).to_have_value(f"Toko: {said.text}")
        speaker.close_pages()
        speaker.require_no_problems()
    finally:
        speaking.close()


@on_both_screens_too
def test_the_camera_takes_a_picture(visitor: Visitor, demo_chat: DemoChat) -> None:
    chat = visitor.chat(demo_chat.url)
    chat.button("attach.add").click()
    if chat.look.is_phone:  # its own program takes the picture
        with chat.page.expect_file_chooser() as chooser:
            chat.choose("attach.camera")
        visitor.picture(chat.page, "chat-camera")
        chooser.value.set_files(REPOSITORY / "docs/samples/green.jpg")
        chat.button("attach.remove", name="green.jpg").wait_for()
    else:
        chat.choose("attach.camera")
        chat.button("camera.take").click()
        chat.button("camera.again").click()
        chat.button("camera.take").click()
        require_accessible(chat.page)
        visitor.picture(chat.page, "chat-camera")
        chat.button("camera.use").click()
        chat.button("attach.remove", name=f"{chat.t('attach.name.photo')}.jpg").wait_for()
    body = chat.ask("What colour is this picture?")
    assert body["messages"][-1]["content"][0]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    # Chromium's camera without a camera shows a green field.
    expect(chat.until_done()).to_contain_text("The picture is green.")


@in_looks(DARK_DESKTOP)
def test_the_camera_records_a_video(visitor: Visitor, demo_chat: DemoChat, slow_server: Served) -> None:
    chat = visitor.chat(demo_chat.url)
    page, t = chat.page, chat.t
    chat.button("attach.add").click()
    chat.choose("film.title")
    record, stop = chat.button("film.start"), chat.button("film.stop")
    record.click()
    expect(page.get_by_role("timer")).to_contain_text(_RUNS)
    require_accessible(page)
    visitor.picture(page, "chat-film")
    stop.click()
    chat.button("film.again").click()
    record.click()
    expect(page.get_by_role("timer")).to_contain_text(_RUNS)
    page.evaluate(_FRAMES_COME)
    stop.click()
    require_accessible(page)
    chat.button("film.use").click()
    chat.button("attach.remove", name="Film.webm").wait_for()
    body = chat.ask("What colour is this?")
    [film, _] = body["messages"][-1]["content"]
    data = base64.b64decode(film["video_url"]["url"].removeprefix("data:video/webm;base64,"))
    with av.open(io.BytesIO(data), "r") as container:
        frames = list(container.decode(video=0))
        assert len(frames) > 1 and frames[0].width > frames[0].height > 0
    expect(chat.until_done().locator(".rich")).not_to_be_empty()
    expect(chat.answer.locator(".note")).to_have_count(0)
    # A long one ends by itself.
    page.clock.install()
    chat.button("attach.add").click()
    chat.choose("film.title")
    record.click()
    expect(page.get_by_role("timer")).to_be_visible()
    page.clock.fast_forward(31_000)
    chat.button("film.use").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("list", name=t("attach.list"))).to_have_count(0)
    # The echo model watches nothing: nobody records in vain.
    chat = visitor.chat(slow_server.url)
    chat.button("attach.add").click()
    chat.choose("film.title")
    expect(chat.page.get_by_role("alert")).to_contain_text(t("attach.model.video", name="echo").removeprefix("echo"))


@on_both_screens_too
def test_devices_that_cannot_be_used_are_explained(visitor: Visitor, demo_chat: DemoChat) -> None:
    chat = visitor.chat(demo_chat.url)
    chat.page.evaluate(_DENIED.format("NotAllowedError"))
    chat.button("mic.start").click()
    refused = chat.t("device.refused", device=chat.t("device.microphone"))
    expect(chat.page.get_by_role("alert")).to_contain_text(refused)
    require_accessible(chat.page)
    visitor.picture(chat.page, "chat-no-microphone")
    if chat.look.is_phone:
        return
    chat.page.evaluate(_DENIED.format("NotFoundError"))
    chat.button("attach.add").click()
    chat.choose("attach.camera")
    expect(chat.dialog).to_contain_text(chat.t("device.missing", device=chat.t("device.camera")))


@on_both_screens
def test_a_line_is_broken_and_the_button_sends_and_stops(visitor: Visitor, slow_server: Served) -> None:
    chat = visitor.chat(slow_server.url)
    field = chat.field
    field.click()
    height = field.bounding_box()
    field.press_sequentially("satu")
    field.press("Enter" if chat.look.is_phone else "Shift+Enter")
    chat.page.keyboard.insert_text("dua " * 200)
    grown = field.bounding_box()
    assert height and grown and grown["height"] > height["height"] * 2
    assert field.input_value().startswith("satu\ndua")
    require_accessible(chat.page)
    # The echo model sees nothing: the page says so before anything is sent.
    chat.attach(("green.jpg", "image/jpeg", _GREEN_BYTES))
    chips = chat.page.get_by_role("list", name=chat.t("attach.list"))
    expect(chips).to_contain_text(chat.t("attach.model.image", name="echo").removeprefix("echo"))
    visitor.picture(chat.page, "chat-lines")
    chat.button("attach.remove", name="green.jpg").click()
    body = chat.request_of(chat.button("composer.send").click)
    assert body["messages"][-1]["content"].startswith("satu\ndua")
    chat.button("composer.stop").click()
    expect(chat.button("composer.send")).to_be_visible()
    chat.until_done()
    visitor.picture(chat.page, "chat-stopped")


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
