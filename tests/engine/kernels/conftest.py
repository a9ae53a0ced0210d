from pathlib import Path

import pytest

from tis.engine.kernels.build import build_into, has_compiler, is_current, library_path


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of this checkout, or one compiled for these tests where that is missing or older than its sources."""
    if is_current():
        return library_path()
    if not has_compiler():
        pytest.skip("there is no C compiler")
    built = build_into(tmp_path_factory.mktemp("kernels"))
    assert built is not None, "there is a C compiler, but the native kernels do not compile"
    return built
