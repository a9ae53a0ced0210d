"""Password hashes (argon2). Called outside of transactions: hashing is slow, and SQLite has one writer."""

import threading
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, SecretStr

from tis.marketplace.auth.weak_passwords import require_no_personal_password, weakness_of

if TYPE_CHECKING:
    from argon2 import PasswordHasher


def _not_weak(password: SecretStr) -> SecretStr:
    if weakness := weakness_of(password.get_secret_value()):
        raise ValueError(f"this password {weakness}")
    return password


Password = Annotated[SecretStr, Field(min_length=8, max_length=200), AfterValidator(_not_weak)]
TypedPassword = Annotated[SecretStr, Field(max_length=200)]
# Routes hash in the threads of `PasswordQueue`; this bounds the memory of what does not (19 MiB each).
_hashing_slots = threading.BoundedSemaphore(4)


def hashed(password: SecretStr) -> str:
    with _hashing_slots:
        return _hasher().hash(_normalized(password))


def hashed_new(password: SecretStr, *facts: str | None) -> str:
    """Refuses one that is made of `facts`: the names and e-mail of its account."""
    require_no_personal_password(password, *facts)
    return hashed(password)


def matches(password: SecretStr, password_hash: str | None) -> bool:
    """Takes as long without a hash (unknown account, or no password set) as with one."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        with _hashing_slots:
            is_right = _hasher().verify(password_hash or _dummy_hash(), _normalized(password))
            return is_right and password_hash is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(password_hash: str) -> bool:
    return _hasher().check_needs_rehash(password_hash)


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)  # as OWASP recommends for servers


@cache
def _dummy_hash() -> str:
    return _hasher().hash("the password of nobody")


def _normalized(password: SecretStr) -> bytes:
    """Keyboards send the same letter as different code points."""
    return unicodedata.normalize("NFKC", password.get_secret_value()).encode("utf-8", "surrogatepass")
