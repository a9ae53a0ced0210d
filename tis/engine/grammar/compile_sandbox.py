"""Compiles grammars in a child process first, which can be killed: a schema of a kilobyte can take minutes.

One thread at a time. The process is reused for the next grammar, and replaced after it was killed.
"""

import weakref
from collections.abc import Sequence

from tis.engine.grammar.limits import COMPILE_SECONDS
from tis.errors import Unavailable
from tis.sandbox.process import NoAnswer, SandboxProcess
from tis.sandbox.program import SandboxProgram, module_command

COMMAND = module_command(f"{__package__}.compile_process")


class TooExpensive(Exception):
    """Compiling took too much time or memory."""


class CompileSandbox:
    def __init__(self, seconds: float = COMPILE_SECONDS, command: Sequence[str] = COMMAND) -> None:
        self._seconds = seconds
        self._program = SandboxProgram("compile grammars", command, {"RAYON_NUM_THREADS": "1"})
        self._process: SandboxProcess | None = None
        self._finalizer = weakref.finalize(self, _close, None)

    def compile(self, text: str, seconds: float | None = None) -> str:
        """Returns the compiler's error, or "". A ServiceError that is no BadRequest is not the fault of the grammar."""
        process = self._ensure_process()
        try:
            answer = process.ask(self._seconds if seconds is None else seconds, text.encode("utf-8", "surrogatepass"))
        except NoAnswer:
            self.close()
            raise TooExpensive from None
        except OSError:  # the process or its thread could not be started
            raise Unavailable("Grammars cannot be compiled right now. Retry later.", retry_after=5) from None
        return answer.decode("utf-8", "replace")

    def close(self) -> None:
        self._process = None
        self._finalizer()

    def _ensure_process(self) -> SandboxProcess:
        if self._process and self._process.is_running:
            return self._process
        self.close()
        process = SandboxProcess(self._program)
        process.start()
        self._process = process
        self._finalizer = weakref.finalize(self, _close, process)
        return process


def _close(process: SandboxProcess | None) -> None:
    if process:
        process.close()
