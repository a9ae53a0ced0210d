"""`pip install .`, and the command from another folder."""

import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.serving import REPOSITORY, bare_environment, free_port, wait_until_live
from tests.test_status import until
from tis import __version__
from tis.engine.kernels.build import has_compiler, why_not_here
from tis.pages.web_files import read_web_files

pytestmark = [pytest.mark.slow, pytest.mark.long]

DEMO = REPOSITORY / "models" / "demo"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the package in it. Its dependencies are those that these tests run with."""
    folder = tmp_path_factory.mktemp("installed")
    source, environment = folder / "source", folder / "environment"
    for name in ("tis", "configs", "web"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (file for file in REPOSITORY.iterdir() if file.is_file() and file.suffix != ".db"):
        shutil.copy(path, source)
    venv.create(environment, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(environment), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", str(source)], check=True, timeout=480)
    shutil.rmtree(source)
    return environment / "bin"


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=bare_environment(), check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def test_the_command_is_there_and_names_its_version(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "tis", "--version", folder=tmp_path) == f"tis {__version__}\n"


def pins_in(name: str) -> list[str]:
    lines = (REPOSITORY / name).read_text().splitlines()
    return [line.replace(" ", "") for line in lines if line[:1] not in "#"]


def test_dependencies_are_those_of_the_requirements_files(installed: Path, tmp_path: Path) -> None:
    asked = "import importlib.metadata as m; print('\\n'.join(m.requires('transformers-inference-server')))"
    listed = run(installed / "python", "-c", asked, folder=tmp_path).splitlines()
    traces = [f'{pin};extra=="traces"' for pin in pins_in("requirements-traces.txt")]
    shared = [f'{pin};extra=="redis"' for pin in pins_in("requirements-redis.txt")]
    assert [one.replace(" ", "") for one in listed] == [*pins_in("requirements.txt"), *traces, *shared]


@pytest.mark.skipif(bool(why_not_here()) or not has_compiler(), reason="native kernels are not compiled here")
def test_native_kernels_come_along(installed: Path) -> None:
    [library] = installed.parent.rglob("kernels/_native*")
    assert library.stat().st_size > 50_000


def test_migrations_and_samples_come_along(installed: Path, tmp_path: Path) -> None:
    assert "21 products" in run(installed / "tis", "seed", folder=tmp_path)
    assert (tmp_path / "marketplace.db").exists()


def test_the_pages_come_along(installed: Path, tmp_path: Path) -> None:
    asked = "from tis.pages.web_files import read_web_files as r; f = r(); print(len(f.page('chat.html')), f.digest)"
    length, digest = run(installed / "python", "-c", asked, folder=tmp_path).split()
    assert int(length) > 1000 and digest == read_web_files().digest


@pytest.mark.model
def test_it_serves_a_folder_of_weights_from_anywhere(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [installed / "tis", "serve", str(DEMO), "--port", str(port)],
            cwd=tmp_path,
            env=bare_environment(),
            stderr=log,
        )
    try:
        wait_until_live(url := f"http://127.0.0.1:{port}")
        until(lambda: '"modelReady":true' in run("curl", "-s", f"{url}/health", folder=tmp_path))
        question = '{"messages":[{"role":"user","content":"Hello"}],"max_tokens":8,"temperature":0}'
        json_type = "Content-Type: application/json"
        answer = run("curl", "-s", f"{url}/v1/chat/completions", "-H", json_type, "-d", question, folder=tmp_path)
        assert '"role":"assistant"' in answer
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in (tmp_path / "log").read_text()
