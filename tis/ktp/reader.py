"""Reads cards: decodes a picture, reads it with OCR, with a vision model or with both, and checks what was read.

Nothing of a card outlives its request, and nothing of it is logged.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.errors import Draining, ServiceError
from tis.http.multipart import FormPart
from tis.ktp.card_result import CardLimits, CardResult, ReaderStatus, quality_of
from tis.ktp.errors import RETRY_SECONDS, CardNotFound, CardTimeout, OcrUnavailable, picture_refused
from tis.ktp.lazy_ocr import LazyOcr, OnStage, Stage
from tis.ktp.metrics import PICTURES, READ_SECONDS, REPAIRS, EnginePath, count_failure
from tis.ktp.uploads import require_size
from tis.ktp.vision_model import ReplyToken, VisionModel
from tis.media.errors import BadMedia
from tis.media.loader import LoadedImage, MediaLoader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tis.ktp.card_checks import CheckedCard
    from tis.ktp.ocr_card_reader import OcrCard
    from tis.ktp.vision_reply import VisionCard

    Pixels: TypeAlias = NDArray[np.uint8]

T = TypeVar("T")

_CROP_WIDTH = 1120  # of the card that a vision model gets


@dataclass(frozen=True)
class _Look:
    """A decoded picture, and what OCR says of it."""

    path: EnginePath
    model: str | None
    card: "OcrCard | None"
    crop: "Pixels"  # the card alone, where OCR found it
    began_at: float
    ends_at: float  # when reading is given up; what waits for a reader has all of its time before it
    took: dict[str, int]  # milliseconds


class CardReader:
    """Used on the event loop."""

    def __init__(
        self,
        limits: CardLimits,
        ocr: LazyOcr,
        vision: VisionModel,
        media: MediaLoader,
        admission: Admission,
        today: Callable[[], date] = date.today,
    ) -> None:
        self.limits, self.max_bytes = limits, media.limits.max_item_bytes
        self._ocr, self._vision, self._media, self._admission = ocr, vision, media, admission
        self._today = today
        self._threads = ThreadPoolExecutor(limits.num_workers, thread_name_prefix="ktp")
        self._is_draining = False

    async def status(self) -> ReaderStatus:
        try:
            path, model = await self._path()
        except OcrUnavailable as error:
            return ReaderStatus("unavailable", None, error.message)
        if path == "vlm" or (self._ocr.failure and self._may_do_without_ocr(model)):
            return ReaderStatus("ready", "vlm", None)
        if self._ocr.failure:
            return ReaderStatus("unavailable", path, self._ocr.failure)
        return ReaderStatus("ready" if self._ocr.is_loaded else "waiting", path, None)

    async def read(self, picture: FormPart, owner: str, field_name: str, on_stage: OnStage) -> CardResult:
        """Raises the ServiceError that the client gets."""
        try:
            result = await self._read(picture, owner, field_name, on_stage)
        except Exception as error:
            count_failure(error)
            raise
        PICTURES.labels("read").inc()
        REPAIRS.inc(len(result.checked.repairs))
        return result

    async def check(self, values: Mapping[str, str | None]) -> "CheckedCard":
        """What the checks say of given fields; no picture is needed, and nothing that reads one."""
        return await asyncio.to_thread(_checked_values, values, self._today())

    def drain(self) -> None:
        """Refuses new pictures."""
        self._is_draining = True

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _read(self, picture: FormPart, owner: str, field_name: str, on_stage: OnStage) -> CardResult:
        if self._is_draining:
            raise Draining
        path, model = await self._path()
        # A ticket for each picture: those of a batch come and go one by one.
        ticket = self._admission.ticket(owner)
        try:
            # Before it is decoded: what waits for a reader has a file only, and no pixels.
            async with ticket.one_of("card_readers"):
                look = await self._look(picture, field_name, path, model, ticket, on_stage)
            result = await self._completed(look, ticket, on_stage)
            READ_SECONDS.labels(result.path).observe(time.monotonic() - look.began_at)
            return result
        finally:
            ticket.end_request()

    async def _path(self) -> tuple[EnginePath, str | None]:
        """What reads the card, and the model that takes part. Raises OcrUnavailable if nothing can."""
        wanted, has_ocr = self.limits.engine, self._ocr.is_installed
        model = None if wanted == "ocr" else await self._vision.served(is_chosen=wanted != "auto")
        if wanted == "auto":
            wanted = ("fused" if has_ocr else "vlm") if model else "ocr"
        if wanted in ("vlm", "fused") and model is None:
            raise OcrUnavailable(f"KTP_ENGINE={wanted} needs a served model that sees images, and there is none.")
        if wanted in ("ocr", "fused") and not has_ocr:
            raise OcrUnavailable(self._ocr.failure or "The OCR engine is not installed.")
        return wanted, model

    def _may_do_without_ocr(self, model: str | None) -> bool:
        return model is not None and self.limits.engine in ("auto", "vlm")

    async def _decoded(self, picture: FormPart, field_name: str, ticket: Ticket) -> "Pixels":
        """The bytes of the picture are gone when this returns."""
        require_size(picture, field_name, self.max_bytes)
        try:
            [image] = await self._media.decode_all(["image"], [picture.take()], ticket)
        except BadMedia as error:
            raise picture_refused(error, field_name) from None
        assert isinstance(image, LoadedImage)
        ticket.keep("media_bytes", 0)
        return image.pixels

    async def _look(
        self,
        picture: FormPart,
        field_name: str,
        path: EnginePath,
        model: str | None,
        ticket: Ticket,
        on_stage: OnStage,
    ) -> "_Look":
        """Decodes the picture, and reads it with OCR where there is OCR: it finds the card for the model, too."""
        arrived_at = time.monotonic()
        pixels = await self._decoded(picture, field_name, ticket)
        began_at = time.monotonic()
        took = {"decode": _milliseconds(arrived_at)}
        look = _Look(path, model, None, pixels, began_at, began_at + self.limits.picture_seconds, took)
        if path == "vlm" and not self._ocr.is_installed:
            return look
        loop = asyncio.get_running_loop()
        stages = on_stage if path == "ocr" else _until_rectified(on_stage)

        def report(stage: Stage) -> None:
            loop.call_soon_threadsafe(stages, stage)

        work = partial(self._read_in_thread, pixels, report, with_crop=model is not None)
        try:
            card, crop = await self._until(look.ends_at, loop.run_in_executor(self._threads, work))
        except OcrUnavailable:
            if not self._may_do_without_ocr(model):
                raise
            return replace(look, path="vlm")
        took["ocr"] = _milliseconds(began_at)
        if path != "vlm" and not card.is_card:
            raise _not_found(card)
        return replace(look, card=card, crop=crop)

    async def _completed(self, look: "_Look", ticket: Ticket, on_stage: OnStage) -> CardResult:
        card, model, took = look.card, look.model, look.took
        if model is None:
            assert card
            return CardResult("ocr", None, card.checked, card, {"ocr": card.checked}, took)
        seen = await self._by_model(look, model, ticket)
        on_stage("read")
        if seen is None:
            assert card
            on_stage("checked")
            return CardResult("ocr", None, card.checked, card, {"ocr": card.checked}, took, has_fallen_back=True)
        if look.path == "fused" and card:
            fused = await asyncio.to_thread(_fused, card.checked, seen.checked, self._today())
            on_stage("checked")
            return CardResult("fused", model, fused, card, {"ocr": card.checked, "vlm": seen.checked}, took)
        if not seen.is_card:
            raise _not_found(card)
        on_stage("checked")
        return CardResult("vlm", model, seen.checked, card, {"vlm": seen.checked}, took)

    async def _by_model(self, look: "_Look", model: str, ticket: Ticket) -> "VisionCard | None":
        """None if it fails, and OCR's reading is as good as an answer can be."""
        from tis.ktp.vision_reply import MAX_TOKENS, PROMPT, reply_schema

        began_at = time.monotonic()
        try:
            asking = self._vision.ask(model, look.crop, PROMPT, reply_schema(), MAX_TOKENS, ticket)
            tokens = await self._until(look.ends_at, asking)
        except Draining:
            raise
        except ServiceError as error:
            if self.limits.engine == "auto" and look.path == "fused":
                return None
            raise _as_unavailable(error) from None
        look.took["vlm"] = _milliseconds(began_at)
        return await asyncio.to_thread(_checked_reply, tokens, self._today())

    def _read_in_thread(self, pixels: "Pixels", on_stage: OnStage, *, with_crop: bool) -> "tuple[OcrCard, Pixels]":
        card = self._ocr.reader().read(pixels, self._today(), on_stage)
        if not with_crop:
            return card, pixels
        from tis.ktp.card_outline import rectified

        return card, rectified(pixels, card.outline, _CROP_WIDTH)

    async def _until(self, ends_at: float, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(max(0.0, ends_at - time.monotonic())):
                return await work
        except TimeoutError:
            limit = f"{self.limits.picture_seconds:g} s"
            raise CardTimeout(f"The card was not read within {limit} (KTP_TIMEOUT_SECONDS).") from None


def _checked_values(values: Mapping[str, str | None], today: date) -> "CheckedCard":
    from tis.ktp.given_card import check_given
    from tis.ktp.regions import regions

    return check_given(values, regions(), today)


def _checked_reply(tokens: Sequence[ReplyToken], today: date) -> "VisionCard":
    from tis.ktp.regions import regions
    from tis.ktp.vision_reply import vision_card

    return vision_card(tokens, regions(), today)


def _fused(by_ocr: "CheckedCard", by_model: "CheckedCard", today: date) -> "CheckedCard":
    from tis.ktp.fusion import fuse
    from tis.ktp.regions import regions

    return fuse(by_ocr, by_model, regions(), today)


def _until_rectified(on_stage: OnStage) -> OnStage:
    """With a vision model, OCR is not the last to read and to check."""
    return lambda stage: on_stage(stage) if stage in ("found", "rectified") else None


def _milliseconds(began_at: float) -> int:
    return round((time.monotonic() - began_at) * 1000)


def _not_found(card: "OcrCard | None") -> CardNotFound:
    return CardNotFound(len(card.labels) if card else 0, quality_of(card.quality) if card else None)


def _as_unavailable(error: ServiceError) -> ServiceError:
    """Of a model that cannot answer. Its own message may be about prompts and tokens, which nobody here sent."""
    if isinstance(error, CardTimeout) or error.status == 429:
        return error
    return OcrUnavailable("The vision model cannot read cards now.", retry_after=error.retry_after or RETRY_SECONDS)
