"""API keys: they are checked before a body is read, so a stranger can neither load nor probe what lies behind."""

import base64
import binascii
import contextvars
import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import SecretStr
from starlette.datastructures import Headers

from tis.http.errors import InvalidApiKey

ANONYMOUS = "anonymous"
ADMIN = "admin"
# Names of the keys of API_KEYS are `env-1` and so on, so those of API_KEYS_FILE begin otherwise.
ENVIRONMENT_PREFIX = "env-"
_log = logging.getLogger("tis.http")
_MIN_SAFE_CHARS = 16
_OWNER_CHARS = 2 * hashlib.sha256().digest_size
_MISSING = "Incorrect or missing API key. Send it as `Authorization: Bearer <key>`."


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one caller may do; 0 is no limit, None leaves it to the settings."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    running_requests: int | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    name: str
    digest: bytes
    models: frozenset[str] | None = None  # None: all of them
    owner_share: float | None = None
    expires_at: float | None = None
    limits: CallLimits = field(default_factory=CallLimits)

    @property
    def owner(self) -> str:
        """To whom sessions belong. It does not reveal the key, and stays if the key moves to another setting."""
        return self.digest.hex()


class ApiKeys:
    """Stores only digests, so a heap dump or a log of it reveals no key. Without keys every request is accepted."""

    def __init__(
        self,
        keys: Iterable[str],
        admin_key: str | None = None,
        *,
        file_keys: Sequence[ApiKey] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """The admin key opens what the others do. It alone closes nothing; a file without keys closes all."""
        self._clock = clock
        self._fixed = [ApiKey(f"{ENVIRONMENT_PREFIX}{number}", digest_of(key)) for number, key in enumerate(keys, 1)]
        self.is_open = not self._fixed and file_keys is None
        if admin_key and not self.is_open:
            self._fixed.append(ApiKey(ADMIN, digest_of(admin_key)))
        self.replace_file_keys(file_keys or ())

    def replace_file_keys(self, keys: Sequence[ApiKey]) -> None:
        """In a thread, so the owners come first: at no moment is a new key accepted whose owner is unknown."""
        self._owners = frozenset(key.owner for key in (*self._fixed, *keys))
        self.all = (*self._fixed, *keys)
        self._shares = {key.owner: key.owner_share for key in self.all if key.owner_share is not None}

    @property
    def owners(self) -> list[str]:
        now = self._clock()
        valid = [key.owner for key in self.all if key.expires_at is None or now < key.expires_at]
        return [ANONYMOUS] if self.is_open else valid

    @property
    def names(self) -> list[str]:
        return [ANONYMOUS] if self.is_open else [key.name for key in self.all]

    def is_revoked(self, owner: str) -> bool:
        """Whether this is the owner name of a key that the server does not have any more, or had at an earlier start.

        An expired key is not revoked. Owners who are no keys, as in the marketplace, have names of other lengths.
        """
        return not self.is_open and len(owner) == _OWNER_CHARS and owner not in self._owners

    def share_of(self, owner: str) -> float | None:
        """The part of the queue that a key of the file may use, if the file says so."""
        return self._shares.get(owner)

    def owner_of(self, headers: Headers) -> str:
        """Returns a stable name for the client that sent the key. Raises InvalidApiKey."""
        return ANONYMOUS if self.is_open else self.find(key_in(headers)).owner

    def find(self, sent: str) -> ApiKey:
        """Raises InvalidApiKey."""
        digest = digest_of(sent)
        found: ApiKey | None = None
        # No early return at a match: the time taken must not depend on which key matched.
        for key in self.all:
            if hmac.compare_digest(digest, key.digest):
                found = key
        if found is None:
            raise InvalidApiKey(_MISSING)
        self.require_valid(found)
        return found

    def require_valid(self, key: ApiKey) -> None:
        """For a key that was found before, as a body may take hours to arrive. Raises InvalidApiKey."""
        if self.is_revoked(key.owner):
            raise InvalidApiKey("This API key has been revoked.")
        if key.expires_at is not None and self._clock() >= key.expires_at:
            raise InvalidApiKey("This API key has expired.")


def warn_of_short_keys(keys: Iterable[SecretStr]) -> None:
    """Nothing slows down a stranger who tries keys, so they have to be long."""
    if any(len(key.get_secret_value()) < _MIN_SAFE_CHARS for key in keys):
        _log.warning(
            "a key of API_KEYS or ADMIN_KEY has fewer than %d characters: it can be guessed. `tis keys add` makes one "
            "that cannot",
            _MIN_SAFE_CHARS,
        )


def key_in(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "").strip()


def password_in(headers: Headers) -> str | None:
    """A key that a browser or Prometheus sends as the password of a Basic login."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(token.strip(), validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        return None
    return decoded.partition(":")[2]


def digest_of(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


_current: contextvars.ContextVar[ApiKey | None] = contextvars.ContextVar("api_key", default=None)


def current_key() -> ApiKey | None:
    """The key of the request that is being answered; None where none is needed."""
    return _current.get()


def set_current_key(key: ApiKey | None) -> None:
    _current.set(key)
