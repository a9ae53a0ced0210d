"""Limits the time that a chat template may take: some need the square of the number of messages."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

RENDER_SECONDS = 2.0  # of CPU; usual conversations need milliseconds
_LOOKUPS_PER_CHECK = 256


class RenderTooSlow(Exception):
    """A template needs more time for these messages than it may take."""


class _OfThread(threading.local):
    num_lookups = 0
    ends_at: float | None = None


# Not of one tokenizer: Transformers compiles a template once for all that have it.
_of_thread = _OfThread()


@contextmanager
def limited_rendering(seconds: float = RENDER_SECONDS) -> Iterator[None]:
    """Raises RenderTooSlow in a template whose environment is watched."""
    _of_thread.num_lookups, _of_thread.ends_at = 0, time.thread_time() + seconds
    try:
        yield
    finally:
        _of_thread.ends_at = None


def watch_lookups(environment: Any) -> None:
    """Checks the time at some of the fields that templates of this environment of Jinja look up."""
    if getattr(environment.getattr, "is_watched", False):
        return
    environment.getattr = _watched(environment.getattr)
    environment.getitem = _watched(environment.getitem)


def _watched(look_up: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def watched(holder: Any, key: Any) -> Any:
        _check()
        return look_up(holder, key)

    watched.is_watched = True  # type: ignore[attr-defined]
    return watched


def _check() -> None:
    if _of_thread.ends_at is None:
        return
    _of_thread.num_lookups += 1
    if _of_thread.num_lookups % _LOOKUPS_PER_CHECK == 0 and time.thread_time() > _of_thread.ends_at:
        raise RenderTooSlow
