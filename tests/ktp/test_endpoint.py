"""POST /ktp-ocr/ as a client sees it, with scripted lines in place of the OCR engine."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import numpy as np
import pytest
from PIL import Image

from tests.ktp.card_service import (
    PATH,
    ScriptedOcr,
    ScriptedVision,
    encoded,
    form,
    picture,
    serve_all,
    serve_cards,
)
from tests.ktp.printed import CARD, card_lines
from tests.serving import Served
from tests.test_status import until
from tis.admission.limits import AdmissionLimits
from tis.engine.errors import ContextLengthExceeded
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.schemas import BatchAnswer, CardAnswer
from tis.media.limits import MIB, MediaLimits
from tis.observability.metrics import metrics_page

SEED_KEYS = [
    "nik", "nama", "tempat_lahir", "tgl_lahir", "jenis_kelamin", "alamat", "agama", "status_perkawinan", "pekerjaan",
    "kewarganegaraan", "berlaku_hingga",
]  # fmt: skip


@pytest.fixture(scope="module")
def cards() -> Iterator[Served]:
    limits = MediaLimits(max_item_bytes=MIB // 2, max_image_pixels=4_000_000)
    with serve_cards(media_limits=limits, max_batch=4) as running:
        yield running


@pytest.fixture(scope="module")
def whole() -> Iterator[Served]:
    """The whole server, with all its middlewares."""
    with serve_all(api_keys="secret-1,secret-2", max_body_mb=0.1) as running:
        yield running


@pytest.fixture
def client(cards: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=cards.url, timeout=30) as connected:
        yield connected


def error(reply: httpx2.Response) -> tuple[int, str]:
    assert set(reply.json()) == {"detail"} and reply.headers["cache-control"] == "no-store"
    return reply.status_code, reply.json()["detail"]["code"]


@pytest.mark.parametrize("path", [PATH, "/ktp-ocr"])
def test_a_card_is_read(client: httpx2.Client, path: str) -> None:
    reply = client.post(path, **form(picture()))
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")
    card = reply.json()
    assert CardAnswer.model_validate(card).model_dump(by_alias=True) == card, "as /docs says"
    assert [*card][:11] == SEED_KEYS
    assert card["nik"] == CARD["nik"] and card["alamat"]["rt_rw"] == CARD["alamat.rt_rw"]
    assert {**card["confidence"]}.keys() == card["boxes"].keys() == CARD.keys()
    assert card["confidence"]["nik"] > 0.9
    assert [len(point) for point in card["boxes"]["nik"]] == [2, 2, 2, 2]
    assert card["nik_info"]["region"]["regency"] == "KABUPATEN BOGOR"
    assert card["nik_info"]["checks"] == {"date": True, "sex": True, "regency": True, "known_code": True}
    assert (card["gol_darah"], card["provinsi"], card["warnings"], card["repairs"]) == (
        "O", "PROVINSI JAWA BARAT", [], [],
    )  # fmt: skip
    assert card["engine"]["path"] == "ocr" and card["engine"]["model"] is None
    assert {"labels", "readings"}.isdisjoint(card)


def test_a_client_chooses_how_much_it_gets(client: httpx2.Client) -> None:
    basic = client.post(f"{PATH}?detail=basic", **form(picture())).json()
    assert [*basic] == SEED_KEYS
    full = client.post(f"{PATH}?detail=full", **form(picture())).json()
    assert full["readings"]["ocr"]["nama"] == {"value": CARD["nama"], "confidence": full["confidence"]["nama"]}
    assert {"nik", "nama", "birth"} <= set(full["labels"])


def test_a_masked_nik_is_nowhere_in_the_answer() -> None:
    # A weak digit of the date, which the check repairs: both spellings are masked, too.
    wrong = CARD["nik"].replace("170885", "170685")
    with serve_cards(ScriptedOcr(card_lines({"nik": wrong}, scores={"nik": 0.85}))) as shown:
        reply = httpx2.post(f"{shown.url}{PATH}?mask=nik&detail=full", **form(picture()))
    card = reply.json()
    assert [repair["field"] for repair in card["repairs"]] == ["nik"]
    assert card["nik"] == "320101******9001" == card["repairs"][0]["to"] == card["readings"]["ocr"]["nik"]["value"]
    assert CARD["nik"] not in reply.text and wrong not in reply.text


def test_values_that_cards_print_differently_are_normalized_beside_them() -> None:
    with serve_cards(ScriptedOcr(card_lines({"agama": "KATHOLIK"}))) as shown:
        card = httpx2.post(shown.url + PATH, **form(picture())).json()
    assert (card["agama"], card["normalized"]) == ("KATHOLIK", {"agama": "KATOLIK"})


def test_pictures_come_upright_and_on_white() -> None:
    ocr = ScriptedOcr()
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    transparent = encoded(np.zeros((60, 80, 4), np.uint8), "PNG")
    with serve_cards(ocr) as shown:
        for data in (
            picture(400, 300, "JPEG", exif=exif),
            picture(80, 60, "WEBP"),
            picture(80, 60, "BMP"),
            transparent,
        ):
            assert httpx2.post(shown.url + PATH, **form(data)).status_code == 200
        two_pages = [Image.new("RGB", (90, 70), "white"), Image.new("RGB", (30, 20), "black")]
        tiff = encoded(np.full((70, 90, 3), 255, np.uint8), "TIFF", save_all=True, append_images=two_pages[1:])
        assert httpx2.post(shown.url + PATH, **form(tiff)).status_code == 200
    assert ocr.sizes == [(300, 400), (80, 60), (80, 60), (80, 60), (90, 70)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"%PDF-1.7 no picture", (400, "not_an_image")),
        (b"", (400, "not_an_image")),
        (picture()[:200], (400, "bad_image")),
        (picture(3000, 2000), (413, "too_large")),
        (b"x" * (MIB // 2 + 1), (413, "too_large")),
        (picture(level=0), (422, "ktp_not_found")),
    ],
    ids=["no picture", "empty", "broken", "pixels", "bytes", "no card"],
)
def test_a_refusal_says_what_to_change(client: httpx2.Client, data: bytes, expected: tuple[int, str]) -> None:
    reply = client.post(PATH, **form(data, file_name="siti-rahasia.png"))
    assert error(reply) == expected
    detail = reply.json()["detail"]
    assert detail["field"] == "image" and "siti" not in reply.text and "PIL" not in reply.text
    if expected[1] == "ktp_not_found":
        assert detail["seen"]["labels"] == 0 and detail["seen"]["quality"]["dark"]


@pytest.mark.parametrize(
    ("request_parts", "expected"),
    [
        ({"files": {"picture": b"x"}}, (422, "missing_field")),
        ({"json": {"image": "x"}}, (422, "missing_field")),
        ({}, (422, "missing_field")),
        ({"files": [("image", picture()), ("image", picture())]}, (422, "too_many_images")),
        ({"files": {"image": picture()}, "params": {"detail": "everything"}}, (422, "invalid_parameter")),
        ({"files": {"image": picture()}, "params": {"masc": "nik"}}, (422, "invalid_parameter")),
        ({"content": b"--x\r\n", "headers": {"content-type": "multipart/form-data; boundary=x"}}, (400, "bad_form")),
        ({"content": b"?", "headers": {"content-type": "multipart/form-data"}}, (400, "bad_form")),
    ],
    ids=["other field", "json", "nothing", "two", "detail", "misspelled", "cut", "no boundary"],
)
def test_a_wrong_form_is_told_apart_by_its_code(
    client: httpx2.Client, request_parts: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert error(client.post(PATH, **request_parts)) == expected


def test_other_methods_and_paths_have_the_same_shape_of_errors(client: httpx2.Client) -> None:
    assert error(client.get(PATH)) == (405, "method_not_allowed")
    assert error(client.post("/ktp-ocr/other")) == (404, "unknown_url")


KEY = {"Authorization": "Bearer secret-2"}


@pytest.mark.parametrize("path", [PATH, "/ktp-ocr", "/ktp-ocr/batch", "/ktp-ocr/batch/"])
def test_keys_are_required_as_for_v1(whole: Served, path: str) -> None:
    assert error(httpx2.post(whole.url + path, **form(picture()))) == (401, "invalid_api_key")
    name = "images[]" if "batch" in path else "image"
    assert httpx2.post(whole.url + path, headers=KEY, **form(picture(), name)).status_code == 200


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_over_the_limit_of_the_server_is_a_413(whole: Served, announced: bool) -> None:
    part = b'--y\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
    body = part + b"x" * 200_000 + b"\r\n--y--\r\n"
    headers = {**KEY, "Content-Type": "multipart/form-data; boundary=y"}
    reply = httpx2.post(whole.url + PATH, headers=headers, content=body if announced else iter([body]))
    assert error(reply) == (413, "too_large")


def test_without_an_engine_the_answer_is_a_503_and_health_says_why() -> None:
    def fail() -> Any:
        raise ImportError("libsomething.so at /a/secret/path")

    with serve_all(lazy=LazyOcr(fail)) as broken:
        reply = httpx2.post(broken.url + PATH, **form(picture()))
        assert error(reply) == (503, "ocr_unavailable") and "secret" not in reply.text
        assert reply.headers["retry-after"] == "30"
        health = httpx2.get(f"{broken.url}/health").json()
        assert (health["ktp"], health["ktpError"]) == ("unavailable", reply.json()["detail"]["message"])
        assert httpx2.get(f"{broken.url}/ready").json()["ktp"] == "unavailable"


def test_a_vision_engine_without_a_vision_model_is_a_503() -> None:
    with serve_cards(engine="vlm") as blind:
        reply = httpx2.post(blind.url + PATH, **form(picture()))
    assert error(reply) == (503, "ocr_unavailable") and "KTP_ENGINE" in reply.json()["detail"]["message"]


def test_health_and_ready_say_that_the_reader_works() -> None:
    with serve_all() as fresh:
        assert httpx2.get(f"{fresh.url}/ready").json()["ktp"] == "waiting"
        httpx2.post(fresh.url + PATH, **form(picture()))
        health = httpx2.get(f"{fresh.url}/health").json()
        assert (health["ktp"], health["ktpPath"], health["ktpError"]) == ("ready", "ocr", None)


def test_a_card_that_takes_too_long_is_a_504() -> None:
    ocr, end = ScriptedOcr(), threading.Event()
    ocr.before_reading = lambda: end.wait(20)
    with serve_cards(ocr, picture_seconds=0.05) as slow:
        reply = httpx2.post(slow.url + PATH, **form(picture()))
        end.set()
    assert error(reply) == (504, "timeout")


def test_a_server_that_ends_reads_no_more_cards() -> None:
    with serve_cards() as ending:
        ending.app.state.ktp.drain()
        assert error(httpx2.post(ending.url + PATH, **form(picture()))) == (503, "server_shutting_down")


def test_who_waits_too_long_for_a_reader_gets_a_429() -> None:
    ocr, end, begun = ScriptedOcr(), threading.Event(), threading.Event()
    ocr.before_reading = lambda: begun.set() or end.wait(20)  # type: ignore[func-returns-value]
    limits = AdmissionLimits(max_card_readers=1, wait_seconds=0.05)
    with serve_cards(ocr, num_workers=1, admission_limits=limits) as busy:
        first = threading.Thread(target=lambda: httpx2.post(busy.url + PATH, timeout=30, **form(picture())))
        first.start()
        assert begun.wait(20)
        reply = httpx2.post(busy.url + PATH, **form(picture()))
        assert error(reply) == (429, "rate_limit_exceeded") and int(reply.headers["retry-after"]) >= 1
        admission = busy.app.state.admission
        assert admission.used("decoded_bytes") == 1300 * 900 * 3, "what waits has no pixels"
        assert admission.used("requests") == 0, "others may come"
        end.set()
        first.join()
        assert busy.app.state.admission.used("card_readers") == 0


def test_everything_that_a_card_held_comes_back(cards: Served, client: httpx2.Client) -> None:
    client.post(PATH, **form(picture()))
    client.post(PATH, **form(picture(level=0)))
    admission = cards.app.state.admission
    resources = ("requests", "body_bytes", "media_bytes", "decoded_bytes", "image_decoders", "card_readers")
    until(lambda: [admission.used(name) for name in resources] == [0] * 6)


def test_metrics_count_outcomes(client: httpx2.Client) -> None:
    def counted(outcome: str) -> float:
        for line in metrics_page().decode().splitlines():
            if line.startswith(f'tis_ktp_pictures_total{{outcome="{outcome}"}} '):
                return float(line.rpartition(" ")[2])
        return 0.0

    before = counted("read"), counted("not_found")
    client.post(PATH, **form(picture()))
    client.post(PATH, **form(picture(level=0)))
    assert (counted("read"), counted("not_found")) == (before[0] + 1, before[1] + 1)


def events_of(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [(event.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for event, data in blocks]


def test_a_page_can_follow_the_stages(client: httpx2.Client) -> None:
    reply = client.post(PATH, headers={"Accept": "text/event-stream"}, **form(picture()))
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-store"
    *stages, (last, card) = events_of(reply.text)
    assert [data["stage"] for kind, data in stages] == ["found", "rectified", "read", "checked"]
    assert (last, card["nik"]) == ("result", CARD["nik"])


def test_a_stream_without_a_card_ends_with_an_error(client: httpx2.Client) -> None:
    [(kind, data)] = events_of(
        client.post(PATH, headers={"Accept": "text/event-stream"}, **form(picture(level=0))).text
    )
    assert (kind, data["status"], data["detail"]["code"]) == ("error", 422, "ktp_not_found")


class TestBatch:
    def test_results_have_the_order_of_the_pictures(self, client: httpx2.Client) -> None:
        files = [picture(), b"no picture", picture(level=0), b"x" * (MIB // 2 + 1)]
        reply = client.post("/ktp-ocr/batch", files=[("images[]", (f"{n}.png", data)) for n, data in enumerate(files)])
        assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")
        results = reply.json()["results"]
        BatchAnswer.model_validate(reply.json())
        assert [(one["index"], one["ok"]) for one in results] == [(0, True), (1, False), (2, False), (3, False)]
        assert results[0]["data"]["nik"] == CARD["nik"]
        codes = [one["error"]["code"] for one in results[1:]]
        assert codes == ["not_an_image", "ktp_not_found", "too_large"]
        assert results[1]["error"]["field"] == "images[1]"

    def test_it_is_bounded(self, client: httpx2.Client) -> None:
        five = client.post("/ktp-ocr/batch", files=[("images", picture())] * 5)
        assert error(five) == (422, "too_many_images")
        assert error(client.post("/ktp-ocr/batch", files={"image": picture()})) == (422, "missing_field")

    def test_what_is_not_read_in_time_has_an_error(self) -> None:
        ocr, end = ScriptedOcr(), threading.Event()
        ocr.before_reading = lambda: end.wait(20)
        with serve_cards(ocr, batch_seconds=0.05) as slow:
            reply = httpx2.post(f"{slow.url}/ktp-ocr/batch", files=[("images[]", picture())] * 5, timeout=30)
            end.set()
        results = reply.json()["results"]
        assert reply.status_code == 200 and [one["index"] for one in results] == [*range(5)]
        assert {one["error"]["code"] for one in results} == {"timeout"}

    def test_a_fault_of_ours_fails_one_picture_alone(self) -> None:
        ocr, turns = ScriptedOcr(), iter([1, 0])
        ocr.before_reading = lambda: 1 / next(turns)
        with serve_cards(ocr, num_workers=1) as faulty:
            reply = httpx2.post(f"{faulty.url}/ktp-ocr/batch", files=[("images[]", picture())] * 2)
        failed, read = sorted(reply.json()["results"], key=lambda one: one["ok"])
        assert (read["ok"], failed["error"]["code"]) == (True, "internal_error")


class TestVision:
    def test_with_a_vision_model_both_read(self) -> None:
        vision = ScriptedVision()
        with serve_cards(vision=vision) as seeing:
            headers = {"Accept": "text/event-stream"}
            card = httpx2.post(f"{seeing.url}{PATH}?detail=full", **form(picture())).json()
            streamed = httpx2.post(seeing.url + PATH, headers=headers, **form(picture())).text
        assert (card["engine"]["path"], card["engine"]["model"]) == ("fused", "eyes")
        assert card["nik"] == CARD["nik"] and set(card["readings"]) == {"ocr", "vlm"}
        assert card["confidence"]["nama"] > card["readings"]["ocr"]["nama"]["confidence"]
        assert set(card["engine"]["ms"]) == {"decode", "ocr", "vlm"}
        assert [data.get("stage") for _, data in events_of(streamed)[:-1]] == ["found", "rectified", "read", "checked"]

    def test_a_vision_model_alone(self) -> None:
        with serve_cards(vision=ScriptedVision(), engine="vlm") as seeing:
            card = httpx2.post(seeing.url + PATH, **form(picture())).json()
        assert (card["engine"]["path"], card["nik"], card["nama"]) == ("vlm", CARD["nik"], CARD["nama"])
        assert card["confidence"]["nik"] <= 0.8 and card["boxes"]["nik"] is None

    @pytest.mark.parametrize(("engine", "status"), [("auto", 200), ("vlm", 200), ("fused", 503)])
    def test_a_broken_ocr_engine_leaves_the_model(self, engine: str, status: int) -> None:
        def fail() -> Any:
            raise OSError

        with serve_cards(lazy=LazyOcr(fail), vision=ScriptedVision(), engine=engine) as half:
            reply = httpx2.post(half.url + PATH, **form(picture()))
        assert reply.status_code == status
        if status == 200:
            assert (reply.json()["engine"]["path"], reply.json()["quality"]) == ("vlm", None)

    def test_a_picture_that_the_model_calls_no_card_is_refused(self) -> None:
        blind = ScriptedVision(dict.fromkeys(ScriptedVision().values), is_ktp=False)
        with serve_cards(vision=blind, engine="vlm") as seeing:
            assert error(httpx2.post(seeing.url + PATH, **form(picture()))) == (422, "ktp_not_found")

    def test_a_picture_without_a_card_never_reaches_the_model(self) -> None:
        vision = ScriptedVision()
        with serve_cards(vision=vision) as seeing:
            assert error(httpx2.post(seeing.url + PATH, **form(picture(level=0)))) == (422, "ktp_not_found")
        assert vision.asked == []

    def test_a_client_that_leaves_stops_the_model(self) -> None:
        vision = ScriptedVision()
        vision.never_ends = True
        with serve_cards(vision=vision) as seeing:
            request = httpx2.Request("POST", seeing.url + PATH, **form(picture()))
            body = request.read()
            lines = [f"POST {PATH} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers.items())]
            with socket.create_connection((request.url.host, request.url.port or 80)) as leaving:
                leaving.sendall("\r\n".join([*lines, "", ""]).encode() + body)
                assert vision.has_begun.wait(20)
            assert vision.has_stopped.wait(20)

    @pytest.mark.parametrize(("engine", "status"), [("auto", 200), ("fused", 503), ("vlm", 503)])
    def test_a_model_that_fails_leaves_ocr_where_both_were_a_choice(self, engine: str, status: int) -> None:
        vision = ScriptedVision()
        vision.failure = ContextLengthExceeded(64, "you requested 700 tokens in the messages.")
        with serve_cards(vision=vision, engine=engine) as seeing:
            reply = httpx2.post(seeing.url + PATH, **form(picture()))
        assert reply.status_code == status and "tokens" not in reply.text
        if status == 200:
            assert reply.json()["engine"]["path"] == "ocr"
            assert [warning["code"] for warning in reply.json()["warnings"]] == ["model_unavailable"]


def test_the_demo_model_is_not_asked_for_cards() -> None:
    with serve_all(model_repo_id="models/demo") as demo:
        card = httpx2.post(demo.url + PATH, **form(picture())).json()
        assert (card["engine"]["path"], card["engine"]["model"]) == ("ocr", None)
