"""Compiles the library: `setup.py` for an installation, `python -m tis.engine.kernels.build` for a checkout."""

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
# Compiled for OpenMP, but not linked with it: the functions of torch's own OpenMP are found when the library is loaded.
# The instruction sets are chosen in the code, so that the library runs on any machine of the architecture.
_FLAGS = ["-O3", "-g0", "-fopenmp", "-fno-strict-aliasing", "-fvisibility=hidden", "-Wall", "-Wextra"]


def library_path() -> Path:
    return _FOLDER / f"_native{sysconfig.get_config_var('EXT_SUFFIX') or '.so'}"


def has_compiler() -> bool:
    return any(shutil.which(name) for name in ("cc", "gcc", "clang"))


def is_current() -> bool:
    """Whether the library of this checkout is there, and newer than its sources."""
    library = library_path()
    sources = [path for path in _FOLDER.iterdir() if path.suffix in (".c", ".h")]
    return library.exists() and library.stat().st_mtime >= max(path.stat().st_mtime for path in sources)


def extension(folder: str) -> Any:
    """`folder` is that of the sources, relative to setup.py or absolute."""
    from setuptools import Extension

    return Extension(
        "tis.engine.kernels._native",
        sources=[f"{folder}/{path.name}" for path in sorted(_FOLDER.glob("*.c"))],
        depends=[f"{folder}/{path.name}" for path in sorted(_FOLDER.glob("*.h"))],
        extra_compile_args=_FLAGS,
        libraries=["m"],
        optional=True,
    )


def build_into(folder: Path) -> Path | None:
    """Returns the library, or None where it cannot be compiled; the compiler says why on stderr."""
    from setuptools import Distribution

    distribution = Distribution({"ext_modules": [extension(str(_FOLDER))]})
    command: Any = distribution.get_command_obj("build_ext")
    command.build_lib = str(folder)
    with tempfile.TemporaryDirectory() as scratch:
        command.build_temp = scratch
        command.ensure_finalized()
        command.run()
    path = Path(command.get_ext_fullpath("tis.engine.kernels._native"))
    return path if path.exists() else None


def main() -> None:
    if is_current():
        return
    with tempfile.TemporaryDirectory() as folder:
        built = build_into(Path(folder)) if has_compiler() else None
        if built is None:
            sys.stderr.write("The native kernels are not built: the server works without them, more slowly on a CPU.\n")
            return
        partial = library_path().with_suffix(".partial")
        shutil.copy(built, partial)
        partial.replace(library_path())  # a server that runs keeps the file that it has loaded


if __name__ == "__main__":
    main()
