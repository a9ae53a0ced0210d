"""The page that reads identity cards: one, five at once, by camera; corrected, copied, and nothing of it kept."""

import csv
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Response, Route, expect

from tests.browser.card_page import NOTHING_KEPT, CardPage, drawn, film, middle_on_card, on_a_table, specimen
from tests.browser.conftest import FAKE_DEVICES, Visitor, chromium_path
from tests.browser.looks import DARK_DESKTOP, LIGHT_PHONE, PageLook, in_looks, on_both_screens, on_both_screens_too
from tests.browser.page_watch import require_accessible
from tests.ktp.card_photos import take_photograph
from tests.ktp.card_service import ScriptedOcr, picture, serve_all
from tests.ktp.printed import CARD, card_lines
from tests.serving import Served, served, settings_with

_SEED = 3  # Lia Firmansyah, born on 10-02-1997, who has not moved

_MAX_CARDS = 50  # of the page


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """With the OCR that comes with it."""
    with served(settings_with()) as running:
        yield running


@pytest.fixture(scope="module")
def scripted() -> Iterator[Served]:
    """Reads the same card on every picture that is not black."""
    with serve_all(ScriptedOcr(card_lines(scores={"nama": 0.7}))) as running:
        yield running


def open_page(visitor: Visitor, server: Served) -> CardPage:
    page = visitor.open(f"{server.url}/card", permissions=["clipboard-read", "clipboard-write", "camera"])
    return CardPage(page, visitor.look)


def saved(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@on_both_screens
def test_a_doubtful_date_is_read_corrected_checked_at_once_and_copied(
    visitor: Visitor, server: Served, tmp_path: Path
) -> None:
    card = open_page(visitor, server)
    page, t, printed = card.page, card.t, specimen(_SEED, tgl_lahir="10-03-1997")
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer) if "/ktp-ocr/" in answer.url else None)
    expect(card.start).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "card-start")

    card.choose(drawn(printed, tmp_path / "lia.jpg"))
    card.until_read()
    masked = "360312••••••7921"
    assert (card.value("nama"), card.value("tgl_lahir"), card.value("nik")) == (
        "LIA FIRMANSYAH", "10-03-1997", masked,
    )  # fmt: skip
    doubt = card.checks.filter(has_text=t("card.check.date.bad", date="10-02-1997", printed="10-03-1997"))
    expect(doubt).to_have_attribute("data-kind", "bad")
    jump = card.summary.get_by_role("button", name=t("card.field.tgl_lahir"), exact=True)
    expect(jump).to_be_visible()
    require_accessible(page)
    visitor.whole_picture(page, "card-read")

    jump.click()
    expect(card.field("tgl_lahir")).to_be_focused()
    expect(card.box("tgl_lahir")).to_have_attribute("data-active", "true")
    expect(card.loupe.get_by_role("img", name=t("card.loupe.of", field=t("card.field.tgl_lahir")))).to_be_visible()
    visitor.picture(page, "card-date")
    card.field("tgl_lahir").fill("10021997")
    agreed = card.checks.filter(has_text=t("card.check.date.good", date="10-02-1997"))
    expect(agreed).to_have_attribute("data-kind", "good")
    expect(jump).to_have_count(0)
    page.keyboard.press("Tab")
    expect(card.field("tgl_lahir")).to_have_value("10-02-1997")
    expect(card.row_of("tgl_lahir")).to_have_attribute("data-level", "corrected")
    require_accessible(page)
    visitor.whole_picture(page, "card-corrected")

    copy = json.loads(card.copied("card.copy.json"))
    assert (copy["nik"], copy["tgl_lahir"], copy["corrected"]) == (masked, "10-02-1997", ["tgl_lahir"])
    assert copy["alamat"]["kecamatan"] == "PASAR KEMIS" and copy["file"] == "lia.jpg"
    expect(page.get_by_text(t("card.copied.without" if card.look.language == "id" else "card.copied.without.one",
                              number=1, form="JSON")).first).to_be_attached()  # fmt: skip
    card.button("card.nik.show").click()
    expect(card.field("nik")).to_have_value(printed.fields["nik"])
    [row] = csv.DictReader(card.copied("card.copy.csv").splitlines())
    assert (row["nik"], row["alamat.rt_rw"], row["corrected"]) == (printed.fields["nik"], "028/017", "tgl_lahir")

    assert len(answers) >= 2 and {answer.headers["cache-control"] for answer in answers} == {"no-store"}
    assert card.kept() == NOTHING_KEPT
    # Browsers keep the page that one leaves, for the way back.
    page.evaluate("() => dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    expect(card.start).to_be_visible()
    expect(card.field("nama")).to_have_count(0)
    page.goto("about:blank")
    page.go_back()
    expect(card.start).to_be_visible()
    assert card.kept() == NOTHING_KEPT


@on_both_screens_too
def test_five_pictures_are_a_table_and_a_broken_one_is_an_error_of_its_row(
    visitor: Visitor, server: Served, tmp_path: Path
) -> None:
    card = open_page(visitor, server)
    page, t = card.page, card.t
    good = [drawn(specimen(seed), tmp_path / f"{seed}.jpg") for seed in (3, 5, 7, 8)]
    broken = saved(tmp_path / "broken.jpg", good[0].read_bytes()[:9000])
    card.choose(*good[:2], broken, *good[2:])
    expect(card.rows).to_have_count(5)
    visitor.picture(page, "card-batch-running")
    expect(page.get_by_text(t("card.batch", done=5, number=5))).to_be_visible(timeout=300_000)
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "5")
    expect(card.rows.nth(2)).to_contain_text(t("card.fault.bad_image"))
    expect(card.rows.nth(2)).to_have_attribute("data-state", "failed")
    expect(card.rows.nth(0)).to_contain_text("LIA FIRMANSYAH")
    expect(card.rows.nth(0)).to_contain_text("360312••••••7921")
    require_accessible(page)
    visitor.picture(page, "card-batch")

    names = [specimen(seed).fields["nama"] for seed in (3, 5, 7, 8)]
    rows = list(csv.DictReader(card.copied("card.copy.csv").splitlines()))
    assert [row["nama"] for row in rows] == [*names[:2], "", *names[2:]]
    assert [row["error"] for row in rows] == ["", "", "bad_image", "", ""]
    with page.expect_download() as download:
        page.locator(".card-actions .menu > button").click()
        page.get_by_role("menuitem", name=t("card.download.json", nik=t("card.copy.nik.hidden"))).click()
    saved_cards = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert [one.get("nama") for one in saved_cards] == [*names[:2], None, *names[2:]]

    card.rows.nth(0).get_by_role("button", name="LIA FIRMANSYAH", exact=True).click()
    expect(card.field("nama")).to_have_value(names[0])
    card.button("card.next").click()
    expect(card.field("nama")).to_have_value(names[1])
    require_accessible(page)
    visitor.picture(page, "card-of-batch")
    card.button("card.all").click()
    expect(card.rows.nth(1).locator(".card-open")).to_be_focused()
    card.button("card.remove.of", name="broken.jpg").click()
    expect(card.rows).to_have_count(4)
    expect(card.rows.nth(2).locator(".card-remove")).to_be_focused()
    card.button("card.clear").click()
    expect(card.start).to_be_visible()
    page.wait_for_function("() => window.addresses.size === 0")
    assert card.kept() == NOTHING_KEPT


