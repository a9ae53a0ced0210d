"""Signs and verifies JWTs. A token names an account and holds no rights: those are read from the database."""

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.errors import Unauthenticated

_log = logging.getLogger("tis.marketplace")
_KEY_FILE = "marketplace.key"
_KEY_BYTES = 32
_CLOCK_LEEWAY_SECONDS = 10  # the machines of one market may have different clocks
_ACCOUNT = re.compile(r"(user|supplier):\d{1,18}", re.ASCII)
TokenKind = Literal["access", "refresh"]


@dataclass(frozen=True)
class Claims:
    account: str
    chain: str
    token_id: str


class Signer:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._key_id = hashlib.sha256(b"key id:" + secret).hexdigest()[:8]

    def sign(self, kind: TokenKind, claims: Claims, seconds: float) -> str:
        import jwt

        issued = int(time.time())
        payload = {
            "sub": claims.account,
            "typ": kind,
            "chain": claims.chain,
            "jti": claims.token_id,
            "iat": issued,
            "exp": issued + max(1, int(seconds)),
        }
        return jwt.encode(payload, self._secret, algorithm="HS256", headers={"kid": self._key_id})

    def digest(self, content: bytes) -> str:
        """With the secret, so that nobody who reads the digest can try out what it is of."""
        return hmac.new(self._secret, content, hashlib.sha256).hexdigest()

    def read(self, token: str, kind: TokenKind) -> Claims:
        payload = self._verified_payload(token)
        # Another program may sign with the same secret and use other values.
        if payload is None or payload["typ"] != kind or not _ACCOUNT.fullmatch(payload["sub"]):
            raise Unauthenticated(f"This is no valid {kind} token. It may have expired: sign in again, or refresh it.")
        return Claims(str(payload["sub"]), str(payload["chain"]), str(payload["jti"]))

    def _verified_payload(self, token: str) -> Mapping[str, Any] | None:
        import jwt

        try:
            return jwt.decode(
                token,
                self._secret,
                algorithms=["HS256"],
                leeway=_CLOCK_LEEWAY_SECONDS,
                options={"require": ["sub", "typ", "chain", "jti", "iat", "exp"]},
            )
        except (jwt.InvalidTokenError, ValueError):  # ValueError: unpaired surrogates in the token
            return None


def signing_secret(database: Database, configured: str | None, *, wait_seconds: float = 2.0) -> bytes:
    """The configured secret, or one generated once and saved beside the database (in memory: lost with it).

    `wait_seconds`: how long to wait for a key file that another process has created and not yet written.
    """
    if configured is not None:
        return configured.encode("utf-8", "surrogateescape")
    if database.folder is None:
        return secrets.token_bytes(_KEY_BYTES)
    try:
        return _create_or_read_secret(database.folder / _KEY_FILE, wait_seconds)
    except OSError as error:
        raise DatabaseUnavailable(
            "JWT_SECRET_KEY is not set, and the folder of the database is not writable: set the key."
        ) from error


def _create_or_read_secret(path: Path, wait_seconds: float) -> bytes:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_secret(path, wait_seconds)
    with os.fdopen(file, "w", encoding="ascii") as opened:
        opened.write(secrets.token_hex(_KEY_BYTES))
    _log.info("JWT_SECRET_KEY is not set: generated a key and saved it in %s", path)
    return _read_secret(path, wait_seconds)


def _read_secret(path: Path, wait_seconds: float) -> bytes:
    """Waits, as another process may have created the file a moment ago without writing to it yet."""
    deadline = time.monotonic() + wait_seconds
    while True:
        secret = path.read_text(encoding="ascii", errors="replace").strip()
        if len(secret) >= 2 * _KEY_BYTES:
            return secret.encode()
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    raise DatabaseUnavailable(f"{_KEY_FILE} beside the database holds no key: delete it, and a new one is made.")
