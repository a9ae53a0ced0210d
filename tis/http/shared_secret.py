"""The secret of read tokens that servers share through their Redis: the first of them makes it."""

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from tis.streaming.stores.redis_clients import FAULTS, RedisClients, fault_label
from tis.streaming.stores.redis_keys import PREFIX

_log = logging.getLogger("tis.http")
SECRET_KEY = f"{PREFIX}:read-token-secret"
_LOOK_SECONDS = 10.0


class SharedSecret:
    """Read again every ten seconds, while tokens are used: an operator may replace it.

    Redis that has lost it gets it back, from whichever server looks first.
    """

    def __init__(self, clients: RedisClients, clock: Callable[[], float] = time.monotonic) -> None:
        self._redis: Any = clients.commands
        self._clock = clock
        self._secret = secrets.token_hex(32).encode()
        self._looked_at = float("-inf")

    async def open(self) -> None:
        await self.all()

    async def all(self) -> Sequence[bytes]:
        if self._clock() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = self._clock()
            try:
                self._secret = await self._redis.set(SECRET_KEY, self._secret, nx=True, get=True) or self._secret
            except FAULTS as error:
                _log.warning("the secret of read tokens could not be read from Redis (%s)", fault_label(error))
        return [self._secret]