@in_looks(DARK_DESKTOP, LIGHT_PHONE)
def test_boxes_stand_over_the_fields_of_a_photo(visitor: Visitor, server: Served, tmp_path: Path) -> None:
    card = open_page(visitor, server)
    photo = tmp_path / "photo.jpg"
    Image.fromarray(take_photograph(_SEED, "photo").picture).save(photo, quality=92)
    card.choose(photo)
    card.until_read()
    visitor.whole_picture(card.page, "card-photo")
    frame = card.page.locator(".card-picture").bounding_box()
    assert frame
    margin = 0.025
    for name in ("nama", "alamat.kecamatan", "kewarganegaraan", "provinsi"):
        seen = card.box(name).bounding_box()
        assert seen, name
        x = (seen["x"] + seen["width"] / 2 - frame["x"]) / frame["width"] * (1 + 2 * margin) - margin
        y = (seen["y"] + seen["height"] / 2 - frame["y"]) / frame["height"] * (1 + 2 * margin) - margin
        printed_x, printed_y = middle_on_card(specimen(_SEED), name)
        assert abs(x - printed_x) < 0.03 and abs(y - printed_y) < 0.03, (name, x - printed_x, y - printed_y)


def test_a_field_and_its_place_on_the_card_show_each_other(visitor: Visitor, scripted: Served, tmp_path: Path) -> None:
    card = open_page(visitor, scripted)
    page, t = card.page, card.t
    card.choose(saved(tmp_path / "card.png", picture()))
    card.until_read()
    card.row_of("nama").hover()
    expect(card.box("nama")).to_have_attribute("data-active", "true")
    expect(card.loupe.get_by_role("img", name=t("card.loupe.of", field=t("card.field.nama")))).to_be_visible()
    card.box("agama").hover()
    expect(card.row_of("agama")).to_have_class("card-field short active")
    card.box("agama").click()
    expect(card.field("agama")).to_be_focused()
    card.box("agama").hover()
    card.box("nik").focus()
    expect(card.loupe).to_have_text(t("card.loupe.hidden"))
    page.mouse.move(1, 1)  # away from the field that it stood on, when another one is shown already
    expect(card.loupe).to_have_text(t("card.loupe.hidden"))
    page.keyboard.press("ArrowRight")
    expect(card.box("nama")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card.field("nama")).to_be_focused()
    expect(card.row_of("nama")).to_have_attribute("data-level", "likely")
    expect(card.row_of("nama")).to_contain_text(t("card.level.likely"))


