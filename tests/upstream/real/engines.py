"""Other people's engines as processes: how each is started, and how a test sees that it works on something."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.serving import REPOSITORY, bare_environment, free_port

ENVIRONMENTS = REPOSITORY / ".venv-upstreams"
_START_SECONDS = 280
MODEL = "tiny"


@dataclass(frozen=True)
class EngineProgram:
    name: str
    kind: str  # `upstream_kind`
    program: str  # in its environment
    arguments: Callable[[Path, int], Sequence[str]]  # of the folder of the model, and a port
    running: str = ""  # the metric that counts what is being answered
    metrics: str = "/metrics"
    script: Path | None = None  # of ours, which starts it
    num_idle_layers: int = 0  # of the model, so that there is time to leave or to kill
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""  # its name or its path, if the program does not have one of its own

    @property
    def path(self) -> Path:
        return ENVIRONMENTS / (self.environment or self.name) / "bin" / self.program

    @property
    def command(self) -> list[str]:
        return [str(self.path.with_name("python")), str(self.script)] if self.script else [str(self.path)]

    def require(self) -> None:
        if self.path.exists():
            return
        if os.environ.get("UPSTREAMS") == "required":
            pytest.fail(f"{self.path} is not there")
        pytest.skip(f"{self.name} is not set up: make setup-upstreams")


def _llama_cpp(folder: Path, port: int) -> list[str]:
    where = ["--model", str(folder / "model.gguf"), "--alias", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    return [
        *where,
        *"--jinja --metrics --parallel 4 --ctx-size 16384 --threads 1 --threads-batch 1 --no-warmup".split(),
    ]


def _vllm(folder: Path, port: int) -> list[str]:
    where = ["serve", str(folder), "--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    parsers = "--enable-auto-tool-choice --tool-call-parser hermes --reasoning-parser qwen3"
    return [*where, *f"--dtype float32 --max-model-len 4096 --max-num-seqs 8 --enforce-eager {parsers}".split()]


def _sglang(folder: Path, port: int) -> list[str]:
    where = ["--model-path", str(folder), "--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    sizes = "--dtype float32 --context-length 4096 --max-running-requests 8 --max-total-tokens 16384"
    on_cpu = "--device cpu --attention-backend torch_native --disable-cuda-graph --skip-server-warmup"
    parsers = "--tool-call-parser qwen25 --reasoning-parser qwen3"
    return [*where, *f"{sizes} {on_cpu} {parsers}".split()]


LLAMA_CPP = EngineProgram(
    "llama.cpp", "llama.cpp", "llama-server", _llama_cpp, "llamacpp:requests_processing", num_idle_layers=50
)
VLLM = EngineProgram(
    "vllm",
    "vllm",
    "vllm",
    _vllm,
    "vllm:num_requests_running",
    num_idle_layers=24,
    variables={"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"},
)
SGLANG = EngineProgram(
    "sglang",
    "sglang",
    "sglang",
    _sglang,
    "sglang_num_running_reqs",
    "/v1/loads?format=prometheus",
    Path(__file__).with_name("sglang_on_cpu.py"),
    num_idle_layers=12,
    variables={
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0",
        "TORCHDYNAMO_DISABLE": "1",
    },
)
PROGRAMS = (LLAMA_CPP, VLLM, SGLANG)


class EngineProcess:
    """A process group of its own: an engine may be several processes."""

    def __init__(
        self,
        of: EngineProgram,
        folder: Path,
        *,
        log: Path | None = None,
        more: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.of = of
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [*of.command, *of.arguments(folder, self.port), *more]
        self._log = log or folder / f"{of.name}-{self.port}.log"
        self._variables = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **of.variables, **(variables or {})}
        self._popen: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        inherited = {name: value for name, value in bare_environment().items() if not name.startswith("PYTEST_")}
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(
                self._command,
                env={**inherited, **self._variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while not self._answers("/health"):
            if self._popen and self._popen.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{self.of.name} does not come up:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        assert self._popen
        if self._popen.poll() is None:
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()

    @property
    def num_running(self) -> float:
        with urllib.request.urlopen(f"{self.url}{self.of.metrics}", timeout=30) as page:
            lines = page.read().decode().splitlines()
        of_it = re.compile(re.escape(self.of.running) + r"(\{[^}]*\})? ")
        return sum(float(line.split()[-1]) for line in lines if of_it.match(line))

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """Directly, as a client of it would."""
        data = json.dumps({"model": MODEL, **body}).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    @property
    def lists_models(self) -> bool:
        return self._answers("/v1/models")

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
