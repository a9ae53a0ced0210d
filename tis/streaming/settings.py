"""Settings of recorded streams."""

from typing import Literal

from pydantic import BaseModel, Field, SecretStr


class StreamSettings(BaseModel):
    """Streams"""

    cancel_after_disconnect_seconds: float = Field(
        3600,
        ge=0,
        description="cancel an answer with a session_id after this time without a reader; 0 = never",
    )
    anonymous_grace_seconds: float = Field(
        30, ge=0, description="the same for requests without a session_id; 0 = at once"
    )
    slow_reader_seconds: float = Field(
        60, gt=0, description="cut a connection whose client has read nothing for so long although there is more"
    )
    sessions_ttl_seconds: float = Field(600, ge=1, description="how long a finished stream can be replayed")
    max_sessions: int = Field(1024, ge=1, description="max streams kept")
    persist_sessions: bool = Field(False, description="keep streams in a file, so that they survive the process")
    session_store: Literal["memory", "sqlite", "redis"] | None = Field(
        None,
        description="where streams are kept: memory, sqlite (a file), or redis, which several servers share; "
        "unset: sqlite with PERSIST_SESSIONS=1, else memory",
    )
    redis_url: SecretStr | None = Field(
        None,
        min_length=1,
        description="redis://, rediss:// (TLS) or redis+sentinel://HOST:26379,HOST/SERVICE/DB, for "
        "SESSION_STORE=redis; servers that have the same one also share limits of calls and loads of models",
    )
    session_lease_seconds: float = Field(
        10,
        ge=1,
        le=300,
        description="with REDIS_URL: how long a server is silent until its running calls count no more, and another "
        "goes on with its answers; with RESPONSES_URL: with its responses in the background",
    )
    sessions_db_path: str = Field(
        "sessions.db", min_length=1, description="that file (SQLite); one process at a time uses it"
    )
    sessions_max_mb: int = Field(
        1024, ge=1, description="MiB of that file; when it is full, the oldest finished streams are deleted"
    )
    sessions_sync: Literal["normal", "full"] = Field(
        "normal", description="normal survives a killed process, full a power cut too, and is slower"
    )
    max_session_media_mb: float = Field(
        64, ge=0, description="MiB of media saved per stream (to resume after a crash) or per conversation"
    )
    resume_generation: bool = Field(
        True, description="resume running answers after a restart; 0 ends them with an error"
    )

    @property
    def store_kind(self) -> Literal["memory", "sqlite", "redis"]:
        """As SESSION_STORE says, or PERSIST_SESSIONS where that is unset."""
        return self.session_store or ("sqlite" if self.persist_sessions else "memory")