def test_a_correction_can_be_taken_back_and_says_when_it_could_not_be_checked(
    visitor: Visitor, scripted: Served, tmp_path: Path
) -> None:
    visitor.expected = ("ERR_FAILED",)
    card = open_page(visitor, scripted)
    page, t = card.page, card.t
    card.choose(saved(tmp_path / "card.png", picture()))
    card.until_read()
    expect(card.field("nik")).to_have_js_property("readOnly", True)
    card.button("card.nik.show").click()
    card.field("nik").fill("320101170885900")
    expect(card.row_of("nik")).to_contain_text(t("card.warning.nik_malformed"))
    expect(page.get_by_text(t("card.checks.none"))).to_be_visible()
    card.button("card.undo", value=CARD["nik"]).click()
    expect(card.field("nik")).to_have_value(CARD["nik"])
    expect(card.row_of("nik")).to_have_attribute("data-level", "sure")

    page.route("**/ktp-ocr/check", lambda route: route.abort())
    card.field("tgl_lahir").fill("31-02-1985")
    expect(page.get_by_role("alert")).to_contain_text(t("card.checks.failed", message=t("server.unreachable")))
    require_accessible(page)
    page.unroute("**/ktp-ocr/check")
    card.button("card.again").click()
    expect(card.row_of("tgl_lahir")).to_contain_text(t("card.malformed.tgl_lahir"))
    card.button("card.nik.date.use").click()
    expect(card.field("tgl_lahir")).to_have_value(CARD["tgl_lahir"])
    expect(card.row_of("tgl_lahir")).to_have_attribute("data-level", "sure")


def test_a_picture_without_a_card_says_what_is_wrong_with_it(
    visitor: Visitor, scripted: Served, tmp_path: Path
) -> None:
    card = open_page(visitor, scripted)
    page, t = card.page, card.t
    card.choose(saved(tmp_path / "black.png", picture(level=0)))
    expect(page.get_by_role("alert")).to_contain_text(t("card.fault.ktp_not_found"))
    expect(page.get_by_text(t("card.quality.dark"), exact=True)).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "card-not-found")
    card.button("card.remove").click()
    expect(card.start).to_be_visible()


@on_both_screens_too
def test_the_stages_show_while_a_card_is_read(visitor: Visitor) -> None:
    ocr, go_on = ScriptedOcr(), threading.Event()
    ocr.before_reading = lambda: go_on.wait(60)
    with serve_all(ocr) as slow:
        card = open_page(visitor, slow)
        page, t = card.page, card.t
        card.button("card.specimen").click()
        steps = page.get_by_role("list", name=t("card.steps")).get_by_role("listitem")
        expect(steps).to_have_count(4)
        expect(steps.first).to_have_attribute("aria-current", "step")
        expect(page.get_by_text(t("card.first"))).to_be_visible()
        require_accessible(page)
        visitor.picture(page, "card-reading")
        go_on.set()
        card.until_read()
        page.close()  # before its server


def test_a_batch_is_bounded_and_can_be_stopped(visitor: Visitor, tmp_path: Path) -> None:
    ocr, go_on = ScriptedOcr(), threading.Event()
    ocr.before_reading = lambda: go_on.wait(60)
    with serve_all(ocr) as slow:
        card = open_page(visitor, slow)
        page, t = card.page, card.t
        card.choose(*[saved(tmp_path / f"{number}.png", picture(600, 400)) for number in range(_MAX_CARDS + 2)])
        expect(card.rows).to_have_count(_MAX_CARDS)
        expect(page.get_by_text(t("card.too.many", max=_MAX_CARDS)).first).to_be_attached()
        reading = page.locator(".card-table tr[data-state=reading]")
        expect(reading).to_have_count(2)
        card.button("card.stop").click()
        go_on.set()
        expect(page.get_by_text(t("card.batch", done=_MAX_CARDS, number=_MAX_CARDS))).to_be_visible()
        expect(page.locator(".card-table tr[data-state=read]")).to_have_count(2)
        expect(card.rows.last).to_contain_text(t("card.fault.stopped"))
        card.button("card.again.of", name=f"{_MAX_CARDS - 1}.png").click()
        expect(card.rows.last).to_have_attribute("data-state", "read")
        page.close()  # before its server


