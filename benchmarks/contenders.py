"""The servers that `compare.py` measures: how each is started, with the CPU settings that its documentation advises."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chat import ChatServer, RequestFailed, run_on_fast_loop
from gguf_file import write_gguf

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = ("ours", "vllm", "llama.cpp", "transformers", "transformers-continuous")
_MODEL = "compared"
_START_SECONDS = 900
_CONTINUOUS = (
    "--continuous-batching --attn-implementation sdpa --cb-num-blocks 128 --cb-block-size 64 --cb-max-batch-tokens 512"
)
_CORES = sorted(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    command: Sequence[str]
    port: int
    variables: Mapping[str, str] = field(default_factory=dict)
    model: str = _MODEL
    version_command: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Programs:
    """Executables; None where a system is not installed."""

    vllm: Path | None
    llama_server: Path | None
    transformers: Path | None

    @classmethod
    def find(cls, vllm: Path | None = None, llama_server: Path | None = None) -> "Programs":
        return cls(
            vllm=vllm or _on_path("vllm"),
            llama_server=llama_server or _on_path("llama-server"),
            transformers=_on_path(str(Path(sys.executable).parent / "transformers")),
        )

    def installed(self) -> list[str]:
        found = {"ours": True, "vllm": self.vllm, "llama.cpp": self.llama_server}
        return [system for system in SYSTEMS if found.get(system, self.transformers)]


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def this_server(folder: Path) -> Contender:
    port = free_port()
    variables = {
        "MODEL_REPO_ID": str(folder),
        "PORT": str(port),
        "EAGER_LOAD_MODEL": "1",
        "LOAD_WAIT_SECONDS": str(_START_SECONDS),
        "LOG_LEVEL": "warning",
    }
    version = ["git", "describe", "--always", "--dirty"]
    return Contender("this server", [sys.executable, "main.py"], port, variables, version_command=version)


def contender(system: str, folder: Path, programs: Programs, clients: int, context: int) -> Contender:
    """A system that is installed, made for so many clients and so many tokens of prompt and answer each."""
    if system == "vllm" and programs.vllm:
        return _vllm(folder, programs.vllm, clients, context)
    if system == "llama.cpp" and programs.llama_server:
        return _llama_cpp(write_gguf(folder), programs.llama_server, clients, context)
    if system.startswith("transformers") and programs.transformers:
        return _transformers(folder, programs.transformers, is_continuous=system.endswith("-continuous"))
    if system == "ours":
        return this_server(folder)
    raise SystemExit(f"{system} is not installed; --vllm and --llama-server say where a program is")


def _vllm(folder: Path, program: Path, clients: int, context: int) -> Contender:
    port = free_port()
    command = f"serve {folder} --host 127.0.0.1 --port {port} --served-model-name {_MODEL} --dtype bfloat16".split()
    limits = ["--max-model-len", str(context), "--max-num-seqs", str(clients)]
    libraries = [*program.parent.parent.glob("lib/libtcmalloc*.so*"), *program.parent.parent.glob("lib/libiomp5.so")]
    variables = {
        "VLLM_CPU_KVCACHE_SPACE": "4",
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, _CORES)),  # "auto" leaves one core to the rest
        "VLLM_NO_USAGE_STATS": "1",
    }
    if libraries:
        variables["LD_PRELOAD"] = ":".join(map(str, libraries))
    version = _version_of("vllm", program.with_name("python"))
    return Contender("vLLM", [str(program), *command, *limits], port, variables, version_command=version)


def _llama_cpp(model: Path, program: Path, clients: int, context: int) -> Contender:
    port, threads = free_port(), str(len(_CORES))
    command = f"--model {model} --host 127.0.0.1 --port {port} --alias {_MODEL} --chat-template chatml".split()
    parallel = f"--parallel {clients} --ctx-size {clients * context} --cache-ram 0".split()
    return Contender(
        "llama.cpp",
        [str(program), *command, *parallel, "--threads", threads, "--threads-batch", threads],
        port,
        version_command=[str(program), "--version"],
    )


def _transformers(folder: Path, program: Path, is_continuous: bool) -> Contender:
    port = free_port()
    return Contender(
        "transformers serve, continuous" if is_continuous else "transformers serve",
        [str(program), "serve", str(folder), "--port", str(port), *(_CONTINUOUS.split() if is_continuous else ())],
        port,
        {"OMP_NUM_THREADS": str(len(_CORES))},
        model=str(folder),
        version_command=_version_of("transformers", Path(sys.executable)),
    )


def _version_of(package: str, python: Path) -> list[str]:
    return [str(python), "-c", f"from importlib.metadata import version; print(version({package!r}))"]


def version(of: Contender) -> str:
    """The first line that its program says of its version; empty where it says none."""
    try:
        done = subprocess.run(of.version_command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter((done.stdout.strip() or done.stderr.strip()).splitlines()), "").removeprefix("version: ")


class RunningServer:
    """A server in a process group of its own, which can be held still while another is measured."""

    def __init__(self, contender: Contender, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.contender = contender
        self.url = f"http://127.0.0.1:{contender.port}/v1"
        self.greeting = ""  # what it answered first: alike for all, if all read the model alike
        self._process, self._log = process, log

    def pause(self) -> None:
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def wait_for_an_answer(self) -> None:
        end = time.monotonic() + _START_SECONDS
        body = json.dumps({"model": self.contender.model, **_GREETING}).encode()
        while True:
            if self._process.poll() is not None:
                raise SystemExit(f"{self.contender.name} ended with {self._process.returncode}; see {self._log}")
            try:
                self.greeting = run_on_fast_loop(_answer(self.url, body))
                return
            except (RequestFailed, OSError, EOFError, ValueError) as error:
                if time.monotonic() > end:
                    raise SystemExit(f"{self.contender.name} did not answer ({error}); see {self._log}") from error
                time.sleep(0.5)

    def end(self) -> None:
        if self._process.poll() is None:
            self.resume()
            self._process.terminate()
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


_GREETING = {"messages": [{"role": "user", "content": "time year people"}], "max_tokens": 8, "temperature": 0}


async def _answer(url: str, body: bytes) -> str:
    async with ChatServer(url).request("POST", "/chat/completions", body) as parts:
        answer = json.loads(b"".join([part async for part in parts]))
    return str(answer["choices"][0]["message"]["content"])


@contextmanager
def started(contender: Contender, log: Path) -> Iterator[RunningServer]:
    """Yields the server when it has answered once."""
    variables = {**os.environ, "HF_HUB_OFFLINE": "1", **contender.variables}
    with log.open("wb") as output:
        process = subprocess.Popen(
            contender.command, cwd=ROOT, env=variables, stdout=output, stderr=output, start_new_session=True
        )
    server = RunningServer(contender, process, log)
    try:
        server.wait_for_an_answer()
        yield server
    finally:
        server.end()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
