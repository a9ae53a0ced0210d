"""A server whose readers of cards are scripted: lines in place of OCR, tokens in place of a vision model."""

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from typing import Any

import numpy as np
from PIL import Image

from tests.ktp.printed import CARD, card_lines, text_line
from tests.serving import Served, served, settings_with
from tis.admission.ticket import Ticket
from tis.ktp.ocr import Pixels
from tis.ktp.ocr_card_reader import OcrCard, OcrCardReader, OnStage
from tis.ktp.reader import LazyOcr
from tis.ktp.regions import regions
from tis.ktp.text_lines import TextLine
from tis.ktp.vision_model import ReplyToken

PATH = "/ktp-ocr/"
Values = Mapping[str, Any]


class ScriptedOcr:
    """Reads the same lines on every picture that is not black; notes the sizes that it saw."""

    def __init__(self, lines: Sequence[TextLine] | None = None) -> None:
        self._lines = card_lines() if lines is None else [*lines]
        self.sizes: list[tuple[int, int]] = []
        self.before_reading: Callable[[], object] = lambda: None

    def read(self, picture: Pixels, today: date, on_stage: OnStage = lambda stage: None) -> OcrCard:
        self.before_reading()
        self.sizes.append((picture.shape[1], picture.shape[0]))
        lines = self._lines if picture.any() else [text_line("KWITANSI", 10, 10)]
        return OcrCardReader(_Lines(lines), regions()).read(picture, today, on_stage)


class _Lines:
    def __init__(self, lines: list[TextLine]) -> None:
        self._lines = lines

    def read(self, picture: Pixels) -> list[TextLine]:
        return self._lines

    def read_strip(self, strip: Pixels) -> TextLine | None:
        return None


class ScriptedVision:
    """A vision model that answers with these values; `sure` has probabilities, and what the grammar overruled."""

    def __init__(
        self, changes: Values | None = None, sure: Mapping[str, tuple[float, float]] | None = None, **flags: Any
    ) -> None:
        self.values = {"is_ktp": True, **vision_values(), **(changes or {}), **flags}
        self._sure = sure or {}
        self.asked: list[tuple[int, int]] = []
        self.failure: Exception | None = None

    async def served(self) -> str | None:
        return "eyes"

    async def ask(
        self, model_id: str, picture: Any, prompt: str, schema: Values, max_tokens: int, ticket: Ticket
    ) -> Sequence[ReplyToken]:
        self.asked.append((picture.shape[1], picture.shape[0]))
        if self.failure:
            raise self.failure
        return reply_tokens({key: self.values.get(key) for key in schema["properties"]}, self._sure)


def vision_values() -> dict[str, Any]:
    """What a model that sees well says of `CARD`."""
    return {"alamat" if name == "alamat.name" else name.rpartition(".")[2]: value for name, value in CARD.items()}


def reply_tokens(values: Values, sure: Mapping[str, tuple[float, float]] | None = None) -> list[ReplyToken]:
    """JSON as a model would write it, a token for each character of a value."""
    import json

    tokens = [ReplyToken(b"{", 0.2)]
    for number, (key, value) in enumerate(values.items()):
        probability, overruled = (sure or {}).get(key, (0.99, 0.0))
        tokens.append(ReplyToken(f"{', ' if number else ''}{json.dumps(key)}: ".encode(), 0.1))
        tokens += [ReplyToken(character.encode(), probability, overruled) for character in json.dumps(value)]
    return [*tokens, ReplyToken(b"}", 1.0)]


def serve_cards(
    ocr: ScriptedOcr | None = None, vision: Any = None, *, lazy: LazyOcr | None = None, **settings: Any
) -> AbstractContextManager[Served]:
    """Without `vision`, the echo model is served, which sees nothing."""
    own = ocr or ScriptedOcr()
    return served(settings_with(**settings), ocr=lazy or LazyOcr(lambda: own), card_vision=vision)


def picture(width: int = 1300, height: int = 900, kind: str = "PNG", level: int = 200, **options: Any) -> bytes:
    """`level` 0 is black: no card for `ScriptedOcr`."""
    return encoded(np.full((height, width, 3), level, np.uint8), kind, **options)


def encoded(pixels: Pixels, kind: str = "JPEG", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def form(data: bytes, name: str = "image", file_name: str = "card.png") -> dict[str, Any]:
    return {"files": {name: (file_name, data)}}
