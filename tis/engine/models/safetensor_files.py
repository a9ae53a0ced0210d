"""The tensors of a repository by name: their shapes at once, their numbers when they are asked for."""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.models.description import read_object

_BITS = {"F64": 64, "I64": 64, "F16": 16, "BF16": 16, "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8}
_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class TensorHeader:
    shape: tuple[int, ...]
    dtype: str  # as safetensors calls it
    numbers: tuple[int, ...] = ()  # of two integers, as a shape that is saved beside a matrix
    file: str = ""
    num_bytes: int = 0


class SafetensorFiles:
    """Raises LoadFailed with the name of the file that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.tensors: dict[str, TensorHeader] = {}
        self._handles: dict[str, Any] = {}
        for path in _weight_files(folder):
            self._open(path)

    def tensor(self, name: str) -> Any:
        """A view of the mapped file."""
        return self._handles[self.tensors[name].file].get_tensor(name)

    def _open(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            handle: Any = safe_open(path, framework="pt")
            self._handles[path.name] = handle
            for name in handle.keys():
                part = handle.get_slice(name)
                shape, dtype = tuple(part.get_shape()), str(part.get_dtype())
                numbers = tuple(handle.get_tensor(name).tolist()) if shape == (2,) and dtype in ("I64", "I32") else ()
                num_bytes = prod(shape) * _BITS.get(dtype, 32) // 8
                self.tensors[name] = TensorHeader(shape, dtype, numbers, path.name, num_bytes)
        except (SafetensorError, OSError) as error:
            raise LoadFailed(f"{path.name} cannot be read as safetensors: {error}.") from error


def _weight_files(folder: Path) -> list[Path]:
    names = {path.name: path for path in folder.glob("*.safetensors")}
    if (folder / _INDEX).exists():
        listed = read_object(folder / _INDEX).get("weight_map")
        wanted = {str(one) for one in listed.values()} if isinstance(listed, dict) else set()
        missing = sorted(wanted - names.keys())
        if missing or not wanted:
            raise LoadFailed(f"{_INDEX} names {missing[0] if missing else 'no files'}: that is not among the weights.")
        return [names[name] for name in sorted(wanted)]
    if "model.safetensors" in names:
        return [names["model.safetensors"]]
    if len(names) != 1:
        raise LoadFailed(
            f"{folder.name} has {len(names)} files of weights, and no {_INDEX} that says which are its own."
        )
    return [*names.values()]
