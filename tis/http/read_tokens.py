"""Read tokens: for the query of a GET that reads one session, because an `EventSource` cannot send a key as a header.

A token names the session's latest answer at its time, and is valid while that answer runs and until the session's TTL
after it. It names the owner, too, whose key the server must still know, by a digest that only the secret makes: nobody
can try out weak keys with a token. Its signature is checked before any session is looked at, so a stranger costs one
signature, and no question to a store. Servers that share sessions share the secret (`READ_TOKEN_SECRET`, else one in
Redis). Else it is random, and lies beside the session file, as tokens outlive a restart there.
"""

import asyncio
import hashlib
import hmac
import logging
import os
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from tis.observability.logs import log_exception
from tis.streaming.session import Session
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

_log = logging.getLogger("tis.http")
_TOKEN = re.compile(r"(\d{1,15})\.(\d{1,9})\.([A-Za-z0-9_-]{11})\.([A-Za-z0-9_-]{11})\.([A-Za-z0-9_-]{43})", re.ASCII)
_SECRET_BYTES = 32
_MAX_MARKS = 4096


class TokenSecrets(Protocol):
    async def open(self) -> None: ...

    async def all(self) -> Sequence[bytes]:
        """The first signs; a token of any of them is valid."""
        ...


class GivenSecrets:
    def __init__(self, given: Sequence[str]) -> None:
        self._given = [one.encode() for one in given]

    async def open(self) -> None: ...

    async def all(self) -> Sequence[bytes]:
        return self._given


class OwnSecret:
    """Of this server alone."""

    def __init__(self, sessions_path: Path | None = None) -> None:
        """`sessions_path`: where the sessions survive this process, if they do."""
        self._sessions_path = sessions_path
        self._secret = secrets.token_bytes(_SECRET_BYTES)

    async def open(self) -> None:
        if self._sessions_path is None:
            return
        try:
            path = self._sessions_path.with_name(self._sessions_path.name + ".key")
            self._secret = await asyncio.to_thread(_saved_secret, path)
        except OSError as error:
            log_exception("the key of read tokens cannot be saved: they end with this process", error, "-")

    async def all(self) -> Sequence[bytes]:
        return [self._secret]


class ReadTokens:
    def __init__(self, sessions: Sessions, token_secrets: TokenSecrets | None = None) -> None:
        self._sessions = sessions
        self._secrets = token_secrets or OwnSecret()
        self._marks: dict[tuple[bytes, str], str] = {}

    async def open(self) -> None:
        await self._secrets.open()

    async def issue(self, session: Session) -> str:
        secret = (await self._secrets.all())[0]
        turn = session.latest
        owner, answer = self._owner_mark(secret, session.owner), _mark(secret, f"answer {turn.fingerprint}")
        signed = f"{int(self._sessions.now())}.{turn.record.number}.{owner}.{answer}"
        return f"{signed}.{_signature(secret, session.id, signed)}"

    async def owner_of(self, token: str, session_id: str, owners: Iterable[str]) -> str | None:
        """Which of these owners issued the token for this session; None if it is invalid or has expired."""
        if (match := _TOKEN.fullmatch(token)) is None:
            return None
        issued_at, number, owner_mark, answer_mark, signature = match.groups()
        signed = token.rpartition(".")[0]
        secret = next(
            (
                one
                for one in await self._secrets.all()
                if hmac.compare_digest(signature, _signature(one, session_id, signed))
            ),
            None,
        )
        if secret is None:
            return None
        owner = next((one for one in owners if self._owner_mark(secret, one) == owner_mark), None)
        if owner is None:
            return None
        await self._sessions.refresh(owner, session_id)  # it may be of another server
        session = self._sessions.peek(owner, session_id, of_any_kind=True)
        turns = session.turns if session else []
        turn = next((one for one in turns if one.record.number == int(number)), None)
        # A session that comes to be under the same id later begins with another request, as a rule.
        if session and turn and _mark(secret, f"answer {turn.fingerprint}") == answer_mark:
            return owner if self._is_fresh(session, turn, int(issued_at)) else None
        return None

    def _is_fresh(self, session: Session, turn: Turn, issued_at: int) -> bool:
        return turn.is_running or self._sessions.now() <= max(issued_at, turn.record.ended_at) + session.ttl_seconds

    def _owner_mark(self, secret: bytes, owner: str) -> str:
        """Made once for each owner: there may be 1000."""
        if len(self._marks) > _MAX_MARKS:
            self._marks.clear()
        key = secret, owner
        if key not in self._marks:
            self._marks[key] = _mark(secret, f"owner {owner}")
        return self._marks[key]


def _mark(secret: bytes, what: str) -> str:
    digest = hashlib.blake2b(what.encode(), key=hashlib.sha256(secret).digest(), digest_size=8).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _signature(secret: bytes, session_id: str, signed: str) -> str:
    digest = hmac.digest(secret, f"read token\n{session_id}\n{signed}".encode(), hashlib.sha256)
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _saved_secret(path: Path) -> bytes:
    """One process at a time uses a session file, and so its key."""
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii", errors="replace"))
    except (FileNotFoundError, ValueError):
        secret = b""
    if len(secret) >= _SECRET_BYTES:
        return secret
    secret = secrets.token_bytes(_SECRET_BYTES)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(secret.hex())
    _log.info("made a key for read tokens and saved it in %s", path)
    return secret
