"""Compiles the library: `setup.py` for an installation, `python -m tis.engine.kernels.build` for a checkout."""

import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_SOURCES = ["kernels.c", "scalar.c", "avx2.c", "avx512.c", "avx512_bf16.c"]
_HEADERS = sorted(path.name for path in FOLDER.glob("*.h"))
# Compiled for OpenMP, but not linked with it: the functions of torch's own OpenMP are found when the library is loaded.
# The instruction sets are chosen in the code, so that the library runs on any machine of the architecture.
_FLAGS = ["-O3", "-g0", "-fopenmp", "-fno-strict-aliasing", "-fvisibility=hidden", "-Wall", "-Wextra"]


def extension(folder: str) -> Any:
    """`folder` is that of the sources, relative to setup.py or absolute."""
    from setuptools import Extension

    return Extension(
        "tis.engine.kernels._native",
        sources=[f"{folder}/{name}" for name in _SOURCES],
        depends=[f"{folder}/{name}" for name in _HEADERS],
        extra_compile_args=_FLAGS,
        libraries=["m"],
        optional=True,
    )


def build_into(folder: Path) -> Path | None:
    """Returns the library, or None where it cannot be compiled; the compiler says why on stderr."""
    from setuptools import Distribution

    distribution = Distribution({"ext_modules": [extension(str(FOLDER))]})
    command: Any = distribution.get_command_obj("build_ext")
    command.build_lib = str(folder)
    with tempfile.TemporaryDirectory() as scratch:
        command.build_temp = scratch
        command.ensure_finalized()
        command.run()
    path = Path(command.get_ext_fullpath("tis.engine.kernels._native"))
    return path if path.exists() else None


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        built = build_into(Path(folder))
        if built is None:
            sys.stderr.write(
                "The native kernels were not built: the server works without them, more slowly on a CPU.\n"
            )
            return
        target = FOLDER / built.name
        partial = target.with_suffix(".partial")
        partial.write_bytes(built.read_bytes())
        partial.replace(target)  # a server that runs keeps the file it has loaded


if __name__ == "__main__":
    main()
