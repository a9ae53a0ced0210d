from typing import Any


def native_kernels() -> Any | None:
    return None
