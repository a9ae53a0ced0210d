"""Archives in SQLite and in a real PostgreSQL, with the streams in memory, in a file or in Redis."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.marketplace.postgres import Postgres, required_postgres
from tests.streaming.stores.harness import FAST, FAST_REDIS
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.archive.sql_archive import ArchiveLimits, SqlArchive
from tis.streaming.kept_ends import RetainedForm
from tis.streaming.retention import SessionLimits
from tis.streaming.sessions import Sessions
from tis.streaming.source import ResumeSource
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.redis import RedisStore
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import Store

FAST_ARCHIVE = ArchiveLimits(answer_seconds=2, store_seconds=20, retry_seconds=0.02, lease_seconds=0.3)
FORM = RetainedForm(lambda document: document.decode().split(), lambda data: data + b" (not stored)")
_names = (f"archive_{number}" for number in itertools.count())
ON_POSTGRESQL = pytest.param("postgresql", marks=[pytest.mark.slow, pytest.mark.server])
MakeStreams = Callable[[], Store]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with required_postgres() as running:
        yield running


@pytest.fixture(params=["sqlite", ON_POSTGRESQL])
def archive_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/responses.db"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_database(next(_names))


@dataclass
class SharedClock:
    """The wall clock of all archives of a test."""

    time: float = 1e9
    step: Iterator[int] = field(default_factory=itertools.count)

    def __call__(self) -> float:
        return self.time + next(self.step) * 1e-6


@pytest.fixture
def clock() -> SharedClock:
    return SharedClock()


@pytest.fixture(params=["memory", "file", pytest.param("redis", marks=[pytest.mark.slow, pytest.mark.server])])
def make_streams(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStreams:
    """Each call is another process: it has its own memory or file, or shares the Redis."""
    numbers = itertools.count()
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url
        return lambda: RedisStore(url, timeouts=FAST_REDIS)
    if request.param == "file":
        return lambda: SqliteStore(tmp_path / f"sessions-{next(numbers)}.db", timeouts=FAST)
    return MemoryStore


MakeSessions = Callable[..., Sessions]


@pytest.fixture
def make_sessions(archive_url: str, make_streams: MakeStreams, clock: SharedClock) -> MakeSessions:
    def make(resume_source: ResumeSource | None = None, limits: ArchiveLimits = FAST_ARCHIVE) -> Sessions:
        store = ArchivingStore(make_streams(), SqlArchive(archive_url, limits, clock))
        return Sessions(SessionLimits(sweep_seconds=0.02), store, resume_source, retained_form=FORM)

    return make


@pytest.fixture
async def pair(make_sessions: MakeSessions) -> AsyncIterator[tuple[Sessions, Sessions]]:
    a, b = make_sessions(), make_sessions()
    for sessions in (a, b):
        await sessions.open()
    yield a, b
    for sessions in (a, b):
        await sessions.close()