def test_a_busy_server_is_asked_again(visitor: Visitor, scripted: Served, tmp_path: Path) -> None:
    visitor.expected = ("429",)
    card = open_page(visitor, scripted)
    refusals = [{"detail": {"code": "rate_limit_exceeded", "message": "Busy.", "field": None}}]

    def answer(route: Route) -> None:
        if refusals:
            route.fulfill(status=429, headers={"Retry-After": "1"}, json=refusals.pop())
        else:
            route.continue_()

    card.page.route("**/ktp-ocr/", answer)
    card.choose(saved(tmp_path / "card.png", picture()))
    card.until_read()
    assert refusals == []


def test_a_picture_can_be_pasted_and_dropped(visitor: Visitor, scripted: Served) -> None:
    card = open_page(visitor, scripted)
    send = """async ([kind, size]) => {
      const canvas = Object.assign(document.createElement("canvas"), { width: size, height: size * 0.63 });
      Object.assign(canvas.getContext("2d"), { fillStyle: "#cde" }).fillRect(0, 0, size, size);
      const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
      const data = new DataTransfer();
      data.items.add(new File([blob], `${kind}.png`, { type: "image/png" }));
      const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true })
        : new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
      document.body.dispatchEvent(event);
    }"""
    card.page.evaluate(send, ["dragenter", 1000])
    expect(card.page.get_by_role("heading", name=card.t("card.drop.now"))).to_be_visible()
    card.page.evaluate(send, ["drop", 1000])
    card.until_read()
    card.page.evaluate(send, ["paste", 1000])
    expect(card.rows).to_have_count(2)


def test_a_key_is_asked_for_where_the_server_has_keys(visitor: Visitor, tmp_path: Path) -> None:
    visitor.expected = ("401",)
    with serve_all(api_keys="sk-of-ani") as guarded:
        card = open_page(visitor, guarded)
        card.choose(saved(tmp_path / "card.png", picture()))
        card.page.get_by_role("textbox", name=card.t("key.api"), exact=True).fill("sk-of-ani")
        card.button("key.use").click()
        card.until_read()
        assert {**card.kept(), "session": {}} == NOTHING_KEPT
        card.page.close()  # before its server


def test_a_server_that_cannot_read_cards_says_so_and_why(visitor: Visitor) -> None:
    with serve_all(ktp_engine="vlm") as blind:
        card = open_page(visitor, blind)
        expect(card.page.get_by_role("alert")).to_contain_text(card.t("card.unavailable"))
        expect(card.page.get_by_role("alert")).to_contain_text("KTP_ENGINE=vlm")
        require_accessible(card.page)
        card.page.close()  # before its server


@pytest.fixture(scope="module")
def camera_browser(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Its camera sees a card."""
    path = tmp_path_factory.mktemp("camera") / "card.mjpeg"
    path.write_bytes(film([on_a_table(specimen(_SEED), (1280, 720), 920)] * 3))
    args = [*FAKE_DEVICES, f"--use-file-for-fake-video-capture={path}"]
    with browser.browser_type.launch(executable_path=chromium_path(), args=args) as seeing:
        yield seeing


@on_both_screens
def test_the_camera_aims_with_an_outline(
    camera_browser: Browser, artefacts: Path, look: PageLook, server: Served
) -> None:
    visitor = Visitor(camera_browser, artefacts, look)
    card = open_page(visitor, server)
    page, t = card.page, card.t
    card.button("card.camera").click()
    take = page.get_by_role("dialog").get_by_role("button", name=t("camera.take"), exact=True)
    expect(take).to_be_enabled()
    expect(page.get_by_text(t("card.camera.aim"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "card-camera")
    take.click()
    expect(page.get_by_role("img", name=t("camera.taken"))).to_be_visible()
    card.button("card.camera.use").click()
    card.until_read()
    assert card.value("nama") == "LIA FIRMANSYAH"
    assert card.kept() == NOTHING_KEPT
    visitor.close_pages()
    visitor.require_no_problems()


def test_where_the_camera_is_refused_the_one_of_the_system_is_offered(visitor: Visitor, scripted: Served) -> None:
    card = open_page(visitor, scripted)
    page = card.page
    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError')); }"
    )
    card.button("card.camera").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(card.t("device.refused", device=card.t("device.camera")))
    expect(dialog.locator("input[type=file]")).to_have_attribute("capture", "environment")
    expect(dialog.get_by_role("button", name=card.t("card.camera.system"), exact=True)).to_be_visible()
    require_accessible(page)
