"""`Idempotency-Key` of registrations: repeated, one returns the same account, with new tokens of the same session.

Neither tokens nor passwords are saved: of the request a digest with the server's secret, of the answer the account and
its session. The key opens the account for a day, so it must be hard to guess; it works until the session ends.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request, Response
from sqlalchemy.orm import Session

from tis.errors import Conflict
from tis.marketplace.auth.accounts import account_holder, supplier_account, user_account
from tis.marketplace.auth.tokens import TokenPair, begin_chain, extend_chain
from tis.marketplace.context import MarketServices
from tis.marketplace.kit.idempotency import REPLAYED, claim_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.tables import Supplier, User

_SCOPE = "registration"
_MIN_KEY_CHARS = 16
Registered = TypeVar("Registered", User, Supplier)


@dataclass(frozen=True)
class RegistrationKey:
    key: str | None
    content: bytes = b""
    response: Response = field(default_factory=Response)

    def register(
        self, session: Session, market: MarketServices, principal: Principal, create: Callable[[], Registered]
    ) -> tuple[Registered, TokenPair]:
        """Call it in the transaction of the registration."""
        if self.key is None:
            return _new_account(session, market, create)
        digest = market.signer.digest(f"{principal.account}\n".encode() + self.content)
        row, is_first = claim_key(session, _SCOPE, hashlib.sha256(self.key.encode()).hexdigest(), digest)
        if is_first:
            created, tokens = _new_account(session, market, create)
            claims = market.signer.read(tokens.access_token, "access")
            row.answer = {"account": claims.account, "chain": claims.chain}
            return created, tokens
        assert row.answer is not None
        extended = extend_chain(session, market, row.answer["account"], row.answer["chain"])
        holder = account_holder(session, row.answer["account"])
        if extended is None or holder is None:
            raise Conflict("This registration was made, and its first session has ended: sign in.")
        self.response.headers.update(REPLAYED)
        return holder, extended  # type: ignore[return-value]  # the digest has the path, so it is of the same kind


def _new_account(
    session: Session, market: MarketServices, create: Callable[[], Registered]
) -> tuple[Registered, TokenPair]:
    created = create()
    account = user_account(created.id) if isinstance(created, User) else supplier_account(created.id)
    return created, begin_chain(session, market, account)


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
