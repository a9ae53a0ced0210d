"""Finds buildah and debootstrap, or fetches Debian's packages of them into a folder: nothing is installed."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# What buildah needs beyond a plain Debian; a library that is installed is taken from there.
_PACKAGES = ["buildah", "debootstrap", "libgpgme11", "libassuan0", "libdevmapper1.02.1", "libseccomp2"]
# buildah starts itself again without LD_LIBRARY_PATH: for it alone, its libraries lie in the folder of the system.
_WITH_LIBRARIES = 'mount -t overlay overlay -o "lowerdir=$1:$2" "$2"; shift 2; exec "$@"'
_NAMESPACE = ["unshare", "--mount"]
_NEEDED = ["unshare", "nsenter", "chroot", "mount"]
_MIN_FREE_BYTES = 15 * 2**30  # without overlay, each stage is kept as a whole


class ImageSkipped(Exception):
    """The image cannot be tried on this machine; the message says why."""


class ImageFailed(Exception):
    """The image does something else than it should; the message says what."""


@dataclass(frozen=True)
class Tools:
    namespace: list[str]  # starts a command with mounts of its own: those of buildah's libraries and of the image
    buildah: str
    debootstrap: str
    environment: dict[str, str]


def find_tools(folder: Path) -> Tools:
    """Raises `ImageSkipped`."""
    _check_machine(folder)
    buildah, debootstrap = shutil.which("buildah"), shutil.which("debootstrap")
    if buildah and debootstrap:
        return Tools(_NAMESPACE, buildah, debootstrap, dict(os.environ))
    fetched = folder / "tools"
    if not (fetched / "usr" / "bin" / "buildah").exists():
        _fetch_packages(fetched)
    libraries = Path("usr", "lib", f"{platform.machine()}-linux-gnu")
    with_libraries = [*_NAMESPACE, "sh", "-ec", _WITH_LIBRARIES, "sh", f"{fetched / libraries}", f"/{libraries}"]
    return Tools(
        _NAMESPACE if buildah else with_libraries,
        buildah or str(fetched / "usr" / "bin" / "buildah"),
        debootstrap or str(fetched / "usr" / "sbin" / "debootstrap"),
        {**os.environ, "DEBOOTSTRAP_DIR": str(fetched / "usr" / "share" / "debootstrap")},
    )


def _check_machine(folder: Path) -> None:
    if platform.system() != "Linux":
        raise ImageSkipped("it needs namespaces of Linux")
    if os.geteuid() != 0:
        raise ImageSkipped("it needs root: debootstrap and chroot isolation mount and change owners")
    missing = [name for name in _NEEDED if not shutil.which(name)]
    if missing:
        raise ImageSkipped(f"there is no {', '.join(missing)}")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode:
        raise ImageSkipped("this machine allows no new mount and process namespaces")
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES:
        raise ImageSkipped(f"{folder} has {free / 2**30:.0f} GiB free, and it needs {_MIN_FREE_BYTES / 2**30:.0f}")


def _fetch_packages(target: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise ImageSkipped("there is neither buildah with debootstrap nor apt-get to fetch them")
    downloads = target / "packages"
    downloads.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["apt-get", "download", *_PACKAGES], cwd=downloads, capture_output=True, text=True)
    if done.returncode:
        raise ImageSkipped(f"apt-get cannot download buildah and debootstrap: {last_line(done.stderr)}")
    for package in sorted(downloads.glob("*.deb")):
        run(["dpkg", "-x", str(package), str(target)])


def run(command: Sequence[str], environment: dict[str, str] | None = None, seconds: float = 600) -> str:
    """The standard output; raises `ImageFailed` with the last line of the errors."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise ImageFailed(f"{command[0]} took more than {seconds:g} seconds") from error
    if done.returncode:
        raise ImageFailed(f"{' '.join(command[:3])} ended with {done.returncode}: {last_line(done.stderr)}")
    return done.stdout


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:500] if lines else "no message"
