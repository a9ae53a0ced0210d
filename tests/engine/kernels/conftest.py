import ctypes
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tis.engine.kernels import build
from tis.engine.kernels.build import build_into, has_compiler, is_current, library_path, why_not_here
from tis.engine.kernels.native import ISAS, NativeKernels, load_kernels

_SOFTWARE_TILES = "amx, tiles in software"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of this checkout, or one compiled for these tests where that is missing or older than its sources."""
    if reason := why_not_here():
        pytest.skip(reason)
    if is_current():
        return library_path()
    if not has_compiler():
        pytest.skip("there is no C compiler")
    built = build_into(tmp_path_factory.mktemp("kernels"))
    assert built is not None, "there is a C compiler, but the native kernels do not compile"
    return built


# Compiling takes seconds.
@pytest.fixture(scope="module", params=[*ISAS, pytest.param(_SOFTWARE_TILES, marks=pytest.mark.long)])
def kernels(request: pytest.FixtureRequest, library: Path) -> NativeKernels:
    try:
        if request.param != _SOFTWARE_TILES:
            return load_kernels(library, request.param)
        load_kernels(library, "avx512_bf16")
    except OSError as error:
        pytest.skip(str(error))
    others = load_kernels(request.getfixturevalue("library_with_software_tiles"), "avx512_bf16")
    return NativeKernels(others.library, "amx")


@pytest.fixture(scope="session")
def library_with_software_tiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, whose tiles are computed in plain C: the level `amx` on a CPU that has all of it but tiles."""
    here, folder = Path(__file__).parent, Path(build.__file__).parent
    names = (
        "kernels.c",
        "parts.c",
        "decoder_layers.c",
        "experts.c",
        "integer_product.c",
        "int8_product.c",
        "int8_tiles.c",
        "int8_spans.c",
        "int8_spans_avx2.c",
        "int8_spans_vnni.c",
        "k_quants.c",
        "k_quants_avx2.c",
        "k_quants_vnni.c",
        "k_quants_pack.c",
        "gguf_blocks.c",
        "int4_product.c",
        "int4_pack.c",
        "states.c",
        "amx.c",
    )
    sources = [str(here / "no_other_levels.c"), *(str(folder / name) for name in names)]
    flags = ["-O1", "-fopenmp", f"-I{folder}", f"-include{here / 'software_tiles.h'}"]
    return _compiled_once(tmp_path_factory, "tiles", [*flags, *sources, "-lm"])


@pytest.fixture(scope="session")
def software_vnni(tmp_path_factory: pytest.TempPathFactory, library: Path) -> NativeKernels:
    """Blocks of 64 outputs, and all of VNNI but its ten instructions, which are plain C: on any CPU."""
    load_kernels(library)  # and the OpenMP that it needs
    folder = Path(build.__file__).parent
    names = ("integer_product", "int8_product", "int8_tiles", "int4_product", "int4_pack")
    in_levels = [f"{name}{level}" for name in ("int8_spans", "k_quants") for level in ("", "_avx2", "_vnni")]
    sources = [str(folder / f"{name}.c") for name in (*names, *in_levels)]
    built = _compiled_once(tmp_path_factory, "vnni", ["-O1", "-fopenmp", "-DSOFTWARE_VNNI", *sources, "-lm"])
    return NativeKernels(ctypes.CDLL(str(built)), "avx512")


def _compiled_once(folders: pytest.TempPathFactory, name: str, arguments: list[str]) -> Path:
    """The workers of one run share it: the first one compiles while the others wait."""
    shared = folders.getbasetemp().parent if os.environ.get("PYTEST_XDIST_WORKER") else None
    if shared is None:
        return compile_c(folders.mktemp(name), arguments)
    library = shared / f"{name}.so"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            compile_c(folders.mktemp(name), arguments).rename(library)
    return library


def compile_c(folder: Path, arguments: list[str]) -> Path:
    """Returns a library; skips the test where no compiler knows AMX."""
    if reason := why_not_here():
        pytest.skip(reason)
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None) or pytest.skip("there is no C compiler")
    knows_amx = [compiler, "-mamx-tile", "-mamx-bf16", "-mamx-int8", "-fsyntax-only", "-xc", "/dev/null"]
    if subprocess.run(knows_amx, check=False, capture_output=True).returncode:
        pytest.skip("the C compiler does not know AMX")
    library = folder / "tiles.so"
    command = [compiler, "-Wall", "-Werror", "-fno-strict-aliasing", "-shared", "-fPIC", *arguments, "-o", str(library)]
    subprocess.run(command, check=True)
    return library
