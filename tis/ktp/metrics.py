"""Metrics of the reader of identity cards. The values of labels are closed sets."""

from typing import Literal, TypeAlias

from prometheus_client import Counter, Histogram

from tis.errors import ServiceError
from tis.observability.metrics import REGISTRY

EnginePath: TypeAlias = Literal["ocr", "vlm", "fused"]
Outcome: TypeAlias = Literal["read", "not_found", "bad_image", "too_large", "timeout", "unavailable", "busy", "failed"]

_OUTCOMES: dict[str | None, Outcome] = {
    "ktp_not_found": "not_found",
    "not_an_image": "bad_image",
    "bad_image": "bad_image",
    "too_large": "too_large",
    "timeout": "timeout",
}
PICTURES = Counter("tis_ktp_pictures", "Pictures of identity cards, by outcome", ["outcome"], registry=REGISTRY)
READ_SECONDS = Histogram(
    "tis_ktp_read_seconds",
    "Reading a card, from the decoded picture to the checked fields",
    ["path"],
    buckets=(0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 60, 120),
    registry=REGISTRY,
)
REPAIRS = Counter("tis_ktp_repairs", "Fields that were repaired", registry=REGISTRY)


def count_failure(error: Exception) -> None:
    PICTURES.labels(outcome_of(error)).inc()


def outcome_of(error: Exception) -> Outcome:
    if not isinstance(error, ServiceError):
        return "failed"
    if error.code in _OUTCOMES:
        return _OUTCOMES[error.code]
    return "busy" if error.status == 429 else "unavailable" if error.status == 503 else "failed"
