"""A server whose readers of cards are scripted: lines in place of OCR, tokens in place of a vision model."""

import asyncio
import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

import numpy as np
from fastapi import FastAPI
from PIL import Image

from tests.ktp.printed import CARD, card_lines, text_line
from tests.serving import Served, listening, served, settings_with
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.admission.ticket import Ticket
from tis.http.admission import AdmissionMiddleware
from tis.http.api_keys import ApiKeys
from tis.http.error_handlers import UnhandledErrorMiddleware, install_error_handlers
from tis.http.key_check import ApiKeyMiddleware
from tis.http.transport.limits import TransportLimits
from tis.ktp.card_result import CardLimits
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.ocr import Pixels
from tis.ktp.ocr_card_reader import OcrCard, OcrCardReader, OnStage
from tis.ktp.reader import CardReader
from tis.ktp.regions import regions
from tis.ktp.routes import router
from tis.ktp.text_lines import TextLine
from tis.ktp.vision_model import ReplyToken
from tis.media.limits import MIB
from tis.media.loader import MediaLimits, MediaLoader

PATH = "/ktp-ocr/"
Values = Mapping[str, Any]


class ScriptedOcr:
    """Reads the same lines on every picture that is not black; notes the sizes that it saw."""

    def __init__(self, lines: Sequence[TextLine] | None = None) -> None:
        self._lines = card_lines() if lines is None else [*lines]
        self.sizes: list[tuple[int, int]] = []
        self.before_reading: Callable[[], object] = lambda: None
        self.on_picture: Callable[[Pixels], object] = lambda picture: None

    def read(self, picture: Pixels, today: date, on_stage: OnStage = lambda stage: None) -> OcrCard:
        self.before_reading()
        self.on_picture(picture)
        self.sizes.append((picture.shape[1], picture.shape[0]))
        lines = self._lines if picture.any() else [text_line("KWITANSI", 10, 10)]
        return OcrCardReader(_Lines(lines), regions()).read(picture, today, on_stage)


class _Lines:
    def __init__(self, lines: list[TextLine]) -> None:
        self._lines = lines

    def read(self, picture: Pixels) -> list[TextLine]:
        return self._lines

    def read_strips(self, strips: list[Pixels]) -> list[TextLine | None]:
        return [None for _ in strips]


class ScriptedVision:
    """A vision model that answers with these values; `sure` has probabilities, and what the grammar overruled."""

    def __init__(
        self, changes: Values | None = None, sure: Mapping[str, tuple[float, float]] | None = None, **flags: Any
    ) -> None:
        self.values = {"is_ktp": True, **vision_values(), **(changes or {}), **flags}
        self._sure = sure or {}
        self.asked: list[tuple[int, int]] = []
        self.failure: Exception | None = None
        self.never_ends, self.has_begun, self.has_stopped = False, threading.Event(), threading.Event()

    async def served(self, *, is_chosen: bool) -> str | None:
        return "eyes"

    async def ask(
        self, model_id: str, picture: Any, prompt: str, schema: Values, max_tokens: int, ticket: Ticket
    ) -> Sequence[ReplyToken]:
        self.asked.append((picture.shape[1], picture.shape[0]))
        if self.failure:
            raise self.failure
        if self.never_ends:
            self.has_begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.has_stopped.set()
        return reply_tokens({key: self.values.get(key) for key in schema["properties"]}, self._sure)


def vision_values() -> dict[str, Any]:
    """What a model that sees well says of `CARD`."""
    return {"alamat" if name == "alamat.name" else name.rpartition(".")[2]: value for name, value in CARD.items()}


def reply_tokens(values: Values, sure: Mapping[str, tuple[float, float]] | None = None) -> list[ReplyToken]:
    """JSON as a model would write it, a token for each character of a value."""
    tokens = [ReplyToken(b"{", 0.2)]
    for number, (key, value) in enumerate(values.items()):
        probability, overruled = (sure or {}).get(key, (0.99, 0.0))
        tokens.append(ReplyToken(f"{', ' if number else ''}{json.dumps(key)}: ".encode(), 0.1))
        tokens += [ReplyToken(character.encode(), probability, overruled) for character in json.dumps(value)]
    return [*tokens, ReplyToken(b"}", 1.0)]


class NoVision:
    """Of a server with models that see nothing."""

    async def served(self, *, is_chosen: bool) -> str | None:
        return None

    async def ask(self, *_: Any) -> Sequence[ReplyToken]:
        raise AssertionError("nobody may ask it")


@contextmanager
def serve_cards(
    ocr: ScriptedOcr | None = None,
    vision: Any = None,
    *,
    lazy: LazyOcr | None = None,
    admission_limits: AdmissionLimits | None = None,
    media_limits: MediaLimits | None = None,
    **limits: Any,
) -> Iterator[Served]:
    """The routes of cards alone, which start faster than the whole server."""
    own = ocr or ScriptedOcr()
    admission, media = Admission(admission_limits), MediaLoader(media_limits or MediaLimits())
    app = FastAPI(openapi_url=None)
    app.state.admission = admission
    app.state.ktp = reader = CardReader(
        CardLimits(**limits), lazy or LazyOcr(lambda: own), vision or NoVision(), media, admission
    )
    app.include_router(router)
    app.add_middleware(AdmissionMiddleware, admission=admission, max_body_bytes=64 * MIB)
    app.add_middleware(ApiKeyMiddleware, keys=ApiKeys([]))
    app.add_middleware(UnhandledErrorMiddleware)
    install_error_handlers(app)
    try:
        with listening(app, TransportLimits()) as url:
            yield Served(url, app)
    finally:
        reader.close()
        asyncio.run(media.close())


def serve_all(ocr: ScriptedOcr | None = None, *, lazy: LazyOcr | None = None, **settings: Any) -> Any:
    own = ocr or ScriptedOcr()
    return served(settings_with(**settings), ocr=lazy or LazyOcr(lambda: own))


def picture(width: int = 1300, height: int = 900, kind: str = "PNG", level: int = 200, **options: Any) -> bytes:
    """`level` 0 is black: no card for `ScriptedOcr`."""
    return encoded(np.full((height, width, 3), level, np.uint8), kind, **options)


def encoded(pixels: Pixels, kind: str = "JPEG", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def form(data: bytes, name: str = "image", file_name: str = "card.png") -> dict[str, Any]:
    return {"files": {name: (file_name, data)}}
