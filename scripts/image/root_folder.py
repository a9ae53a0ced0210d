"""The root file system of the image: a base from debootstrap, then the steps of the Dockerfile by buildah."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from scripts.image.tools import ImageFailed, ImageSkipped, Tools, last_line, run

REPOSITORY = Path(__file__).parent.parent.parent
# As in python:3.11-slim-bookworm: Python 3.11, pip, certificates.
_BASE_PACKAGES = "python3,python3-venv,python3-pip,python-is-python3,ca-certificates"
_BUILD_SECONDS = 3600
# Debian's images have it: apt keeps no lists of packages in binary form.
_DOCKER_CLEAN = 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
# $1 is the target; then the command that prints the source.
_COPY = 'target=$1; shift; source=$("$@"); cp --archive "$source/." "$target"'


@dataclass(frozen=True)
class Image:
    root: Path
    config: dict[str, Any]  # Env, Entrypoint, Cmd, User, WorkingDir, Labels as in the OCI specification


class ImageBuild:
    def __init__(self, tools: Tools, folder: Path, say: Callable[[str], None]) -> None:
        self._tools = tools
        self._folder = folder
        self._say = say
        self._policy = folder / "policy.json"

    def build(self, build_arguments: dict[str, str]) -> Image:
        self._policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        if "localhost/base" not in self._buildah("images", "--format", "{{.Name}}"):
            self._import_base()
        self._build_image(build_arguments)
        config = json.loads(self._buildah("inspect", "--type", "image", "localhost/tis"))["OCIv1"]["config"]
        return Image(self._root_of("localhost/tis"), config)

    def _root_of(self, image: str) -> Path:
        """A copy: what buildah mounts ends with its namespace."""
        root = self._folder / "root"
        if root.exists():
            shutil.rmtree(root)
        root.mkdir()
        container = self._buildah("from", *self._trusting, "--pull-never", image).strip()
        mount = [*self._program[len(self._tools.namespace) :], "mount", container]
        run([*self._tools.namespace, "sh", "-ec", _COPY, "sh", str(root), *mount], self._tools.environment)
        self._buildah("rm", container)
        return root

    def remove(self) -> None:
        self._buildah("rm", "--all")

    @cached_property
    def _program(self) -> list[str]:
        """buildah on overlay; where the folder allows none, on vfs, which copies every stage: many minutes more."""
        for driver in ("overlay", "vfs"):
            folders = ["--root", str(self._folder / driver), "--runroot", str(self._folder / f"{driver}-run")]
            command = [*self._tools.namespace, self._tools.buildah, *folders, "--storage-driver", driver]
            done = subprocess.run([*command, "info"], env=self._tools.environment, capture_output=True, text=True)
            if done.returncode == 0:
                self._say(f"buildah stores its layers with {driver}")
                return command
        raise ImageSkipped(f"buildah can store no layers in {self._folder}: {last_line(done.stderr)}")

    @property
    def _trusting(self) -> list[str]:
        return ["--signature-policy", str(self._policy)]

    def _import_base(self) -> None:
        base = self._folder / "base"
        if not (base / "usr" / "bin" / "python3").exists():
            self._say("base: debootstrap from its own mirror, as no registry is asked")
            log = self._folder / "debootstrap.txt"
            command = [self._tools.debootstrap, "--variant=minbase", f"--include={_BASE_PACKAGES}", "bookworm"]
            with log.open("w") as output:
                done = subprocess.run([*command, str(base)], env=self._tools.environment, stdout=output, stderr=output)
            if done.returncode:
                raise ImageSkipped(f"debootstrap cannot make a base: {last_line(log.read_text(errors='replace'))}")
        for left in (*(base / "var/cache/apt").rglob("*.*"), *(base / "var/lib/apt/lists").glob("*_*")):
            left.unlink()  # an image of a registry has none of these
        (base / "etc" / "apt" / "apt.conf.d" / "docker-clean").write_text(_DOCKER_CLEAN)
        container = self._buildah("from", *self._trusting, "scratch").strip()
        self._buildah("copy", container, str(base), "/")
        self._buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", container)
        self._buildah("commit", *self._trusting, "--rm", container, "localhost/base")

    def _build_image(self, build_arguments: dict[str, str]) -> None:
        log = self._folder / "build.txt"
        command = [
            "build",
            "--isolation",
            "chroot",
            "--pull-never",
            "--from",
            "localhost/base",
            "--tag",
            "localhost/tis",
        ]
        command += [*self._trusting, *self._pip_of_this_machine()]
        command += [word for name, value in build_arguments.items() for word in ("--build-arg", f"{name}={value}")]
        self._say(f"building the Dockerfile with buildah; its output is in {log}")
        with log.open("w") as output:
            done = subprocess.run(
                [*self._program, *command, str(REPOSITORY)],
                env=self._tools.environment,
                stdout=output,
                stderr=output,
                timeout=_BUILD_SECONDS,
            )
        if done.returncode:
            raise ImageFailed(f"the build ended with {done.returncode}: {last_line(log.read_text(errors='replace'))}")

    def _pip_of_this_machine(self) -> list[str]:
        """Mounts for the build alone: indexes, folders and certificates that pip is configured with here."""
        listing = run([sys.executable, "-m", "pip", "config", "list"])
        values = dict(re.findall(r"^(?::env:\.|global\.)([\w-]+)='([^']*)'$", listing, re.MULTILINE))
        file = self._folder / "pip.conf"
        file.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in sorted(values.items())))
        paths = {word.removeprefix("file://") for value in values.values() for word in value.split()}
        shared = {_below_package_folder(Path(path)) for path in paths if path.startswith("/") and Path(path).exists()}
        mounts = {file: "/etc/pip.conf"} | {path: str(path) for path in shared}
        return [word for source, target in mounts.items() for word in ("--volume", f"{source}:{target}:ro")]

    def _buildah(self, *arguments: str) -> str:
        return run([*self._program, *arguments], self._tools.environment)


def _below_package_folder(path: Path) -> Path:
    """The pages of a local index link to files beside its folder `simple`."""
    return path.parent if path.name == "simple" else path
