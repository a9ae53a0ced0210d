"""`API_KEYS_FILE`: keys with names, models, limits and an expiry, as YAML or JSON."""

import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from tis.http.api_keys import ADMIN, ANONYMOUS, ENVIRONMENT_PREFIX, ApiKey, ApiKeys, CallLimits, digest_of

_log = logging.getLogger("tis.http")

_MAX_FILE_BYTES = 1024 * 1024
_MAX_KEYS = 1000  # each is compared with every key that is sent: 1000 take a third of a millisecond
_DIGEST_PREFIX = "sha256:"
_Limit = Annotated[int | None, Field(ge=0, le=10**12)]


def _day_of(value: object) -> object:
    """A day that is written as text would else become its first moment."""
    return date.fromisoformat(value) if isinstance(value, str) and len(value) == len("2027-01-31") else value


_Expiry = Annotated[datetime | date | None, BeforeValidator(_day_of)]
_Model = Annotated[str, Field(min_length=1, max_length=512)]


class KeyFileError(Exception):
    """One line that says what is wrong with the file. It never quotes what is in it."""


class KeyFileUnreadable(KeyFileError):
    """The file is not there, may not be read, or no descriptor is free."""


class KeyEntry(BaseModel):
    """One key, as it is written in the file."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    key: str | None = Field(None, min_length=8, max_length=1024)
    digest: str | None = Field(None, pattern=rf"^{_DIGEST_PREFIX}[0-9a-f]{{64}}$")
    models: list[_Model] | None = Field(None, min_length=1, max_length=1000)
    share: float | None = Field(None, gt=0, le=1)
    expires: _Expiry = None
    note: str = Field("", max_length=1000)
    requests_per_minute: _Limit = None
    tokens_per_minute: _Limit = None
    tokens_per_day: _Limit = None
    running_requests: _Limit = None

    @model_validator(mode="after")
    def _one_secret_and_a_free_name(self) -> Self:
        if (self.key is None) == (self.digest is None):
            raise ValueError("a key has either `key` or `digest`")
        if self.name in (ADMIN, ANONYMOUS) or self.name.startswith(ENVIRONMENT_PREFIX):
            raise ValueError(f"the names {ADMIN}, {ANONYMOUS} and {ENVIRONMENT_PREFIX}... are taken")
        return self

    @property
    def expires_at(self) -> float | None:
        """A day without a time ends in UTC."""
        if self.expires is None:
            return None
        if not isinstance(self.expires, datetime):
            return datetime.combine(self.expires + timedelta(days=1), time(), UTC).timestamp()
        return (self.expires if self.expires.tzinfo else self.expires.replace(tzinfo=UTC)).timestamp()

    def api_key(self) -> ApiKey:
        digest = digest_of(self.key) if self.key else bytes.fromhex((self.digest or "").removeprefix(_DIGEST_PREFIX))
        return ApiKey(
            self.name,
            digest,
            None if self.models is None else frozenset(self.models),
            self.share,
            self.expires_at,
            CallLimits(self.requests_per_minute, self.tokens_per_minute, self.tokens_per_day, self.running_requests),
        )


class _KeyList(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    keys: list[KeyEntry] = Field(max_length=_MAX_KEYS)


class KeyFile:
    """What was read last stays in use while the file is wrong, half-written or gone; `error` says so."""

    def __init__(self, path: Path) -> None:
        """Raises KeyFileError."""
        self.path = path
        self.error: str | None = None
        self.first_keys = read_keys(path)

    def reload(self, keys: ApiKeys) -> bool:
        """False if the file should be tried again although it does not change: it could not be opened."""
        try:
            read = read_keys(self.path)
        except KeyFileError as error:
            if self.error != str(error):
                _log.error("%s The keys that were read before stay in use.", error)
            self.error = str(error)
            return not isinstance(error, KeyFileUnreadable)
        self.error = None
        keys.replace_file_keys(read)
        _log.info("read %d API keys of %s", len(read), self.path)
        return True


def read_keys(path: Path) -> list[ApiKey]:
    """Raises KeyFileError."""
    keys = [entry.api_key() for entry in read_entries(path)]
    if len({key.digest for key in keys}) < len(keys):
        raise KeyFileError(f"{path}: two names have the same key.")
    return keys


def read_entries(path: Path) -> list[KeyEntry]:
    """Raises KeyFileError."""
    try:
        with path.open("rb") as file:
            written = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KeyFileUnreadable(f"{path} cannot be read: {error.strerror}.") from None
    if len(written) > _MAX_FILE_BYTES:
        raise KeyFileError(f"{path} is larger than {_MAX_FILE_BYTES // 1024} KiB.")
    try:
        entries = _KeyList.model_validate(_parsed(path, written)).keys
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:4])
        raise KeyFileError(f"{path}: {where or 'the file'}: {first['msg'].removeprefix('Value error, ')}.") from None
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise KeyFileError(f"{path}: the name {twice} is there twice.")
    return entries


def _parsed(path: Path, written: bytes) -> Any:
    try:
        text = written.decode("utf-8")
        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except json.JSONDecodeError as error:
        raise KeyFileError(f"{path} is not valid JSON (line {error.lineno}).") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise KeyFileError(f"{path} is not valid YAML{f' (line {mark.line + 1})' if mark else ''}.") from None
    except (ValueError, RecursionError):
        raise KeyFileError(f"{path} is not valid UTF-8, or is nested too deeply.") from None
    if not isinstance(found, dict):
        raise KeyFileError(f"{path} must have a list `keys`; an empty file is taken for one that is being written.")
    return found


def write_entries(path: Path, entries: Sequence[KeyEntry]) -> None:
    """Whole or not at all, and never for everybody to read. Raises OSError.

    A file that is there keeps its owner and group: else the server, which is another user than root, could not read
    what root writes, and would go on to accept a key that root has revoked.
    """
    path = path.resolve()  # a link stays a link
    shown = [entry.model_dump(mode="json", exclude_defaults=True) for entry in entries]
    text = json.dumps({"keys": shown}, indent=2) if path.suffix == ".json" else _as_yaml({"keys": shown})
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            if path.exists():
                _take_over_access(path, draft)
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _take_over_access(old: Path, new: Path) -> None:
    """Raises OSError where another user than root replaces a file of somebody else."""
    before, now = old.stat(), new.stat()
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        shutil.chown(new, before.st_uid, before.st_gid)
    if not is_for_everybody(old):
        new.chmod(0o600 | before.st_mode & stat.S_IRGRP)


def is_for_everybody(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & stat.S_IRWXO)


def _as_yaml(document: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True)).rstrip()


def new_secret() -> tuple[str, str]:
    """A key, and its digest as the file has it."""
    key = f"sk-tis-{secrets.token_urlsafe(32)}"
    return key, _DIGEST_PREFIX + hashlib.sha256(key.encode()).hexdigest()


def expiry_of(text: str, now: datetime) -> datetime | date:
    """`2027-01-31`, `2027-01-31T12:00:00Z`, or days from now: `30d`. Raises ValueError."""
    if days := re.fullmatch(r"(\d{1,5})d", text):
        return (now + timedelta(days=int(days[1]))).replace(microsecond=0)
    return date.fromisoformat(text) if len(text) == len("2027-01-31") else datetime.fromisoformat(text)
