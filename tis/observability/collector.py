"""Keeps full runs of Python's garbage collector short: each would walk all objects of torch, and stop every thread."""

import gc

_is_own_process = False


def use_own_process() -> None:
    """Called by a process that serves and does nothing else: the collector belongs to the whole process."""
    global _is_own_process
    _is_own_process = True


def exempt_living_objects() -> None:
    """Takes all objects that live now out of later collections, after one that frees what can be freed.

    Called when something large was imported or loaded, which then lives as long as the process. Not on the event loop.
    """
    if _is_own_process:
        gc.collect()
        gc.freeze()
