"""The Dockerfile without Docker: parsed, compared with the settings, its shell and its health check executed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from scripts.install_torch import CPU_INDEX
from tests.engine.models.hub import REPO, hub_with
from tests.serving import REPOSITORY, free_port, served, settings_with
from tis.engine.models.hub_files import WANTED_FILES
from tis.settings import Settings

INSTRUCTIONS = {"FROM", "ARG", "ENV", "RUN", "COPY", "WORKDIR", "USER", "VOLUME", "EXPOSE", "LABEL"} | {
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}
# What the image sets that is no setting of the server.
OTHER_VARIABLES = {"PATH", "HOME", "HF_HOME"}
needs_sh = pytest.mark.skipif(not shutil.which("sh"), reason="runs the shell of RUN")


@dataclass(frozen=True)
class Stage:
    name: str
    base: str
    lines: list[tuple[str, str]] = field(default_factory=list)  # instruction and value

    def values(self, instruction: str) -> list[str]:
        return [value for name, value in self.lines if name == instruction]

    def copies(self) -> list[tuple[str | None, list[str]]]:
        """Per COPY: the stage that it copies from, and the sources."""
        split = [shlex.split(value) for value in self.values("COPY")]
        return [
            (
                next((word.removeprefix("--from=") for word in words if word.startswith("--from=")), None),
                [word for word in words if not word.startswith("--")][:-1],
            )
            for words in split
        ]

    @property
    def environment(self) -> dict[str, str]:
        pairs = [word.partition("=") for value in self.values("ENV") for word in shlex.split(value)]
        return {name: value for name, _, value in pairs}


def parsed() -> dict[str, Stage]:
    stages: dict[str, Stage] = {}
    parser = DockerfileParser(fileobj=BytesIO((REPOSITORY / "Dockerfile").read_bytes()))
    for line in parser.structure:
        if line["instruction"] == "COMMENT":
            continue
        if line["instruction"] == "FROM":
            base, _, name = line["value"].partition(" AS ")
            stages[name] = stage = Stage(name, base)
        else:
            stage.lines.append((line["instruction"], line["value"]))
    return stages


STAGES = parsed()
IMAGE = STAGES["server"]
USED_STAGES = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


def test_the_image_is_the_last_stage() -> None:
    assert list(STAGES)[-1] == IMAGE.name


@USED_STAGES
def test_instructions_are_known_and_stages_stand_on_earlier_ones(stage: Stage) -> None:
    assert {name for name, _ in stage.lines} <= INSTRUCTIONS
    earlier = list(STAGES)[: list(STAGES).index(stage.name)]
    assert stage.base in earlier or re.fullmatch(r"python:3\.\d+-slim-\w+", stage.base)
    assert {source for source, _ in stage.copies() if source} <= set(earlier)


@USED_STAGES
def test_every_argument_is_used_where_it_is_declared(stage: Stage) -> None:
    for argument in stage.values("ARG"):
        name = argument.partition("=")[0]
        users = [value for instruction, value in stage.lines if instruction in ("RUN", "ENV", "LABEL")]
        assert any(re.search(rf"\$\{{?{name}\b", value) for value in users), name


@USED_STAGES
def test_what_is_copied_exists_and_is_not_ignored(stage: Stage) -> None:
    for source in [path for origin, paths in stage.copies() if not origin for path in paths]:
        assert (REPOSITORY / source).exists(), source
        assert not is_ignored(source), source


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".git/config",
        "sessions.db",
        "marketplace.key",
        "models/mine/model.safetensors",
        "tis/__pycache__/app.pyc",
    ],
)
def test_nothing_private_reaches_the_build(path: str) -> None:
    assert is_ignored(path)


def is_ignored(path: str) -> bool:
    """As Docker reads .dockerignore: the last line that names the path, or a folder above it, decides."""
    ignored = False
    for line in (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = re.escape(line.removeprefix("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if re.fullmatch(f"{pattern}(/.*)?", path):
            ignored = not line.startswith("!")
    return ignored


def test_what_is_installed_is_cached_apart_from_the_code() -> None:
    copied = {source for _, sources in STAGES["dependencies"].copies() for source in sources}
    assert copied == {
        "requirements.txt",
        "requirements-traces.txt",
        "requirements-redis.txt",
        "scripts/install_torch.py",
    }


def test_the_image_runs_as_nobody_special_and_keeps_its_data_in_a_volume() -> None:
    assert IMAGE.values("USER") == ["1000:1000"]
    assert IMAGE.values("VOLUME") == ["/data"]
    after_user = [name for name, _ in IMAGE.lines][[name for name, _ in IMAGE.lines].index("USER") :]
    assert "RUN" not in after_user
    environment = IMAGE.environment
    assert environment["HOME"] == "/data" and environment["HF_HOME"].startswith("/data/")


def test_its_environment_is_known_to_the_server() -> None:
    settings_in_it = {name: value for name, value in IMAGE.environment.items() if name not in OTHER_VARIABLES}
    assert set(settings_in_it) <= set(Settings.variables().values())
    settings = Settings.from_env(settings_in_it | {"MODEL_REPO_ID": ""}, env_file=None)
    assert (settings.host, settings.persist_sessions, settings.marketplace_auth) == ("0.0.0.0", True, "required")
    assert settings.sessions_db_path == "/data/sessions.db"
    assert settings.database_url.get_secret_value() == "sqlite:////data/marketplace.db"
    assert settings.pictures_url == "file:///data/pictures"
    # Without a baked model, the image serves what the server serves by default.
    assert settings_in_it["MODEL_REPO_ID"] == "$BAKE_MODEL" and settings.model_repo_id == Settings().model_repo_id
    assert IMAGE.values("EXPOSE") == [str(settings.port)]


def test_an_init_that_reaps_starts_the_server() -> None:
    assert IMAGE.values("ENTRYPOINT") == ['["tini", "--", "tis"]'] and IMAGE.values("CMD") == ['["serve"]']


def test_no_secret_is_an_argument_or_a_variable() -> None:
    declared = [value for stage in STAGES.values() for name in ("ARG", "ENV") for value in stage.values(name)]
    assert not re.search("token|secret|password|api_key", " ".join(declared).lower())


def health_check(port: int) -> int:
    options, _, command = IMAGE.values("HEALTHCHECK")[0].partition("CMD ")
    assert "--timeout=5s" in options and f"or {Settings().port})" in command
    python, *arguments = json.loads(command)
    assert python == "python"
    environment = {**os.environ, "PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, timeout=30).returncode


def test_the_health_check_asks_the_server() -> None:
    with served(settings_with()) as server:
        assert health_check(int(server.url.rpartition(":")[2])) == 0
    assert health_check(free_port()) != 0


IN_THE_IMAGE = {"app": "/app", "bin": "/opt/venv/bin", "secrets": "/run/secrets", "venv": "/opt/venv"}


def shell_of(stage: Stage, word: str, **moved: Path) -> str:
    """The RUN with this word, with folders of the image replaced by folders of this test."""
    [command] = [value for value in stage.values("RUN") if word in value]
    command = re.sub(r"^(--mount=\S+\s+)+", "", command)
    for name, folder in moved.items():
        command = command.replace(IN_THE_IMAGE[name], str(folder))
    return command


@needs_sh
@pytest.mark.parametrize(
    ("variables", "index"),
    [
        ({"BACKEND": "cpu"}, CPU_INDEX),
        ({"BACKEND": "nvidia"}, ""),
        ({"BACKEND": "amd"}, CPU_INDEX.replace("cpu", "rocm7.2")),
        ({"BACKEND": "amd", "TORCH_INDEX": "https://wheels.example/rocm"}, "https://wheels.example/rocm"),
        ({"BACKEND": "tpu"}, None),
    ],
)
def test_the_backend_chooses_the_index_of_torch(variables: dict[str, str], index: str | None, tmp_path: Path) -> None:
    for name, line in {"python": 'echo "index=$TORCH_INDEX"', "pip": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", shell_of(STAGES["dependencies"], "BACKEND", bin=tmp_path)],
        env=variables,
        capture_output=True,
        text=True,
    )
    if index is None:
        assert done.returncode == 1 and "BACKEND is cpu, nvidia or amd" in done.stderr
    else:
        assert (done.returncode, done.stdout) == (0, f"index={index}\n")


@needs_sh
def test_of_torch_only_what_a_server_never_uses_is_removed(tmp_path: Path) -> None:
    torch = tmp_path / "lib" / "python3.11" / "site-packages" / "torch"
    kept = {"__init__.py", "lib/libtorch_cpu.so", "bin/torch_shm_manager", "testing/__init__.py"}
    for name in kept | {
        "include/torch/extension.h",
        "test/Dict_test",
        "bin/test_api",
        "bin/TCPStoreTest",
        "bin/protoc",
    }:
        (torch / name).parent.mkdir(parents=True, exist_ok=True)
        (torch / name).touch()
    subprocess.run(["sh", "-ec", shell_of(STAGES["dependencies"], "/torch", venv=tmp_path)], check=True)
    assert {str(path.relative_to(torch)) for path in torch.rglob("*") if path.is_file()} == kept


def bake(model: str, folder: Path, **variables: str) -> set[str]:
    """Runs what the stage `model` runs, and says which files it leaves."""
    (folder / "secrets").mkdir()
    (folder / "secrets" / "hf_token").write_text("hf_secret")
    command = shell_of(
        STAGES["model"], "BAKE_MODEL", app=folder / "app", bin=Path(sys.executable).parent, secrets=folder / "secrets"
    )
    environment = {**os.environ, "BAKE_MODEL": model, "HF_HOME": str(folder / "cache"), **variables}
    for elsewhere in ("HF_HUB_OFFLINE", "HF_TOKEN"):
        environment.pop(elsewhere, None)
    subprocess.run(["sh", "-c", command], cwd=REPOSITORY, env=environment, check=True, timeout=120)
    return {str(path.relative_to(folder / "app")) for path in (folder / "app").rglob("*") if path.is_file()}


@needs_sh
def test_no_model_is_baked_unless_one_is_named(tmp_path: Path) -> None:
    assert bake("", tmp_path) == set()


@needs_sh
def test_the_demo_model_is_baked_under_its_name(tmp_path: Path) -> None:
    files = [path for path in (REPOSITORY / "models" / "demo").iterdir() if path.is_file()]
    assert bake("models/demo", tmp_path) == {f"models/demo/{path.name}" for path in files}


@needs_sh
@pytest.mark.slow
def test_a_model_of_the_hub_is_baked_without_files_that_run_code(tmp_path: Path) -> None:
    demo = REPOSITORY / "models" / "demo"
    extra = {"modeling_evil.py": b"raise SystemExit", "pytorch_model.bin": b"x", "qwen.tiktoken": b"x", "t.model": b"x"}
    with hub_with(demo, extra=extra, token="hf_secret") as hub:
        baked = bake(REPO, tmp_path, HF_ENDPOINT=hub)
    assert {f"{REPO}/model.safetensors", f"{REPO}/config.json", f"{REPO}/qwen.tiktoken", f"{REPO}/t.model"} <= baked
    assert not [name for name in baked if name.endswith((".py", ".bin"))]
    assert all("hf_secret" not in (tmp_path / "app" / name).read_text(errors="ignore") for name in baked)


def test_a_baked_model_has_the_files_that_the_server_would_download() -> None:
    assert re.findall(r'--include "([^"]+)"', STAGES["model"].values("RUN")[-1]) == WANTED_FILES


def test_its_page_names_every_argument_and_variable() -> None:
    page = (REPOSITORY / "docs" / "docker.md").read_text(encoding="utf-8")
    arguments = {value.partition("=")[0] for stage in STAGES.values() for value in stage.values("ARG")}
    for name in arguments | set(IMAGE.environment) - {"PATH"}:
        assert f"`{name}`" in page, name
