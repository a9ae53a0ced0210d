"""Read tokens: for the query of a GET that reads one session, because an `EventSource` cannot send a key as a header.

A token names the session's latest answer at its time, and is valid while that answer runs and until the session's TTL
after it. What is signed includes the owner, whose key the server must still know. The secret is random and stays beside
the session file, as tokens outlive a restart there; it is not derived from the API keys, because anybody with a token
could then try out weak keys without asking the server.
"""

import hashlib
import hmac
import logging
import os
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

from tis.observability.logs import log_exception
from tis.streaming.session import Session
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

_log = logging.getLogger("tis.http")
_TOKEN = re.compile(r"(\d{1,15})\.(\d{1,9})\.([A-Za-z0-9_-]{43})", re.ASCII)
_SECRET_BYTES = 32


class ReadTokens:
    def __init__(self, sessions: Sessions, sessions_path: Path | None = None) -> None:
        """`sessions_path`: where the sessions survive this process, if they do."""
        self._sessions = sessions
        self._sessions_path = sessions_path
        self._secret = secrets.token_bytes(_SECRET_BYTES)

    def open(self) -> None:
        if self._sessions_path is None:
            return
        try:
            self._secret = _saved_secret(self._sessions_path.with_name(self._sessions_path.name + ".key"))
        except OSError as error:
            log_exception("the key of read tokens cannot be saved: they end with this process", error, "-")

    def issue(self, session: Session) -> str:
        issued_at = int(self._sessions.now())
        turn = session.latest
        return f"{issued_at}.{turn.record.number}.{self._signature(session.owner, session.id, issued_at, turn)}"

    def owner_of(self, token: str, session_id: str, owners: Iterable[str]) -> str | None:
        """Which of these owners issued the token for this session; None if it is invalid or has expired."""
        if (match := _TOKEN.fullmatch(token)) is None:
            return None
        issued_at, number, signature = int(match[1]), int(match[2]), match[3]
        # A signature takes 10 µs, and there may be 1000 owners: it is made only for those who have such a session.
        having: list[tuple[str, Session | None]] = [
            (owner, found) for owner in owners if (found := self._sessions.peek(owner, session_id, of_any_kind=True))
        ]
        # One is made where nobody has it, and all where several do: the time taken tells a stranger nothing.
        result: str | None = None
        for owner, session in having or [("", None)]:
            turns = session.turns if session else []
            turn = next((one for one in turns if one.record.number == number), None)
            expected = self._signature(owner, session_id, issued_at, turn)
            if (
                hmac.compare_digest(signature, expected)
                and session
                and turn
                and self._is_fresh(session, turn, issued_at)
            ):
                result = owner
        return result

    def _is_fresh(self, session: Session, turn: Turn, issued_at: int) -> bool:
        return turn.is_running or self._sessions.now() <= max(issued_at, turn.record.ended_at) + session.ttl_seconds

    def _signature(self, owner: str, session_id: str, issued_at: int, turn: Turn | None) -> str:
        # A session that comes to be under the same id later begins with another request, as a rule.
        number, fingerprint = (turn.record.number, turn.fingerprint) if turn else (0, "")
        signed = "\n".join(["read token", owner, session_id, str(issued_at), str(number), fingerprint])
        digest = hmac.digest(self._secret, signed.encode(), hashlib.sha256)
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
