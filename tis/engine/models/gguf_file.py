"""Reads what a GGUF file says of itself: metadata, and where each tensor lies. Nothing of it is believed.

Every count, length and offset is compared with the size of the file before anything is read by it, so a faulty file
costs no more memory than it has bytes, and is refused with one line that names it.
"""

import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.kernels.gguf_types import TYPES_OF_GGUF

SUFFIX = ".gguf"
_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_MIN_BYTES = 24
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_LENGTH = struct.Struct("<Q")
_MAX_ENTRIES = 65_536  # of the metadata
_MAX_TENSORS = 65_536
_MAX_KEY_BYTES = 1024
_MAX_STRING_BYTES = 8 * 2**20  # a chat template
_MAX_ITEM_BYTES = 4096  # a string of an array: a token, a merge
_MAX_ITEMS = 4 * 2**20  # of all arrays together
_MAX_DIMENSIONS = 4
_MAX_ALIGNMENT = 65_536
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class GgufTensor:
    name: str
    shape: tuple[int, ...]  # outputs first
    kind: int  # a key of TYPES_OF_GGUF
    begin: int  # in the file
    num_bytes: int

    @property
    def row_bytes(self) -> int:
        known = TYPES_OF_GGUF[self.kind]
        return self.shape[-1] // known.numbers * known.num_bytes


@dataclass(frozen=True, slots=True)
class GgufHeader:
    path: Path
    metadata: Mapping[str, Any]  # numbers, texts, and lists of them
    tensors: Mapping[str, GgufTensor]

    @property
    def architecture(self) -> str:
        return str(self.metadata["general.architecture"])

    def of_architecture(self, key: str) -> Any | None:
        return self.metadata.get(f"{self.architecture}.{key}")


def is_gguf(repo: str | Path) -> bool:
    """A file, or one of a repository: `model.gguf`, `owner/repository:model.gguf`."""
    return str(repo).endswith(SUFFIX)


def read_gguf_header(path: Path) -> GgufHeader:
    """Blocks for as long as it reads a vocabulary. Raises LoadFailed."""
    try:
        if path.stat().st_size < _MIN_BYTES:
            raise LoadFailed(f"{path.name} is no GGUF file: it has {path.stat().st_size} bytes.")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(path, data).header()
    except OSError as error:
        raise LoadFailed(f"{path.name} cannot be read: {error.strerror}.") from error
    except struct.error as error:
        raise LoadFailed(f"{path.name} is truncated: it ends within its header.") from error
    except UnicodeDecodeError as error:
        raise LoadFailed(f"{path.name} is no valid GGUF file: a text of its header is not UTF-8.") from error


