"""Connections to Redis: one pool for what is soon answered, another for commands that wait for news."""

import hashlib
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError, ResponseError

# What Redis cannot do now, and may be able to do later. Another refusal concerns the one thing that was asked.
_PASSING = tuple(
    "OOM READONLY LOADING MISCONF NOAUTH NOPERM WRONGPASS MASTERDOWN NOREPLICAS CLUSTERDOWN TRYAGAIN BUSY".split()
)
_PASSING_NAMES = tuple(
    "OutOfMemoryError ReadOnlyError BusyLoadingError MasterDownError NoScriptError NoPermissionError"
    " AuthenticationError ClusterDownError TryAgainError".split()
)
FAULTS = (RedisError, OSError, TimeoutError)
_SENTINEL = "redis+sentinel"


class RedisScript:
    """A script that Redis knows by its hash; for pipelines, in which redis-py would ask for it each time."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._hash = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()

    def queue(self, pipeline: Pipeline, keys: Sequence[str], arguments: Sequence[Any]) -> None:
        pipeline.evalsha(self._hash, len(keys), *keys, *arguments)

    async def load(self, redis: Redis) -> None:
        await cast(Any, redis.script_load(self._source))

    async def run(self, redis: Redis, keys: Sequence[str], arguments: Sequence[Any] = ()) -> Any:
        try:
            return await cast(Any, redis.evalsha(self._hash, len(keys), *keys, *arguments))
        except NoScriptError:
            return await cast(Any, redis.eval(self._source, len(keys), *keys, *arguments))


class BlockingSentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """As the pool without Sentinels: whoever finds all connections in use waits for one."""


class RedisClients:
    """`commands` are answered within `seconds`; `waits` may take `wait_seconds` longer, each with a connection."""

    def __init__(self, url: str, *, seconds: float, wait_seconds: float, max_waits: int) -> None:
        self._sentinels: list[Any] = []
        self.commands = self._client(url, seconds, max_connections=64)
        self.waits = self._client(url, seconds + wait_seconds, max_connections=max_waits)
        for client in (self.commands, self.waits):
            pool = client.connection_pool
            pool.connection_class = _noticing_ends(pool.connection_class)

    async def close(self) -> None:
        for client in (self.commands, self.waits):
            await client.aclose()
            await client.connection_pool.disconnect()
        for sentinel in self._sentinels:
            await sentinel.aclose()

    def _client(self, url: str, seconds: float, max_connections: int) -> Redis:
        options: dict[str, Any] = {
            "socket_timeout": seconds,
            "socket_connect_timeout": 2.0,
            "socket_keepalive": True,
            "health_check_interval": 15,
            "retry": Retry(NoBackoff(), 0),  # what fails is tried again by those who know what it was
        }
        parts = urlsplit(url)
        # A password with / ? or #: what is behind it would be taken for a path, and be shown.
        if parts.netloc.rpartition("@")[2].startswith(":") or "@" in parts.path + parts.query + parts.fragment:
            raise ValueError("/ ? # and @ of a password must be percent-encoded")
        if parts.scheme != _SENTINEL:
            pool = BlockingConnectionPool.from_url(url, timeout=seconds, max_connections=max_connections, **options)
            return Redis.from_pool(pool)
        hosts = [host.rpartition(":") for host in parts.netloc.rpartition("@")[2].split(",")]
        addresses = [(name or port, int(port) if name else 26379) for name, _, port in hosts]
        service, _, database = parts.path.strip("/").partition("/")
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        login = {"username": unquote(user) or None, "password": unquote(password) or None}
        sentinel = cast(Any, Sentinel)(addresses, sentinel_kwargs={"socket_timeout": 2.0}, **options, **login)
        self._sentinels += sentinel.sentinels
        of_pool = {
            "connection_pool_class": BlockingSentinelPool,
            "timeout": seconds,
            "max_connections": max_connections,
        }
        return cast(Redis, sentinel.master_for(service, db=int(database or 0), **of_pool))


def _noticing_ends(kind: Any) -> Any:
    """A kind of connection that is replaced when it was closed or reset while nobody used it.

    To write to one that was reset is a RuntimeError of uvloop.
    """

    class NoticingConnection(kind):  # type: ignore[misc]
        async def can_read(self) -> bool:
            """The pool asks this before it gives the connection to anybody."""
            if self._writer.is_closing() or self._reader.at_eof():
                raise RedisConnectionError("The connection was closed.")
            return bool(await super().can_read())

        async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
            try:
                await super().send_packed_command(command, check_health)
            except RuntimeError as closed:
                raise RedisConnectionError("The connection was reset.") from closed

    return NoticingConnection


def is_passing(error: Exception) -> bool:
    if not isinstance(error, ResponseError):
        return True
    return type(error).__name__ in _PASSING_NAMES or str(error).startswith(_PASSING)


def fault_label(error: Exception) -> str:
    """One of few: it is a label of a metric."""
    if isinstance(error, ResponseError):
        word = str(error).partition(" ")[0]
        return word if word in _PASSING else type(error).__name__
    return "timeout" if "imeout" in type(error).__name__ else "connection"


def url_without_password(url: str) -> str:
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    user = login.partition(":")[0]
    return urlunsplit((parts.scheme, f"{user}{at}{hosts}" if user else hosts, parts.path, "", ""))
