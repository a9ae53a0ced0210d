"""Files that an operator names as the voices of a model: arrays of NumPy, which cannot run code."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed

_MAX_BYTES = 16 * 2**20


def read_vector(folder: Path, name: str, place: str | int, size: int) -> Any:
    """A tensor of one row. `place` is a path, or one within the folder of the model."""
    import torch

    array = read_array(folder, name, place)
    if array.size != size:
        raise LoadFailed(f"The voice {name} has {array.size} numbers, and the model takes {size}.")
    return torch.from_numpy(array.astype("float32").reshape(1, size))


def read_array(folder: Path, name: str, place: str | int) -> Any:
    import numpy as np

    path = _file_of(folder, place)
    if path is None:
        raise LoadFailed(f"The voice {name} is {str(place)!r}: there is no such file, here or beside the model.")
    if path.stat().st_size > _MAX_BYTES:
        raise LoadFailed(f"The voice {name} is larger than {_MAX_BYTES >> 20} MiB.")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise LoadFailed(f"The voice {name} is no .npy file of numbers.") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise LoadFailed(f"The voice {name} is no .npy file of numbers.")
    return array


def origin_of(folder: Path, place: str | int, parts: Sequence[str]) -> str:
    """A digest of what decides how a voice sounds: its file, its preset or its number, and other parts."""
    path = _file_of(folder, place)
    return hashlib.blake2b(
        "\0".join([*parts, "" if path else str(place)]).encode() + (path.read_bytes() if path else b""), digest_size=8
    ).hexdigest()


def _file_of(folder: Path, place: str | int) -> Path | None:
    return next((one for one in (folder / str(place), Path(str(place))) if one.is_file()), None)
