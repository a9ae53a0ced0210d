"""What every registration does for its new account: consent, tokens, and a mail that confirms the e-mail.

With an `Idempotency-Key`, a repeated registration returns the same account, with new tokens of the same session.
Neither tokens nor passwords are saved: of the request a digest with the server's secret, of the answer the account and
its session. The key opens the account for a day, so it must be hard to guess; it works until the session ends or the
password changes: a request that leaked has the old password, and a change of it ends what the old one began.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import BadRequest, Conflict
from tis.marketplace.auth.accounts import account_holder, supplier_account, user_account
from tis.marketplace.auth.recovery import account_mails
from tis.marketplace.auth.schemas import ConsentView
from tis.marketplace.auth.tokens import TokenPair, begin_chain, extend_chain
from tis.marketplace.context import RequestContext, ServiceRules
from tis.marketplace.kit.idempotency import REPLAYED, claim_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer
from tis.marketplace.mail import Mail
from tis.marketplace.tables import Consent, Supplier, User

_SCOPE = "registration"
_MIN_KEY_CHARS = 16
Registered = TypeVar("Registered", User, Supplier)
Shown = TypeVar("Shown")


@dataclass(frozen=True)
class RegistrationKey:
    key: str | None
    content: bytes = b""
    response: Response = field(default_factory=Response)

    def register(
        self,
        context: RequestContext,
        consent_version: str | None,
        create: Callable[[Session, Principal], Registered],
        view: Callable[[Registered], Shown],
    ) -> tuple[Shown, TokenPair]:
        """In a transaction of its own; the mail is sent after it."""
        with context.writing() as (session, principal):
            holder, tokens, mails = self._register(
                session, context, principal, consent_version, partial(create, session, principal)
            )
            shown = view(holder)
        context.market.mail.send(mails)
        return shown, tokens

    def _register(
        self,
        session: Session,
        context: RequestContext,
        principal: Principal,
        consent_version: str | None,
        create: Callable[[], Registered],
    ) -> tuple[Registered, TokenPair, list[Mail]]:
        if self.key is None:
            return _new_account(session, context, consent_version, create)
        signer = context.market.signer
        digest = signer.digest(f"{principal.account}\n".encode() + self.content)
        row, is_first = claim_key(session, _SCOPE, hashlib.sha256(self.key.encode()).hexdigest(), digest)
        if is_first:
            created, tokens, mails = _new_account(session, context, consent_version, create)
            claims = signer.read(tokens.access_token, "access")
            password = _digest_of_password(signer, created)
            row.answer = {"account": claims.account, "chain": claims.chain, "password": password}
            return created, tokens, mails
        assert row.answer is not None
        account: str = row.answer["account"]
        holder = account_holder(session, account)
        if holder is not None and row.answer.get("password") != _digest_of_password(signer, holder):
            raise Conflict("This registration was made, and its password was set or changed since: sign in.")
        extended = extend_chain(session, context.market, account, row.answer["chain"], context.agent)
        if extended is None or holder is None:
            raise Conflict("This registration was made, and its first session has ended: sign in.")
        self.response.headers.update(REPLAYED)
        return holder, extended, []  # type: ignore[return-value]  # the digest has the path, so it is of the same kind


def _new_account(
    session: Session, context: RequestContext, consent_version: str | None, create: Callable[[], Registered]
) -> tuple[Registered, TokenPair, list[Mail]]:
    created = create()
    account = user_account(created.id) if isinstance(created, User) else supplier_account(created.id)
    agree(session, context.market.rules, account, consent_version)
    tokens = begin_chain(session, context.market, account, context.agent)
    return created, tokens, account_mails(session, context.market, account, "confirm")


def _digest_of_password(signer: Signer, holder: User | Supplier) -> str:
    return signer.digest((holder.password_hash or "").encode())


async def _registration_key(
    request: Request,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=_MIN_KEY_CHARS,
            max_length=255,
            pattern=r"^[\x20-\x7e]+$",
            description="a random name of your own, such as a UUID: sent again within a day, the request registers "
            "nobody else and returns new tokens of the same account",
        ),
    ] = None,
) -> RegistrationKey:
    if idempotency_key is None:
        return RegistrationKey(None)
    content = f"{request.method} {request.url.path}?{request.url.query}\n".encode() + await request.body()
    return RegistrationKey(idempotency_key, content, response)


RegistrationKeyDep = Annotated[RegistrationKey, Depends(_registration_key)]


def consent_view(session: Session, rules: ServiceRules, account: str | None) -> ConsentView:
    agreed = _latest_consent(session, account) if account else None
    return ConsentView(
        version=rules.consent_version,
        url=rules.consent_url,
        agreed_version=agreed.version if agreed else None,
        agreed_at=agreed.at if agreed else None,
    )


def agree(session: Session, rules: ServiceRules, account: str, version: str | None) -> None:
    """Records the consent to the privacy notice that the operator names in CONSENT_VERSION.

    For registrations: where none is asked for, one that is sent is ignored.
    """
    if rules.consent_version is None:
        return
    if version != rules.consent_version:
        where = f" at {rules.consent_url}" if rules.consent_url else ""
        raise BadRequest(
            f"Show the privacy notice{where}, and send `consent_version`: {rules.consent_version!r}"
            " when the person agrees.",
            code="consent_needed",
        )
    latest = _latest_consent(session, account)
    if latest is None or latest.version != version:
        session.add(Consent(account=account, version=version))


def _latest_consent(session: Session, account: str) -> Consent | None:
    return session.scalar(select(Consent).where(Consent.account == account).order_by(Consent.id.desc()).limit(1))
