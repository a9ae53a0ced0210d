"""Bodies and views of the checks of cards, with their examples."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from tis.marketplace.auth.schemas import ADMIN_REQUIRED
from tis.marketplace.kit.docs import responses, schema_example
from tis.marketplace.kit.fields import ReasonText
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.suppliers.schemas import OWNER_REQUIRED

VerificationStatus = Literal["verified", "doubtful", "refused"]
Doubt = Literal["name_differs", "shown_before", "contradicts_itself", "photocopy", "refused_before", "withdrawn"]
NOT_SHOWN = "This supplier has shown no card."

CARD_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["image", "consent"],
                    "properties": {
                        "image": {"type": "string", "format": "binary", "description": "a picture of the card"},
                        "consent": {
                            "type": "string",
                            "enum": ["true"],
                            "description": "whose card it is agrees that it is read once, and to what is kept",
                        },
                    },
                }
            }
        },
    }
}


class VerificationView(BaseModel):
    """What is kept of a card: nothing that is printed on it."""

    supplier_id: int
    status: VerificationStatus
    method: Literal["ktp-ocr"]
    checked_at: datetime
    name_matches: bool = Field(description="the name on the card is that of the supplier")
    doubts: list[Doubt] = Field(
        description="why an admin decides, or decided; `withdrawn`: the supplier is suspended, and until that ends "
        "a digest is kept against doubles"
    )
    decided_at: datetime | None
    decided_reason: str | None


class DoubtfulSupplier(VerificationView):
    """For admins."""

    business_name: str
    name: str
    decided_by: str | None
    shown_before_by: list[int] = Field(description="other suppliers that showed the same card, ten at most")


class VerificationDecision(StrictBody):
    model_config = schema_example({"status": "verified", "reason": "She showed the card at our desk."})

    status: Literal["verified", "refused"]
    reason: ReasonText = Field(description="the supplier reads it, and the audit log has it")


_VERIFIED = {
    "supplier_id": 3,
    "status": "verified",
    "method": "ktp-ocr",
    "checked_at": "2026-11-28T03:00:00Z",
    "name_matches": True,
    "doubts": [],
    "decided_at": None,
    "decided_reason": None,
}
_DOUBTFUL = {
    **_VERIFIED,
    "status": "doubtful",
    "name_matches": False,
    "doubts": ["name_differs"],
    "business_name": "Kios Sari",
    "name": "Sari Specimen",
    "decided_by": None,
    "shown_before_by": [],
}
_DECIDED = {"decided_at": "2026-11-28T04:00:00Z", "decided_reason": "She showed the card at our desk."}
UNREADABLE = {
    422: "The NIK of this card could not be read for certain. Take another picture, straight and in good light."
}
CHECKED = responses(
    _VERIFIED,
    OWNER_REQUIRED,
    {409: "While it is suspended, this supplier shows no other card than before."},
    UNREADABLE,
    {503: "Cards cannot be read here: OCR is not installed."},
)
SHOWN = responses(_VERIFIED, {**OWNER_REQUIRED, 404: NOT_SHOWN})
WITHDRAWN = responses({"detail": "Nothing of a card is kept."}, OWNER_REQUIRED)
LISTED = responses([_DOUBTFUL], ADMIN_REQUIRED)
DECIDED = responses(
    {**_DOUBTFUL, **_DECIDED, "status": "verified", "decided_by": "user:1"},
    {**ADMIN_REQUIRED, 404: NOT_SHOWN, 409: "The card was withdrawn: the shop has to show one again."},
)
