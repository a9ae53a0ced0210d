"""Starts what the image starts, as its user, in namespaces of its own, with a read-only root but for /data and /tmp."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.image.root_folder import Image
from scripts.image.tools import ImageFailed, run

# $1 is the root, $2 the folder of the data, $3 user:group; then the command.
_SET_UP = """
root=$1 data=$2 user=$3; shift 3
mount --bind "$root" "$root"
mount --bind "$data" "$root/data"
mount -t tmpfs tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" "$@"
"""
_STOP_SECONDS = 60


class ImageProcess:
    def __init__(self, image: Image, data: Path, log: Path, variables: dict[str, str]) -> None:
        self._image = image
        self._data = data
        self._log = log
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def user(self) -> int:
        return int(self._image.config["User"].partition(":")[0])

    def start(self) -> None:
        config = self._image.config
        self._data.mkdir(exist_ok=True)
        os.chown(self._data, self.user, self.user)
        variables = [*config["Env"], *(f"{name}={value}" for name, value in self._variables.items())]
        command = ["/usr/bin/env", "-i", "-C", config["WorkingDir"], *variables, *config["Entrypoint"], *config["Cmd"]]
        namespaces = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
        shell = ["sh", "-ec", _SET_UP, "sh", str(self._image.root), str(self._data), config["User"]]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen([*namespaces, *shell, *command], stdout=output, stderr=output)

    def check_alive(self) -> None:
        assert self._process
        if self._process.poll() is not None:
            raise ImageFailed(f"it exited with {self._process.returncode} instead of starting; see {self._log}")

    @property
    def first(self) -> int:
        """Process 1 of the image, by its number here."""
        assert self._process
        children = _children(self._process.pid)
        if not children:
            raise ImageFailed("its process 1 is gone")
        return children[0]

    def processes(self) -> Iterator[int]:
        waiting = [self.first]
        while waiting:
            number = waiting.pop()
            yield number
            waiting += _children(number)

    def inside(self, *command: str) -> str:
        """Runs a command as `docker exec` would."""
        variables = [*self._image.config["Env"], *(f"{name}={value}" for name, value in self._variables.items())]
        user = str(self.user)
        enter = [
            "nsenter",
            "--target",
            str(self.first),
            "--mount",
            "--pid",
            "--root",
            "--setuid",
            user,
            "--setgid",
            user,
        ]
        return run([*enter, "/usr/bin/env", "-i", "-C", "/", *variables, *command], seconds=60)

    def stop(self) -> int:
        """SIGTERM, as `docker stop` sends it; the exit code."""
        assert self._process
        os.kill(self.first, signal.SIGTERM)
        try:
            return self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise ImageFailed(f"it did not stop within {_STOP_SECONDS} seconds of SIGTERM") from None

    def kill(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.kill()  # unshare takes process 1 with it, and the kernel the rest
            self._process.wait()


def status_of(process: int) -> dict[str, str]:
    """The lines of /proc/PROCESS/status; empty if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _children(process: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return []


def wait_for(fact: object, seconds: float, what: str) -> None:
    """`fact` is called until it is true."""
    assert callable(fact)
    end = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > end:
            raise ImageFailed(f"{what}: not within {seconds:g} seconds")
        time.sleep(0.1)
