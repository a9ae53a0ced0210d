"""The engine as the reader of cards: a Qwen3-VL of random weights, which writes nonsense in the right form."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
import transformers

from tests.engine.batching.tiny_vision import new_vision_model
from tests.engine.vision.cases import FAMILIES, make_folder
from tests.ktp.card_service import PATH, ScriptedOcr, form, picture
from tests.ktp.printed import CARD
from tests.serving import Served, served, settings_with
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.schemas import FullCardAnswer
from tis.ktp.vision_reply import PROMPT

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_folder(tmp_path_factory.mktemp("models") / "eyes", FAMILIES["qwen3"])
    known = transformers.AutoConfig.from_pretrained(folder)
    model = new_vision_model("qwen3_vl", len(transformers.AutoTokenizer.from_pretrained(folder)))
    model.config.text_config.max_position_embeddings = 4096
    for name in ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id"):
        setattr(model.config, name, getattr(known, name))
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def seeing(folder: Path) -> Iterator[Served]:
    settings = settings_with(
        ktp_engine="fused",
        model_repo_id=str(folder),
        torch_dtype="float32",
        load_wait_seconds=120,
        max_shown_pixels=128 * 128,
    )
    with served(settings, ocr=LazyOcr(ScriptedOcr)) as running:
        yield running


def test_whatever_it_writes_the_answer_has_its_shape(seeing: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    reply = httpx2.post(f"{seeing.url}{PATH}?detail=full", timeout=120, **form(picture()))
    assert reply.status_code == 200, reply.text
    card = FullCardAnswer.model_validate(reply.json())
    assert card.engine.path == "fused" and set(card.readings) == {"ocr", "vlm"}
    assert set(card.readings["vlm"]) == set(CARD)
    assert all(one.value is None or one.confidence <= 0.5 for one in card.readings["vlm"].values())
    assert (card.nik, card.nama) == (CARD["nik"], CARD["nama"])
    assert [*seeing.app.state.sessions] == [], "nothing is recorded"
    assert PROMPT[:30] not in caplog.text and CARD["nama"] not in caplog.text


def test_a_model_too_small_to_read_is_not_asked_unless_chosen(seeing: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = seeing.app.state.ktp
    monkeypatch.setattr(reader, "limits", replace(reader.limits, engine="auto"))
    card = httpx2.post(seeing.url + PATH, timeout=120, **form(picture())).json()
    assert (card["engine"]["path"], card["engine"]["model"]) == ("ocr", None)


def test_alone_its_nonsense_is_no_card(seeing: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = seeing.app.state.ktp
    monkeypatch.setattr(reader, "limits", replace(reader.limits, engine="vlm"))
    reply = httpx2.post(seeing.url + PATH, timeout=120, **form(picture()))
    assert (reply.status_code, reply.json()["detail"]["code"]) == (422, "ktp_not_found")
