"""The small parent of `tis serve`: starts the server again after a fault that no process can mend in itself.

The server ends with code 70 when its device is lost or a step hangs; a native crash ends it with a signal. Its sessions
are resumed from the store. The parent imports nothing of the server, and so needs little memory.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

NO_RESTART = "--no-restart"
_RESTARTED_CODE = 70  # tis.engine.faults.EXIT_CODE, which is not imported here
# Not SIGKILL and SIGTERM, with which somebody ends the server. A server that kills itself for a show says so before.
_CRASHES = [
    getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE") if hasattr(signal, name)
]
_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 60.0
_HAS_PARENT = "TIS_HAS_PARENT"
_STOP = b"T"
_KILL_IS_A_SHOW = getattr(signal, "SIGUSR1", None)
CAN_SHOW_A_KILL = _KILL_IS_A_SHOW is not None
# systemd signals parent and server at the same time: the server should not count that twice.
_OWN_SIGNAL_SECONDS = 0.2


class Parent:
    def __init__(self, command: Sequence[str], first_pause_seconds: float = _FIRST_PAUSE_SECONDS) -> None:
        self._command = command
        self._first_pause_seconds = first_pause_seconds
        self._server: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._num_signals = 0
        self._kill_is_a_show = False

    def run(self) -> int:
        """Returns the exit code of the server that was not started again."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        if _KILL_IS_A_SHOW is not None:
            signal.signal(_KILL_IS_A_SHOW, self._on_show)
        pause = self._first_pause_seconds
        while True:
            began = time.monotonic()
            code = self._run_once()
            is_show, self._kill_is_a_show = self._kill_is_a_show, False
            if self._stopping.is_set() or not (is_show or _is_fault(code)):
                return 128 - code if code < 0 else code
            if is_show:
                print("The server was killed from its chat page. It is started again.", file=sys.stderr, flush=True)  # noqa: T201
                continue
            if time.monotonic() - began > _MAX_PAUSE_SECONDS:
                pause = self._first_pause_seconds
            how = f"with code {code}" if code > 0 else f"by signal {-code}"
            print(f"The server ended {how}. It is started again in {pause:g} s.", file=sys.stderr, flush=True)  # noqa: T201
            if self._stopping.wait(pause):
                return 0
            pause = min(_MAX_PAUSE_SECONDS, pause * 2)

    def _run_once(self) -> int:
        # In a group of its own it gets Ctrl-C once, from the parent. The pipe tells it when the parent stops or dies.
        group = 0 if os.name == "posix" else None
        environment = {**os.environ, _HAS_PARENT: "1"}
        self._server = server = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, env=environment, bufsize=0, process_group=group
        )
        assert server.stdin
        if self._stopping.is_set():  # the signal came while no server ran
            server.terminate()
        with server.stdin:
            return server.wait()

    def _on_show(self, number: int, frame: object) -> None:
        self._kill_is_a_show = True

    def _on_signal(self, number: int, frame: object) -> None:
        self._stopping.set()
        self._num_signals += 1
        server = self._server
        if server is None or server.poll() is not None or os.name != "posix":
            return
        if number == signal.SIGTERM and self._num_signals == 1 and server.stdin:
            with suppress(BrokenPipeError):
                os.write(server.stdin.fileno(), _STOP)
        else:
            server.send_signal(number)


def _is_fault(code: int) -> bool:
    return code == _RESTARTED_CODE or -code in _CRASHES


def run_with_restarts(arguments: Sequence[str]) -> int:
    script = sys.argv[0]
    # `-m` looks into the current folder first, which the installed command does not.
    is_script = os.name == "posix" and os.path.isfile(script) and not script.endswith("__main__.py")
    return Parent([sys.executable, *([script] if is_script else ["-m", "tis"]), *arguments, NO_RESTART]).run()


def obey_parent() -> bool:
    """In the server: stops as with SIGTERM when the parent says so, and at once when the parent is dead.

    False if there is no parent.
    """
    has_parent = os.environ.pop(_HAS_PARENT, None) is not None
    if has_parent:
        threading.Thread(target=_wait_for_parent, name="parent", daemon=True).start()
    return has_parent


def kill_for_a_show() -> None:
    """In the server: really kills it, in the middle of whatever it does. The parent starts it again."""
    if _KILL_IS_A_SHOW is not None:
        os.kill(os.getppid(), _KILL_IS_A_SHOW)
        os.kill(os.getpid(), signal.SIGKILL)


def _wait_for_parent() -> None:
    if os.read(0, 1) != _STOP:
        os._exit(1)
    from tis.shutdown import has_begun

    if not has_begun.wait(_OWN_SIGNAL_SECONDS):
        os.kill(os.getpid(), signal.SIGTERM)
