"""Settings of the reader of identity cards."""

from typing import Literal

from pydantic import BaseModel, Field


class KtpSettings(BaseModel):
    """Identity cards (KTP)"""

    ktp_engine: Literal["auto", "vlm", "ocr", "fused"] = Field(
        "auto",
        description="what reads cards: `ocr`, a served model that sees images (`vlm`), or both (`fused`); "
        "`auto` = both if there is such a model, else `ocr`",
    )
    ktp_workers: int = Field(
        2, ge=1, le=64, description="pictures of cards that OCR reads at once, a thread and a core each"
    )
    ktp_timeout_seconds: float = Field(60, gt=0, le=3600, description="how long reading one card may take; then a 504")
    ktp_batch_timeout_seconds: float = Field(
        300, gt=0, le=3600, description="the same for all cards of a batch; those that are not read then have an error"
    )
    ktp_max_batch: int = Field(
        32,
        ge=1,
        le=32,
        description="max pictures of a batch. Of each picture, MAX_MEDIA_MB and MAX_IMAGE_PIXELS are the limits",
    )
