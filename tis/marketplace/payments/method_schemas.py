"""Bodies and views of how a shop is paid, with their examples."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, model_validator

from tis.marketplace.kit.docs import responses, schema_example
from tis.marketplace.kit.fields import Name, ShortName
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.orders.payment_methods import PaymentMethod
from tis.marketplace.payment_providers.provider import Environment, ProviderName
from tis.marketplace.payments.qris import MAX_QRIS_CHARS
from tis.marketplace.suppliers.schemas import OWNER_REQUIRED

QRIS_EXAMPLE = (
    "00020101021126680016ID.CO.CONTOH.WWW011893600999000000001702150000000000000020303UMI51440014ID.CO.QR"
    "IS.WWW0215ID10200000000010303UMI5204573253033605802ID5911TOKO CONTOH6009PONTIANAK610578111630494E9"
)


def _account_number(value: str) -> str:
    digits = value.replace(" ", "").replace("-", "")
    if not (5 <= len(digits) <= 34 and digits.isascii() and digits.isalnum()):
        raise ValueError("must be the digits of an account")
    return digits


def _secret(value: str) -> str:
    if not (value.isascii() and value.isprintable()) or {*value} & {*' "\\'}:
        raise ValueError("must be the key as the provider shows it, without spaces and quotes")
    return value


_AccountNumber = Annotated[str, Field(max_length=50), AfterValidator(_account_number)]
_Secret = Annotated[str, Field(min_length=8, max_length=200), AfterValidator(_secret)]


class TransferAccount(StrictBody):
    bank_name: ShortName
    account_number: _AccountNumber
    account_holder: Name


class QrisChange(StrictBody):
    text: Annotated[str, Field(min_length=1, max_length=MAX_QRIS_CHARS, description="what the static code says")]


class MidtransKeys(StrictBody):
    server_key: _Secret


class XenditKeys(StrictBody):
    secret_key: _Secret
    callback_token: _Secret


class ProviderChange(StrictBody):
    provider: ProviderName
    environment: Environment = "production"
    midtrans: MidtransKeys | None = Field(None, description="its keys; left out: those that are stored stay")
    xendit: XenditKeys | None = Field(None, description="its keys; left out: those that are stored stay")

    @model_validator(mode="after")
    def _require_own_keys(self) -> "ProviderChange":
        other = self.xendit if self.provider == "midtrans" else self.midtrans
        if other is not None:
            raise ValueError(f"these keys are not those of {self.provider}")
        return self

    @property
    def keys(self) -> dict[str, str] | None:
        keys = self.midtrans if self.provider == "midtrans" else self.xendit
        return None if keys is None else {name: str(value) for name, value in keys.model_dump().items()}


CHANGE_EXAMPLE = {
    "cash": True,
    "transfer": {"bank_name": "Bank Contoh", "account_number": "1234567890", "account_holder": "Toko Contoh"},
    "provider": {"provider": "midtrans", "environment": "sandbox", "midtrans": {"server_key": "SB-Mid-server-..."}},
}


class MethodsChange(StrictBody):
    """A field that is left out stays as it is; null takes a way of paying away."""

    model_config = schema_example(CHANGE_EXAMPLE)

    cash: Annotated[bool, Field(strict=True)] = True
    transfer: TransferAccount | None = None
    qris: QrisChange | None = None
    provider: ProviderChange | None = None


class QrisView(BaseModel):
    text: str
    merchant_name: str
    merchant_city: str


class ProviderView(BaseModel):
    """Its keys are shown by no route."""

    provider: ProviderName
    environment: Environment
    keys_since: datetime | None
    keys_are_readable: bool = Field(description="false after JWT_SECRET_KEY has changed: send the keys again")
    callback_url: str = Field(description="what the dashboard of the provider asks for")


class PaymentMethodsView(BaseModel):
    offered: list[PaymentMethod]
    cash: bool
    transfer: TransferAccount | None
    qris: QrisView | None
    provider: ProviderView | None


_EXAMPLE = {
    "offered": ["cash", "transfer", "qris", "provider"],
    "cash": True,
    "transfer": CHANGE_EXAMPLE["transfer"],
    "qris": {"text": QRIS_EXAMPLE, "merchant_name": "TOKO CONTOH", "merchant_city": "PONTIANAK"},
    "provider": {
        "provider": "midtrans",
        "environment": "sandbox",
        "keys_since": "2026-11-28T03:00:00Z",
        "keys_are_readable": True,
        "callback_url": "https://shop.example.com/api/payments/callbacks/midtrans/1",
    },
}
_REFUSED = {422: "This is no QRIS code: the CRC does not fit: a character is missing or wrong."}
SHOWN = responses(_EXAMPLE, OWNER_REQUIRED)
CHANGED = responses(_EXAMPLE, OWNER_REQUIRED, _REFUSED)
UPLOADED = responses(_EXAMPLE, OWNER_REQUIRED, _REFUSED, {413: "The picture is too large: the limit is 20 MiB."})
QRIS_UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}