class _Reader:
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self._at = path, data, 0
        self._num_items = 0

    def header(self) -> GgufHeader:
        if self._data[:4] != _MAGIC:
            raise self._fault("is no GGUF file: it does not begin with GGUF")
        self._at = 4
        version, num_tensors, num_entries = self._unpack("IQQ")
        if version not in _VERSIONS:
            raise self._fault(f"has version {version} of GGUF; versions 2 and 3 are read, in little-endian order")
        if num_entries > _MAX_ENTRIES or num_tensors > _MAX_TENSORS:
            raise self._fault(f"says that it has {num_entries} entries and {num_tensors} tensors")
        metadata: dict[str, Any] = {}
        for _ in range(num_entries):
            key = self._string(_MAX_KEY_BYTES)
            if key in metadata:
                raise self._fault(f"has the entry {key!r} twice")
            metadata[key] = self._value(self._unpack("I")[0])
        if not isinstance(metadata.get("general.architecture"), str):
            raise self._fault("does not say its architecture (general.architecture)")
        num_parts = metadata.get("split.count", 1)
        if num_parts != 1:
            raise self._fault(f"is one of {num_parts} parts. Merge them: llama-gguf-split --merge FIRST-PART WHOLE")
        return GgufHeader(self._path, metadata, self._tensors(num_tensors, metadata.get("general.alignment")))

    def _tensors(self, number: int, alignment: Any) -> dict[str, GgufTensor]:
        alignment = _ALIGNMENT if alignment is None else alignment
        if type(alignment) is not int or not 0 < alignment <= _MAX_ALIGNMENT or alignment & (alignment - 1):
            raise self._fault(f"has an alignment of {alignment!r}")
        entries = [self._entry() for _ in range(number)]
        begin = -(-self._at // alignment) * alignment
        tensors: dict[str, GgufTensor] = {}
        for name, shape, kind, offset in entries:
            known = TYPES_OF_GGUF[kind]
            num_bytes = prod(shape) // known.numbers * known.num_bytes
            if offset % alignment or begin + offset + num_bytes > len(self._data):
                raise self._fault(f"is truncated or wrong: tensor {name!r} lies behind its end")
            if name in tensors:
                raise self._fault(f"has the tensor {name!r} twice")
            tensors[name] = GgufTensor(name, shape, kind, begin + offset, num_bytes)
        return tensors

    def _entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string(_MAX_KEY_BYTES)
        [count] = self._unpack("I")
        if not 0 < count <= _MAX_DIMENSIONS:
            raise self._fault(f"has a tensor {name!r} of {count} dimensions")
        shape = self._unpack(f"{count}Q")[::-1]
        kind, offset = self._unpack("IQ")
        if kind not in TYPES_OF_GGUF:
            raise self._fault(f"has a tensor {name!r} of a type (number {kind}) that is not read")
        numbers = TYPES_OF_GGUF[kind].numbers
        if not all(shape) or max(shape) > 2**40 or shape[-1] % numbers:
            raise self._fault(f"has a tensor {name!r} of shape {list(shape)}, which is none of {numbers} in a block")
        return name, shape, kind, offset

    def _value(self, kind: int) -> Any:
        if kind in _FORMATS:
            return self._unpack(_FORMATS[kind])[0]
        if kind == _STRING:
            return self._string(_MAX_STRING_BYTES)
        if kind != _ARRAY:
            raise self._fault(f"has an entry of type {kind}, which GGUF does not have")
        kind, count = self._unpack("IQ")
        self._num_items += count
        if self._num_items > _MAX_ITEMS:
            raise self._fault(f"has lists of more than {_MAX_ITEMS} items")
        if kind in _FORMATS:
            return list(self._unpack(f"{count}{_FORMATS[kind]}"))
        if kind != _STRING:
            raise self._fault(f"has a list of type {kind}, which is not read")
        return self._strings(count)

    def _strings(self, count: int) -> list[str]:
        """In one loop, as a vocabulary and its merges are some 300,000."""
        texts, data, at, end = [], self._data, self._at, len(self._data)
        for _ in range(count):
            [length] = _LENGTH.unpack_from(data, at)
            if length > _MAX_ITEM_BYTES:
                raise self._too_long(length, _MAX_ITEM_BYTES)
            begin, at = at + _LENGTH.size, at + _LENGTH.size + length
            if at > end:
                raise struct.error
            texts.append(str(data[begin:at], "utf-8"))
        self._at = at
        return texts

    def _string(self, max_bytes: int) -> str:
        [length] = self._unpack("Q")
        if length > max_bytes:
            raise self._too_long(length, max_bytes)
        return str(self._unpack(f"{length}s")[0], "utf-8")

    def _unpack(self, form: str) -> tuple[Any, ...]:
        form = f"<{form}"
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def _too_long(self, length: int, max_bytes: int) -> LoadFailed:
        return self._fault(f"has a text of {length} bytes where at most {max_bytes} are read")

    def _fault(self, what: str) -> LoadFailed:
        return LoadFailed(f"{self._path.name} {what}.")


def texts_of(value: Any) -> Sequence[str]:
    """A list of texts, or nothing."""
    return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else ()
