"""What the marketplace asks of the reader of identity cards. The server gives it one: see `tis/market_parts.py`."""

from dataclasses import dataclass
from typing import Protocol

from tis.http.multipart import FormPart


@dataclass(frozen=True)
class SeenCard:
    """What was read of a card, for as long as a request takes."""

    nik: str | None
    nik_confidence: float
    name: str | None
    name_confidence: float
    contradicts_itself: bool  # the NIK and what is printed beside it
    is_photocopy: bool


class CardCheck(Protocol):
    @property
    def max_bytes(self) -> int: ...

    async def look_at(self, picture: FormPart, owner: str) -> SeenCard:
        """Raises a `ServiceError` where there is no card, or it cannot be read now. Nothing of it is kept."""
        ...
