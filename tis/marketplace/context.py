"""What a route works with: the authenticated caller, a transaction, and the services of the market."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, cast

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from sqlalchemy.orm import Session

from tis.errors import Unauthenticated
from tis.http.origins import AllowedOrigins
from tis.http.rate_limits import RateLimits
from tis.marketplace.kit.answer_slots import AnswerSlots
from tis.marketplace.kit.card_check import CardCheck
from tis.marketplace.kit.notice_deliveries import WebhookRules
from tis.marketplace.kit.notice_hub import NoticeHub
from tis.marketplace.kit.open_mode import require_this_computer
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer
from tis.marketplace.kit.threads import PasswordQueue
from tis.marketplace.mail import MailQueue
from tis.marketplace.payment_providers.payment_desk import PaymentDesk
from tis.marketplace.picture_files.picture_desk import PictureDesk
from tis.marketplace.policy import HOW_TO_SIGN_IN, SCOPE_OF_ROUTE, TokenScope
from tis.marketplace.search.meaning.meaning_search import MeaningSearch
from tis.marketplace.search.product_search import ProductSearch

_MAX_AGENT_CHARS = 200
_OR_OPEN = "On your own computer, start the server with MARKETPLACE_AUTH=open to need none."


@dataclass(frozen=True)
class ServiceRules:
    """What requests need to know of the settings; `MarketRules` has the rest."""

    auth: Literal["open", "required"] = "required"
    origins: AllowedOrigins = AllowedOrigins(())  # web pages that may call if `auth` is open
    is_local: bool = False  # only this computer can connect
    access_token_minutes: float = 30
    refresh_token_days: float = 7
    reservation_seconds: float = 900
    max_products_per_supplier: int = 100_000
    max_branches_per_supplier: int = 20
    max_alerts_per_user: int = 100
    max_saved_searches_per_user: int = 20
    max_unsold_hold_minutes: int = 120
    max_reservations_per_account: int = 20
    max_reserved_units_per_product: int = 100
    max_open_orders_per_account: int = 20
    order_receipt_days: float = 7
    public_url: str = "http://127.0.0.1:3000"  # links in mails begin with it
    consent_version: str | None = None  # of the privacy notice that registrations agree to; None: no consent needed
    consent_url: str | None = None
    # A sheet with more rows is imported in the background, so many rows per transaction.
    max_sheet_rows_at_once: int = 5000
    sheet_batch_rows: int = 500

    webhooks: WebhookRules = WebhookRules()
    # Of pictures that no product has, and of those that an upload has not given to its product yet.
    picture_grace_seconds: float = 86_400

    @property
    def is_open(self) -> bool:
        return self.auth == "open"


class Slots(Protocol):
    def slot(self, supplier_id: int) -> AbstractContextManager[None]: ...


class MarketServices(Protocol):
    """The part of `Market` that requests need. `Market` itself imports the rooms, so the rooms cannot import it."""

    search: ProductSearch
    signer: Signer
    rates: RateLimits
    mail: MailQueue
    passwords: PasswordQueue
    pictures: PictureDesk
    payments: PaymentDesk
    notices: NoticeHub
    card_check: CardCheck | None  # without a reader of cards, suppliers show none
    feed_slots: AnswerSlots
    meaning: MeaningSearch | None  # without an embedding model, goods are found by words alone

    @property
    def sheet_slots(self) -> Slots: ...
    @property
    def rules(self) -> ServiceRules: ...
    def account_named_by(self, token: str | None) -> str | None: ...
    def reading(self) -> AbstractContextManager[Session]: ...
    def writing(self) -> AbstractContextManager[Session]: ...
    def authenticate(self, session: Session, token: str | None, scope: TokenScope | None = None) -> Principal: ...
    def note_token_use(self, token: str | None) -> None: ...
    def wake_importer(self) -> None: ...
    def wake_alt_texts(self) -> None: ...
    def wake_payment_checks(self) -> None: ...
    def wake_senders(self) -> None: ...


@dataclass(frozen=True)
class RequestContext:
    """Routes are plain functions, so that FastAPI runs them in a thread: database calls and argon2 block."""

    market: MarketServices
    token: str | None
    agent: str | None = None  # the program that calls, as it names itself
    scope: TokenScope | None = None  # what this route asks of a token of a shop; None refuses them

    @contextmanager
    def reading(self) -> Iterator[tuple[Session, Principal]]:
        self.market.note_token_use(self.token)
        with self._with_sign_in_hint(), self.market.reading() as session:
            yield session, self.market.authenticate(session, self.token, self.scope)

    @contextmanager
    def writing(self) -> Iterator[tuple[Session, Principal]]:
        self.market.note_token_use(self.token)
        with self._with_sign_in_hint(), self.market.writing() as session:
            yield session, self.market.authenticate(session, self.token, self.scope)

    @contextmanager
    def _with_sign_in_hint(self) -> Iterator[None]:
        try:
            yield
        except Unauthenticated as error:
            rules = self.market.rules
            # The open mode refuses a bad token, too.
            suggest_open = rules.is_local and not rules.is_open and self.token is None
            hint = f"{HOW_TO_SIGN_IN} {_OR_OPEN}" if suggest_open else HOW_TO_SIGN_IN
            raise Unauthenticated(f"{error.message} {hint}") from None


# Only for the button "Authorize" of /docs: `bearer_token` reads the header, as a bad token is not a missing one.
_docs_bearer = HTTPBearer(
    scheme_name="MarketplaceToken", auto_error=False, description="`access_token` of a registration or a login."
)


async def _request_context(request: Request, _: Annotated[object, Depends(_docs_bearer)]) -> RequestContext:
    market = cast(MarketServices, request.app.state.marketplace.market)
    if market.rules.is_open:
        require_this_computer(request, market.rules.origins)
    scope = SCOPE_OF_ROUTE.get(f"{request.method} {request.scope['route'].path}")
    return RequestContext(market, bearer_token(request), _agent(request), scope)


def bearer_token(request: Request) -> str | None:
    """Another scheme than Bearer counts as a bad token, so that nobody becomes anonymous by mistake."""
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _agent(request: Request) -> str | None:
    header = request.headers.get("user-agent", "")
    return "".join(c for c in header if c.isprintable())[:_MAX_AGENT_CHARS] or None


ContextDep = Annotated[RequestContext, Depends(_request_context)]
