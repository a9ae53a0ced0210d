"""A started sandbox process: it answers within the limits of time and size, or it is killed."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress

import psutil  # type: ignore[import-untyped]  # comes with accelerate
import pytest

from tests.sandbox.programs import sandbox_command
from tests.test_status import until
from tis.sandbox.process import NoAnswer, SandboxProcess
from tis.sandbox.program import SandboxProgram

ECHOING = "while True:\n    server.send_bytes(work)\n    work = server.recv_bytes()"
LONG_SECONDS = 30.0
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork, signals or limits")


def num_lines() -> int:
    """Pipes and sockets of this process. Servers of other tests may open files of their databases meanwhile."""
    if sys.platform == "win32":
        return int(psutil.Process().num_handles())
    modes = []
    for descriptor in os.listdir("/dev/fd"):
        with suppress(OSError):  # that of the listing itself
            modes.append(os.fstat(int(descriptor)).st_mode)
    return sum(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    process = psutil.Process()
    before, lines_before = set(process.children()), num_lines()
    yield
    assert set(process.children()) <= before and num_lines() <= lines_before


def answer_of(command: Sequence[str], message: bytes = b"work", seconds: float = LONG_SECONDS) -> bytes:
    process = SandboxProcess(SandboxProgram("work", command))
    process.start()
    try:
        return process.ask(seconds, message)
    finally:
        process.close()


def test_it_answers_several_messages() -> None:
    process = SandboxProcess(SandboxProgram("work", sandbox_command(ECHOING)))
    process.start()
    large = bytes(2**20)
    assert [process.ask(LONG_SECONDS, message) for message in (b"", b"a", large)] == [b"", b"a", large]
    assert process.is_running
    process.close()
    assert not process.is_running


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(600)",
        pytest.param("os.write(server.fileno(), bytes([0, 0, 0, 9, 1]))\ntime.sleep(600)", id="half", marks=posix),
        pytest.param("import signal\nos.kill(os.getpid(), signal.SIGALRM)", id="noticed by itself", marks=posix),
        pytest.param(
            "if os.fork():\n    os._exit(0)\nos.setsid()\nos.close(2)\nserver.recv_bytes()",
            id="its child holds the connection",
            marks=posix,
        ),
    ],
)
def test_the_deadline_ends_every_kind_of_silence(body: str) -> None:
    with pytest.raises(NoAnswer) as failure:
        answer_of(sandbox_command(body), seconds=0.3)
    assert failure.value.reason == "time"


LEAVES_A_CHILD = """
child = os.fork()
if child == 0:
    server.close()
    os.close(2)
    time.sleep(600)
server.send_bytes(str(child).encode())
server.recv_bytes()
os._exit(1)
"""


@posix
def test_children_of_a_process_that_died_are_killed() -> None:
    process = SandboxProcess(SandboxProgram("work", sandbox_command(LEAVES_A_CHILD)))
    process.start()
    child = psutil.Process(int(process.ask(LONG_SECONDS, b"who?")))
    with pytest.raises(NoAnswer):
        process.ask(LONG_SECONDS, b"die")
    process.close()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_the_deadline_ends_a_process_that_does_not_read() -> None:
    process = SandboxProcess(SandboxProgram("work", sandbox_command("time.sleep(600)")))
    process.start()
    with pytest.raises(NoAnswer):
        process.ask(0.3, b"work")
    assert not process.is_running
    with pytest.raises(NoAnswer):
        answer_of(sandbox_command("time.sleep(600)"), bytes(2**24), seconds=0.3)
    process.close()


@pytest.mark.parametrize(
    "body",
    ["server.send_bytes(bytes(2**20 + 1))", pytest.param("os.write(server.fileno(), b'\\xff' * 12)", marks=posix)],
)
def test_a_too_large_or_malformed_answer_is_an_error(body: str) -> None:
    with pytest.raises(NoAnswer) as failure:
        answer_of(sandbox_command(body + "\ntime.sleep(600)"))
    assert failure.value.reason == "died"


def test_its_last_output_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    body = "sys.stderr.write('x' * 100_000 + '\\n\\x1b[31mthe last\\r\\nwords\\n'); sys.stderr.flush(); os._exit(3)"
    with pytest.raises(NoAnswer) as failure:
        answer_of(sandbox_command(body))
    [record] = caplog.records
    said = record.getMessage()
    assert failure.value.reason == "died" and "ended with code 3" in said
    assert said.endswith("x | ?[31mthe last | words") and len(said) < 2200


def test_a_process_killed_before_its_start_does_not_start() -> None:
    process = SandboxProcess(SandboxProgram("work", sandbox_command(ECHOING)))
    process.kill()
    with pytest.raises(NoAnswer) as failure:
        process.start()
    assert failure.value.reason == "killed" and not process.is_running


@posix
def test_it_works_above_1024_descriptors() -> None:
    import resource

    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (before, hard))
        for _ in range(1100):
            stack.callback(os.close, os.dup(0))
        assert answer_of(sandbox_command(ECHOING), b"much is open") == b"much is open"


def test_it_does_not_inherit_secrets_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEYS", "sesame")
    seen = answer_of(sandbox_command("server.send_bytes(repr(dict(os.environ)).encode())"))
    assert b"PYTHONPATH" in seen and b"sesame" not in seen


@posix
def test_it_is_in_its_own_process_group_so_ctrl_c_does_not_reach_it() -> None:
    assert answer_of(sandbox_command("server.send_bytes(str(os.getpgid(0) == os.getpid()).encode())")) == b"True"
