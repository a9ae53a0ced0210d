"""Runs `main.py` and writes each callback of its event loop that needs 10 ms of CPU into the file named first.

Of a longer one it writes what ran last when another thread looked.

`main.py` would take uvloop, whose callbacks cannot be measured.
"""

import asyncio.events
import gc
import json
import runpy
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

LEAST_SECONDS = 0.01


def measuring(folder: Path) -> list[str]:
    """The program for a server whose pauses come into the file `pauses` of the folder."""
    return ["tests/faults/hostile/measured_server.py", str(folder / "pauses")]


def main(path: str) -> None:
    handles: Any = asyncio.events.Handle
    run, loop_thread, spent_on_gc = handles._run, threading.main_thread(), 0.0
    collecting_since, running_since, seen = 0.0, 0.0, ""

    def on_collection(phase: str, info: object) -> None:
        nonlocal spent_on_gc, collecting_since
        if threading.current_thread() is loop_thread:
            now = time.thread_time()
            if phase == "start":
                collecting_since = now
            else:
                spent_on_gc += now - collecting_since

    def look() -> None:
        nonlocal seen
        while True:
            time.sleep(LEAST_SECONDS)
            if running_since and time.monotonic() - running_since > 2 * LEAST_SECONDS:
                frame = sys._current_frames()[loop_thread.ident or 0]
                seen = " < ".join(f"{one.name}:{one.lineno}" for one in reversed(traceback.extract_stack(frame)[-9:]))

    gc.callbacks.append(on_collection)
    file = open(path, "a", buffering=1)

    def measured_run(handle: asyncio.Handle) -> None:
        nonlocal spent_on_gc, running_since, seen
        if threading.current_thread() is not loop_thread:
            run(handle)
            return
        spent_on_gc, began, seen, running_since = 0.0, time.thread_time(), "", time.monotonic()
        run(handle)
        spent, running_since = time.thread_time() - began, 0.0
        if spent >= LEAST_SECONDS:
            line = {"seconds": spent, "gc": spent_on_gc, "what": repr(handle)[:300], "seen": seen}
            file.write(json.dumps(line) + "\n")

    threading.Thread(target=look, daemon=True).start()
    handles._run = measured_run
    sys.modules["uvloop"] = None  # type: ignore[assignment]
    sys.argv = ["main.py"]
    sys.path[0] = "."
    runpy.run_path("main.py", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
