"""Password hashes (argon2). Called outside of transactions: hashing is slow, and SQLite has one writer."""

import asyncio
import contextvars
import os
import threading
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import AfterValidator, Field, SecretStr

from tis.errors import QueueFull
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


Result = TypeVar("Result")
# A hash takes 19 MiB and a core for some 30 ms: half of the cores stay free, and nobody waits for more than seconds.
_MAX_RUNNING = min(4, max(1, (os.cpu_count() or 1) // 2))
_MAX_PASSWORDS_WAITING = 100


class PasswordQueue:
    def __init__(self, *, max_running: int = _MAX_RUNNING, max_waiting: int = _MAX_PASSWORDS_WAITING) -> None:
        self._max_requests = max_running + max_waiting
        self.num_requests = 0  # running and waiting
        self._threads = ThreadPoolExecutor(max_running, thread_name_prefix="passwords")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Runs `work`, transactions included, in one of the threads of this queue. Raises QueueFull at once."""
        if self.num_requests >= self._max_requests:
            raise QueueFull("Too many people sign in at this moment. Retry shortly.", retry_after=2)
        self.num_requests += 1
        try:
            done = self._threads.submit(contextvars.copy_context().run, work)
            return await asyncio.wrap_future(done)
        finally:
            self.num_requests -= 1

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
