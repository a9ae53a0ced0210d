"""The compiling process fails for reasons that are not the grammar's fault."""

import subprocess
import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # comes with accelerate
import pytest

from tests.sandbox.programs import CONNECT, command_without, sandbox_command
from tis.engine.grammar.compile_sandbox import CompileSandbox, TooExpensive
from tis.sandbox.errors import SandboxUnavailable

FAILS_ONCE = """
import runpy
if os.path.exists({mark!r}):
    sys.argv.insert(1, str(server.fileno()))
    runpy.run_module("tis.engine.grammar.compile_process", run_name="__main__")
open({mark!r}, "w").close()
{fault}
"""

# With the least stack that a thread of the server has: 2 MB, where the limit of the main thread is unlimited.
COMPILES_IN_A_THREAD = """
import sys, threading
from llguidance import LLMatcher, LLTokenizer
from tis.engine.grammar.limits import parser_limits
text, found = sys.stdin.read(), []
def compile():
    matcher = LLMatcher(LLTokenizer("byte"), text, log_level=0, limits=parser_limits())
    matcher.compute_bitmask()
    found.append(matcher.is_error())
threading.stack_size(2 << 20)
thread = threading.Thread(target=compile)
thread.start()
thread.join()
sys.exit(found != [False])
"""


@pytest.mark.parametrize("fault", ["import no_such_library", "server.send_bytes(b'hello'); server.recv_bytes()"])
def test_a_process_that_does_not_start_is_not_the_grammars_fault_and_is_replaced(fault: str, tmp_path: Path) -> None:
    sandbox = CompileSandbox(
        command=sandbox_command(FAILS_ONCE.format(mark=str(tmp_path / "was-here"), fault=fault), before=CONNECT)
    )
    with pytest.raises(SandboxUnavailable, match="compile grammars"):
        sandbox.compile('start: "a"')
    assert sandbox.compile('start: "a"') == ""
    sandbox.close()


def test_a_process_that_died_while_idle_is_replaced() -> None:
    sandbox = CompileSandbox(command=sandbox_command("server.send_bytes(b'')"))
    others = set(psutil.Process().children())
    for _ in range(2):
        assert sandbox.compile('start: "a"') == ""
        _, alive = psutil.wait_procs(set(psutil.Process().children()) - others, timeout=20)
        assert not alive
    sandbox.close()


def test_without_resource_limits_the_time_is_limited() -> None:
    sandbox = CompileSandbox(seconds=0.2, command=command_without("resource", "tis.engine.grammar.compile_process"))
    assert "nowhere" in sandbox.compile("start: nowhere")
    with pytest.raises(TooExpensive):
        sandbox.compile('start: %json {"type": "integer", "multipleOf": 999983}')
    assert sandbox.compile('start: "a"') == ""
    sandbox.close()


def nested(depth: int) -> str:
    rules = "\n".join(f'r{number}: r{number + 1} "a"' for number in range(depth))
    return f'start: r0\n{rules}\nr{depth}: "b"'


def test_what_the_sandbox_accepts_a_thread_of_the_server_can_compile() -> None:
    """The compiler recurses, and what overflows its stack ends the process: that of the sandbox has to be smaller."""
    sandbox = CompileSandbox(seconds=20)
    accepted, refused = 1, 5000
    assert sandbox.compile(nested(accepted)) == ""
    with pytest.raises(TooExpensive):
        sandbox.compile(nested(refused))
    while refused - accepted > 8:
        depth = (accepted + refused) // 2
        try:
            assert sandbox.compile(nested(depth)) == ""
            accepted = depth
        except TooExpensive:
            refused = depth
    sandbox.close()
    assert accepted > 100
    # In a process of its own, because it would end this one.
    subprocess.run([sys.executable, "-c", COMPILES_IN_A_THREAD], input=nested(accepted), text=True, check=True)


@pytest.mark.usefixtures("many_descriptors")
def test_it_works_with_more_than_1024_open_files() -> None:
    sandbox = CompileSandbox()
    assert sandbox.compile('start: "a"') == ""
    assert "nowhere" in sandbox.compile("start: nowhere")
    sandbox.close()
