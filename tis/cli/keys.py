"""`tis keys add`, `list` and `revoke`: the keys of API_KEYS_FILE. A running server reads the file within a second."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tis.http.key_file import (
    KeyEntry,
    KeyFileError,
    expiry_of,
    is_for_everybody,
    new_secret,
    read_entries,
    write_entries,
)
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Add, list and revoke API keys in the file that API_KEYS_FILE or --file names.

`add` shows the key once; the file has only its digest. A running server reads the file within a second or two.
Comments in the file are lost."""
_DEFAULT_FILE = "api-keys.yaml"
_LIMITS = ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "running_requests")
_HEAD = ("NAME", "EXPIRES", "SHARE", "MODELS", "LIMITS", "NOTE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="make a key and show it once", allow_abbrev=False)
    add.add_argument("name", metavar="NAME", help="letters, digits, dots, dashes; shown in /metrics and logs")
    add.add_argument("--models", metavar="A,B", help="the models that it may use; all, if left out")
    add.add_argument("--share", type=float, metavar="PART", help="part of the queue, 0 to 1")
    add.add_argument("--expires", metavar="WHEN", help="2027-01-31, 2027-01-31T12:00:00Z, or 30d")
    add.add_argument("--note", default="", help="for people")
    for limit in _LIMITS:
        add.add_argument(f"--{limit.replace('_', '-')}", type=int, metavar="N", help="0 = no limit")
    listed = actions.add_parser("list", help="show the keys, without what is secret", allow_abbrev=False)
    revoke = actions.add_parser("revoke", help="remove a key", allow_abbrev=False)
    revoke.add_argument("name", metavar="NAME")
    for action in (add, listed, revoke):
        action.add_argument("--file", metavar="PATH", help=f"instead of API_KEYS_FILE, or of {_DEFAULT_FILE}")


def run(parsed: argparse.Namespace) -> None:
    try:
        path = _path(parsed)
        {"add": _add, "list": _list, "revoke": _revoke}[parsed.action](path, parsed)
    except (SettingsError, KeyFileError) as error:
        sys.exit(f"tis keys: {error}")
    except OSError as error:
        sys.exit(f"tis keys: {error.filename or path} cannot be written: {error.strerror}.")


def _path(parsed: argparse.Namespace) -> Path:
    if parsed.file:
        return Path(parsed.file)
    return Path(Settings.from_env().api_keys_file or _DEFAULT_FILE)


def _add(path: Path, parsed: argparse.Namespace) -> None:
    key, digest = new_secret()
    given: dict[str, Any] = {"name": parsed.name, "digest": digest, "note": parsed.note, "share": parsed.share}
    given |= {limit: getattr(parsed, limit) for limit in _LIMITS}
    if parsed.models:
        given["models"] = [name.strip() for name in parsed.models.split(",") if name.strip()]
    if parsed.expires:
        try:
            given["expires"] = expiry_of(parsed.expires, datetime.now(UTC))
        except (ValueError, OverflowError):
            raise KeyFileError(f"--expires {parsed.expires!r} is no date, time or number of days.") from None
    try:
        entry = KeyEntry.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        message = first["msg"].removeprefix("Value error, ")
        raise KeyFileError(f"{'.'.join(map(str, first['loc'])) or 'the key'}: {message}.") from None
    with _locked(path):
        entries = read_entries(path) if path.exists() else []
        if any(one.name == entry.name for one in entries):
            raise KeyFileError(f"{path} has a key {entry.name} already: revoke it, or take another name.")
        _write(path, [*entries, entry])
    print(key)  # noqa: T201
    print(f"Saved the digest of the key {entry.name} in {path}. The key is shown only now.", file=sys.stderr)  # noqa: T201


def _revoke(path: Path, parsed: argparse.Namespace) -> None:
    with _locked(path):
        entries = read_entries(path)
        left = [entry for entry in entries if entry.name != parsed.name]
        if len(left) == len(entries):
            raise KeyFileError(f"{path} has no key {parsed.name}.")
        _write(path, left)
    print(f"Removed the key {parsed.name} from {path}.", file=sys.stderr)  # noqa: T201


def _write(path: Path, entries: Sequence[KeyEntry]) -> None:
    was_for_everybody = path.exists() and is_for_everybody(path)
    write_entries(path, entries)
    if was_for_everybody:
        print(  # noqa: T201
            f"Everybody could read {path}; now {_owner_of(path)} alone can. A server of another user cannot "
            "read it, and keeps the keys that it has, until you give the file to that user (chown).",
            file=sys.stderr,
        )


def _owner_of(path: Path) -> str:
    try:
        return path.resolve().owner()
    except KeyError:  # a container may run as a user without a name
        return f"user {path.stat().st_uid}"


def _list(path: Path, parsed: argparse.Namespace) -> None:
    rows = [_HEAD, *map(_row, read_entries(path))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())  # noqa: T201


def _row(entry: KeyEntry) -> tuple[str, ...]:
    limits = [f"{name}={value}" for name in _LIMITS if (value := getattr(entry, name)) is not None]
    expires = str(entry.expires or "-")
    if entry.expires_at is not None and entry.expires_at <= datetime.now(UTC).timestamp():
        expires += " (expired)"
    share = "-" if entry.share is None else f"{entry.share:g}"
    models = "all" if entry.models is None else ",".join(entry.models)
    return entry.name, expires, share, models, " ".join(limits) or "-", entry.note.replace("\n", " ")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two commands at once would lose the key of one."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise KeyFileError(f"another `tis keys` is at work; if not, remove {lock}.") from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
