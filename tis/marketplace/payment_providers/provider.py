"""What a payment provider must do here, and the words in which it is asked and answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

ProviderName = Literal["midtrans", "xendit"]
Environment = Literal["sandbox", "production"]
Standing = Literal["unknown", "pending", "paid", "expired", "failed"]
RefundStanding = Literal["asked", "done", "failed"]
RUPIAH = "IDR"
_MAX_PROBLEM_CHARS = 200


class ProviderRefused(Exception):
    """It answered no: to repeat the same changes nothing. The text may be shown to the shop."""

    def __init__(self, problem: str) -> None:
        shown = "".join(one if one.isprintable() else " " for one in problem).strip()
        self.problem = shown[:_MAX_PROBLEM_CHARS] or "it gave no reason"
        super().__init__(self.problem)


class ProviderSilent(Exception):
    """It did not answer, or not what its API says: nobody knows what it did."""


class NotSigned(Exception):
    """A callback that does not come from the provider of this shop."""


@dataclass(frozen=True)
class NewPayment:
    id: str
    order_number: str
    amount: int
    begins_at: datetime
    expires_at: datetime
    callback_url: str
    return_url: str
    is_repeat: bool  # whether the provider may have it already


@dataclass(frozen=True)
class CreatedPayment:
    url: str  # the page on which the buyer pays
    external_id: str | None = None


@dataclass(frozen=True)
class PaymentStanding:
    """`amount` and `currency` are what was paid, where something was."""

    state: Standing
    amount: int | None = None
    currency: str = RUPIAH
    external_id: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class NewRefund:
    id: str
    payment_id: str
    external_id: str | None  # of the payment
    amount: int
    reason: str
    is_repeat: bool


@dataclass(frozen=True)
class RefundAnswer:
    state: RefundStanding
    problem: str | None = None


class PaymentProvider(Protocol):
    """All but `callback_of` block for seconds: never on the event loop, never in a transaction.

    They raise ProviderRefused and ProviderSilent.
    """

    def create(self, payment: NewPayment) -> CreatedPayment:
        """With `is_repeat` it finds what it made before, or makes it under the same name."""

    def status(self, payment_id: str, external_id: str | None) -> PaymentStanding: ...

    def callback_of(self, headers: Mapping[str, str], body: bytes) -> str:
        """The id of the payment that it is about; it proves no more. Raises NotSigned."""

    def refund(self, refund: NewRefund) -> RefundAnswer:
        """With `is_repeat` it is looked up first, so that nothing is given back twice."""
