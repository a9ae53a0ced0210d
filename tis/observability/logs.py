"""Log lines: their format, and how an exception is described without logging what a user wrote."""

import json
import logging
import os
import re
import sqlite3
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, TextIO, TypeAlias

from tis.observability.spans import current_span

LogForm: TypeAlias = Literal["text", "json"]

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_MAX_REASON_CHARS = 500
_MAX_CAUSES = 5
READ_TOKEN = "read_token"  # the parameter of a query, see `tis.http.read_tokens`
_TOKEN_IN_QUERY = re.compile(rf"{READ_TOKEN}=[^&\s'\"]*")
_LOGGERS_OF_UVICORN = ("uvicorn.access", "uvicorn.asgi", "uvicorn.error")
_OWN_PACKAGE = __name__.partition(".")[0]


def configure_logs(level: str, handler: logging.Handler | None = None, form: LogForm = "text") -> None:
    """`handler` replaces the one for stderr. If logging is configured already, this changes only the level."""
    handler = handler or logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(ColourFormatter() if supports_colour(sys.stderr) else logging.Formatter(_FORMAT))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("tis").setLevel(level.upper())
    for name in _LOGGERS_OF_UVICORN:
        logger = logging.getLogger(name)
        if not any(isinstance(one, _RedactReadTokens) for one in logger.filters):
            logger.addFilter(_RedactReadTokens())


def supports_colour(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


class _RedactReadTokens(logging.Filter):
    """`uvicorn main:app` logs each URL with its query, and at level trace the whole request."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_redacted(one) for one in record.args)
        return True


def _redacted(value: object) -> object:
    text = value if isinstance(value, str) else str(value) if isinstance(value, dict | bytes) else ""
    return _TOKEN_IN_QUERY.sub(f"{READ_TOKEN}=[redacted]", text) if READ_TOKEN in text else value


class JsonFormatter(logging.Formatter):
    """A JSON object per line. The line of a request has its fields instead of a message."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        if trace_id := current_span().trace_id:
            line["trace_id"] = trace_id
        line |= getattr(record, "request", None) or {"message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class ColourFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = logging.Formatter(_FORMAT).format(record)
        level = f" {record.levelname} "
        return line.replace(level, f" \x1b[{_COLOURS.get(record.levelname, '0')}m{record.levelname}\x1b[0m ", 1)


def log_exception(what: str, fault: BaseException, request_id: str) -> None:
    """Logs the class and the traceback. Logs the message only of exceptions that never quote what a user wrote."""
    trace = "".join(traceback.format_tb(fault.__traceback__))
    logging.getLogger("tis.errors").error("%s: %s, request %s\n%s", what, describe_exception(fault), request_id, trace)


def describe_exception(fault: BaseException) -> str:
    """An exception and its causes, without messages that may quote what a user wrote."""
    return " from ".join(_one_line(one, _safe_message(one)) for one in _with_causes(fault))


def describe_with_messages(fault: BaseException) -> str:
    """With all messages. Only for exceptions that no request can influence."""
    return " from ".join(_one_line(one, str(one)) for one in _with_causes(fault))


def _with_causes(fault: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = fault
    for _ in range(_MAX_CAUSES):
        if one is None:
            return
        yield one
        # SQLAlchemy's errors quote the statement and its parameters; `orig` is the driver's own exception.
        orig = getattr(one, "orig", None)
        one = orig if isinstance(orig, BaseException) else one.__cause__


def _one_line(fault: BaseException, reason: str) -> str:
    """Without control characters, which a terminal would obey."""
    line = " ".join(reason[: 4 * _MAX_REASON_CHARS].split())
    message = "".join(character for character in line if character.isprintable())[:_MAX_REASON_CHARS]
    return f"{type(fault).__name__}: {message}" if message else type(fault).__name__


def _safe_message(fault: BaseException) -> str:
    package = type(fault).__module__.partition(".")[0]
    if isinstance(fault, sqlite3.Error):
        return re.sub(r'".*"', '"…"', str(fault), flags=re.DOTALL)  # full-text search quotes words of the query
    if isinstance(fault, OSError) and package in ("builtins", "socket", "ssl"):
        return str(fault)  # other OSErrors are of HTTP clients, whose messages may contain URLs
    if package == "torch" or (type(fault) is RuntimeError and _is_raised_by_torch(fault)):
        return str(fault)
    return ""


def _is_raised_by_torch(fault: BaseException) -> bool:
    """Torch's native code has no Python frame: the last frame is its caller in torch, transformers or this server."""
    names = {}
    for frame, _ in traceback.walk_tb(fault.__traceback__):
        names = frame.f_globals
    package = str(names.get("__name__")).partition(".")[0]
    return package == "torch" or (package in ("transformers", _OWN_PACKAGE) and "torch" in names)
