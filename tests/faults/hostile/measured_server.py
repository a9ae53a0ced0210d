"""Runs `main.py` and writes each callback of its event loop that needs 10 ms of CPU into the file named first.

`main.py` would take uvloop, whose callbacks cannot be measured.
"""

import asyncio.events
import gc
import json
import runpy
import sys
import threading
import time
from pathlib import Path
from typing import Any

LEAST_SECONDS = 0.01


def measuring(folder: Path) -> list[str]:
    """The program for a server whose pauses come into the file `pauses` of the folder."""
    return ["tests/faults/hostile/measured_server.py", str(folder / "pauses")]


def main(path: str) -> None:
    handles: Any = asyncio.events.Handle
    run, loop_thread, spent_on_gc = handles._run, threading.main_thread(), 0.0
    collecting_since = 0.0

    def on_collection(phase: str, info: object) -> None:
        nonlocal spent_on_gc, collecting_since
        if threading.current_thread() is loop_thread:
            now = time.thread_time()
            if phase == "start":
                collecting_since = now
            else:
                spent_on_gc += now - collecting_since

    gc.callbacks.append(on_collection)
    file = open(path, "a", buffering=1)

    def measured_run(handle: asyncio.Handle) -> None:
        nonlocal spent_on_gc
        if threading.current_thread() is not loop_thread:
            run(handle)
            return
        spent_on_gc, began = 0.0, time.thread_time()
        run(handle)
        spent = time.thread_time() - began
        if spent >= LEAST_SECONDS:
            line = {"seconds": spent, "gc": spent_on_gc, "what": repr(handle)[:300]}
            file.write(json.dumps(line) + "\n")

    handles._run = measured_run
    sys.modules["uvloop"] = None  # type: ignore[assignment]
    sys.argv = ["main.py"]
    sys.path[0] = "."
    runpy.run_path("main.py", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
