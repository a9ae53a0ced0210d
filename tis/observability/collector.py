"""Keeps Python's garbage collector from stopping the server: a full run walks every object while all threads wait.

Beside requests of 100,000 values full runs would come several times a second, and walk all objects of torch.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_is_own_process = False
_NEVER = 1_000_000  # of the smaller runs that precede a full one


def use_own_process() -> None:
    """Called by a process that serves and does nothing else: the collector belongs to the whole process."""
    global _is_own_process
    _is_own_process = True
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)


@contextmanager
def without_collections() -> Iterator[None]:
    """For the imports of the start, which leave 80,000 objects and no garbage: collecting is a tenth of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def exempt_imported_objects() -> None:
    """Called after a large import, whose objects live as long as the process. Unlike a full run it stops nobody.

    Garbage that is older than the last small runs stays for ever. So this is for what happens once.
    """
    if _is_own_process:
        gc.collect(1)
        gc.freeze()


def exempt_living_objects() -> None:
    """Takes all objects that live now out of later collections, after one that frees what can be freed.

    Called when something large was imported or loaded, which then lives as long as the process. Not on the event loop.
    """
    if _is_own_process:
        gc.collect()
        gc.freeze()


def collect_exempt_objects() -> None:
    """Frees what was exempt and is garbage now, as a model that was unloaded. Stops all threads for a moment."""
    if _is_own_process:
        gc.unfreeze()
    gc.collect()
    if _is_own_process:
        gc.freeze()


def collect_garbage() -> None:
    """A full run, which `LoopWatch` orders every few seconds, in a thread."""
    if _is_own_process:
        gc.collect()
