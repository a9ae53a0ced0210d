"""Why a card is not read. Messages never quote a model, a decoder or a file name."""

from typing import Any

from tis.errors import BadRequest, ServiceError, TooLarge, Unavailable, Unprocessable
from tis.media.errors import BadMedia

RETRY_SECONDS = 30.0  # for what may work again


class CardNotFound(Unprocessable):
    """Nothing on the picture looks like a card. `details` say what was seen."""

    code = "ktp_not_found"

    def __init__(self, num_labels: int, quality: dict[str, Any] | None) -> None:
        super().__init__(
            "No KTP was found on the picture. Send a sharp picture of the front, with the whole card on it.",
            param="image",
        )
        self.details = {"seen": {"labels": num_labels, "quality": quality}}


class OcrUnavailable(Unavailable):
    code = "ocr_unavailable"


class CardTimeout(ServiceError):
    status = 504
    code = "timeout"


def missing_field(field: str) -> Unprocessable:
    message = f"Send the picture as multipart/form-data, in the field `{field}`."
    return Unprocessable(message, param=field, code="missing_field")


def picture_too_large(field: str, limit: str) -> TooLarge:
    return TooLarge(f"The picture is too large: {limit}.", param=field, code="too_large")


def picture_refused(error: BadMedia, field: str) -> ServiceError:
    """The same refusal with the codes of this API."""
    if error.code == "image_too_large":
        return TooLarge(error.message, param=field, code="too_large")
    code = "not_an_image" if error.code == "invalid_image_format" else "bad_image"
    return BadRequest(error.message, param=field, code=code)
