"""Where the settings keep sessions, and what servers share; where they send traces."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tis import __version__
from tis.chat.run_spec import VERSION as RUN_VERSION
from tis.engine.engine import Engine
from tis.observability.spans import NO_TRACER, Tracer
from tis.setting_types import SettingsError
from tis.settings import Settings
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import Store

if TYPE_CHECKING:
    from tis.http.shared_parts import SharedParts


def session_store_of(settings: Settings) -> Store:
    if settings.responses_url is None:
        return _stream_store_of(settings)
    from tis.database.errors import DatabaseUrlError
    from tis.streaming.archive.sql_archive import ArchiveLimits, SqlArchive

    limits = ArchiveLimits(
        ttl_seconds=settings.responses_ttl_seconds,
        num_connections=settings.responses_pool_size,
        answer_seconds=settings.responses_timeout_seconds,
        store_seconds=settings.responses_store_seconds,
        lease_seconds=settings.session_lease_seconds,
    )
    try:
        archive = SqlArchive(settings.responses_url.get_secret_value(), limits)
    except DatabaseUrlError as error:
        raise SettingsError(str(error)) from None
    return ArchivingStore(_stream_store_of(settings), archive)


def _stream_store_of(settings: Settings) -> Store:
    if settings.store_kind == "redis":
        return _redis_store_of(settings)
    if settings.store_kind == "sqlite":
        max_bytes = settings.sessions_max_mb * 2**20
        return SqliteStore(Path(settings.sessions_db_path), sync=settings.sessions_sync, max_bytes=max_bytes)
    return MemoryStore()


def _redis_store_of(settings: Settings) -> Store:
    assert settings.redis_url
    with _readable_redis_url():
        from tis.streaming.stores.redis import RedisStore, RedisTimeouts

        return RedisStore(
            settings.redis_url.get_secret_value(),
            ttl_seconds=settings.sessions_ttl_seconds,
            timeouts=RedisTimeouts(lease_seconds=settings.session_lease_seconds),
            run_version=RUN_VERSION,
        )


def shared_parts_of(settings: Settings, engine: Engine) -> "SharedParts | None":
    if settings.redis_url is None:
        return None
    with _readable_redis_url():
        from tis.http.shared_parts import SharedParts
        from tis.streaming.stores.redis_clients import RedisClients

        clients = RedisClients(settings.redis_url.get_secret_value(), seconds=1.0, wait_seconds=0.0, max_waits=1)
        return SharedParts(clients, engine, settings.session_lease_seconds)


@contextmanager
def _readable_redis_url() -> Iterator[None]:
    """Raises SettingsError."""
    try:
        yield
    except ImportError as missing:
        raise SettingsError(f"REDIS_URL: {missing.name} is missing: pip install -r requirements-redis.txt") from None
    except ValueError:
        raise SettingsError(
            "REDIS_URL cannot be read: redis://HOST:6379/0 is one that can. "
            "/ ? # and @ of a password are written %2F %3F %23 and %40."
        ) from None


def tracer_of(settings: Settings) -> Tracer:
    """Raises SettingsError: who turned traces on shall not miss them in silence."""
    if not settings.traces:
        return NO_TRACER
    try:
        from tis.observability.trace_export import otlp_tracer

        return otlp_tracer(__version__)
    except ImportError as missing:
        raise SettingsError(f"TRACES: {missing.name} is missing: pip install -r requirements-traces.txt") from None
    except (ValueError, OSError) as fault:
        raise SettingsError(f"TRACES: {fault}") from None
