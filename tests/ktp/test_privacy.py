"""Values of cards are in answers alone: not in logs, files, databases, metrics or errors."""

import gc
import logging
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.ktp.card_service import PATH, ScriptedOcr, ScriptedVision, encoded, form, picture, serve_cards
from tests.ktp.printed import CARD
from tests.serving import Served, served, settings_with
from tis.http.multipart import FormPart
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.vision_reply import PROMPT

FILE_NAME = "ktp-siti-rahasia.png"
# What identifies somebody; WNI or ISLAM would be found anywhere.
SECRETS = [CARD["nik"], CARD["nama"], CARD["tgl_lahir"], CARD["alamat.name"], "1985-08-17", FILE_NAME, PROMPT[:30]]
MARKED = b"SECRET-BYTES-OF-THE-PICTURE"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder and the folder for temporary files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def ocr() -> ScriptedOcr:
    return ScriptedOcr()


@pytest.fixture
def server(folder: Path, ocr: ScriptedOcr) -> Iterator[Served]:
    settings = settings_with(
        log_level="debug",
        persist_sessions=True,
        sessions_db_path=str(folder / "sessions.db"),
        database_url=f"sqlite:///{folder}/market.db",
    )
    with served(settings, ocr=LazyOcr(lambda: ocr), card_vision=ScriptedVision()) as running:
        yield running


def test_nothing_of_a_card_stays(
    folder: Path, server: Served, ocr: ScriptedOcr, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    card = encoded(np.random.default_rng(1).integers(1, 255, (800, 1000, 3)).astype(np.uint8), "PNG") + MARKED
    assert len(card) > 2**21, "larger than what form parsers keep in memory"
    opened = _temporary_files(monkeypatch)
    shown = [
        httpx2.post(server.url + PATH, **form(card, file_name=FILE_NAME)),
        httpx2.post(server.url + PATH, headers={"Accept": "text/event-stream"}, **form(card, file_name=FILE_NAME)),
        httpx2.post(f"{server.url}/ktp-ocr/batch?detail=full", **form(card, "images[]", FILE_NAME)),
    ]
    assert all(reply.status_code == 200 and CARD["nik"] in reply.text for reply in shown)
    refused = [
        httpx2.post(server.url + PATH, **form(card[:5000], file_name=FILE_NAME)),
        httpx2.post(server.url + PATH, **form(MARKED, file_name=FILE_NAME)),
        httpx2.post(server.url + PATH, **form(picture(level=0), file_name=FILE_NAME)),
        httpx2.post(server.url + PATH, **form(card, FILE_NAME)),
    ]
    ocr.before_reading = lambda: int(CARD["nik"] + "x")
    refused.append(httpx2.post(server.url + PATH, **form(card, file_name=FILE_NAME)))
    assert [reply.status_code for reply in refused] == [400, 400, 422, 422, 500]

    metrics = httpx2.get(f"{server.url}/metrics").text
    for place, text in {"log": caplog.text, "metrics": metrics, "errors": "".join(r.text for r in refused)}.items():
        assert [secret for secret in SECRETS if secret in text] == [], place
    assert "POST /ktp-ocr/" in caplog.text, "there is a log at all"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"sessions.db", "market.db"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        assert [secret for secret in SECRETS if secret.encode() in content] == [] and MARKED not in content, path
    assert opened == []


def _temporary_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []

    def refuse(*_: Any, **__: Any) -> Any:
        opened.append("file")
        raise OSError("no temporary file may be opened")

    for name in ("TemporaryFile", "NamedTemporaryFile", "mkstemp"):
        monkeypatch.setattr(tempfile, name, refuse)
    return opened


def test_pictures_are_gone_when_the_answer_is_there(ocr: ScriptedOcr) -> None:
    seen: list[weakref.ref[Any]] = []
    ocr.on_picture = lambda pixels: seen.append(weakref.ref(pixels))
    with serve_cards(ocr, ScriptedVision()) as cards:
        for data in (picture(), picture(level=0)):
            httpx2.post(cards.url + PATH, **form(data))
        gc.collect()
        assert [one() for one in seen] == [None, None]


def test_an_upload_is_taken_once() -> None:
    upload = FormPart("image", is_file=True, data=bytearray(MARKED))
    assert (upload.take(), upload.take(), upload.data) == (MARKED, b"", bytearray())
