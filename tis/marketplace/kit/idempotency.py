"""`Idempotency-Key`: a retried request gets the first response again and is not executed twice.

The response is saved in the transaction that does the work: after a kill there are both or neither. A route takes
`idempotency_key: IdempotencyKeyDep` and returns `idempotency_key.answer(session, principal, make_response)` inside
`context.writing()`. A route that reads its body itself, such as a form, takes `KeyHeader` and calls `key_for_content`.
Not for responses with tokens (the table would hold them in clear text): registrations have `RegistrationKey`.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.responses import JSONResponse
from sqlalchemy import delete, text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from tis.errors import Conflict, Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.responses import JSONText
from tis.marketplace.tables import IdempotentRequest

RETENTION = timedelta(hours=24)
REPLAYED = {"Idempotent-Replayed": "true"}
_LOCK_TIMEOUT_MS = 5000
_LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE


@dataclass(frozen=True)
class IdempotencyKey:
    """The key of one request (None without the header) and a digest of what it asks for."""

    key: str | None
    digest: str = ""

    def answer(self, session: Session, principal: Principal, make: Callable[[], JSONResponse]) -> JSONResponse:
        scope = principal.account or ("anonymous" if principal.is_open else None)
        if self.key is None or scope is None:
            return make()
        row, is_first = claim_key(session, scope, self.key, self.digest)
        if not is_first:
            return _replay(row)
        response = make()
        row.answer = {
            "status": response.status_code,
            "etag": response.headers.get("etag"),
            "body": bytes(response.body).decode(),
        }
        return response


def claim_key(session: Session, scope: str, key: str, digest: str) -> tuple[IdempotentRequest, bool]:
    """The row of the key, and whether this is the first request with it. The first one must set `answer`."""
    expired = delete(IdempotentRequest).where(IdempotentRequest.actor == scope, IdempotentRequest.key == key)
    session.execute(expired.where(IdempotentRequest.expires_at < now()))
    row = IdempotentRequest(actor=scope, key=key, request_digest=digest, expires_at=now() + RETENTION)
    if _insert_first(session, row):
        return row, True
    saved = session.get(IdempotentRequest, (scope, key))
    if saved is not None and saved.request_digest != digest:
        raise Unprocessable("This Idempotency-Key was used for another request.")
    if saved is None or saved.answer is None:
        raise _still_running()
    return saved, False


def _insert_first(session: Session, row: IdempotentRequest) -> bool:
    """On SQLite the second writer waits for the whole transaction; on PostgreSQL it waits at the unique key."""
    _set_lock_timeout(session, _LOCK_TIMEOUT_MS)
    is_first = True
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        is_first = False
    except OperationalError as error:  # behind which the transaction is over: no statement may follow
        if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise _still_running() from error
        raise
    _set_lock_timeout(session, 0)
    return is_first


def _set_lock_timeout(session: Session, milliseconds: int) -> None:
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SET LOCAL lock_timeout = {milliseconds}"))


def _replay(saved: IdempotentRequest) -> JSONResponse:
    assert saved.answer is not None
    response = JSONText(saved.answer["body"], saved.answer["status"], REPLAYED)
    if saved.answer["etag"]:
        response.headers["ETag"] = saved.answer["etag"]
    return response


def _still_running() -> Conflict:
    return Conflict("The first request with this Idempotency-Key is still running.", retry_after=1)


KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="a name of your own for this request: sent again within a day, it is not done again",
    ),
]


def key_for_content(request: Request, key: str | None, content: bytes) -> IdempotencyKey:
    """For routes that read the body themselves. In a thread: the digest of a large body takes long."""
    if key is None:
        return IdempotencyKey(None)
    target = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return IdempotencyKey(key, hashlib.sha256(target + content).hexdigest())


async def _idempotency_key(request: Request, idempotency_key: KeyHeader = None) -> IdempotencyKey:
    if idempotency_key is None:
        return IdempotencyKey(None)
    return key_for_content(request, idempotency_key, await request.body())


IdempotencyKeyDep = Annotated[IdempotencyKey, Depends(_idempotency_key)]
