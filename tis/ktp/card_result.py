"""What was read of a card and by what, how much reading may take, and whether it works at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tis.ktp.metrics import EnginePath

if TYPE_CHECKING:
    from tis.ktp.card_checks import CheckedCard
    from tis.ktp.ocr_card_reader import OcrCard
    from tis.ktp.quality import PictureQuality

EngineChoice: TypeAlias = Literal["auto", "vlm", "ocr", "fused"]
State: TypeAlias = Literal["ready", "waiting", "unavailable"]


@dataclass(frozen=True)
class CardLimits:
    engine: EngineChoice = "auto"
    num_workers: int = 2
    picture_seconds: float = 60
    batch_seconds: float = 300
    max_batch: int = 32


@dataclass(frozen=True)
class CardResult:
    path: EnginePath
    model: str | None
    checked: "CheckedCard"
    ocr: "OcrCard | None"  # where OCR looked at the picture
    readings: Mapping[str, "CheckedCard"]  # of each reader that took part
    milliseconds: dict[str, int]
    has_fallen_back: bool = False  # the vision model failed, so this is OCR's alone


@dataclass(frozen=True)
class ReaderStatus:
    state: State
    path: EnginePath | None
    error: str | None


def quality_of(quality: "PictureQuality") -> dict[str, Any]:
    """As the API names it."""
    return {
        "blur": quality.blur,
        "dark": quality.dark,
        "bright": quality.bright,
        "glare": quality.glare,
        "photocopy": quality.photocopy,
        "tilt_deg": quality.tilt_degrees,
        "card_px": quality.card_pixels,
    }
