"""GGUF files by the byte, for what the official writer refuses to write."""

import struct

U8, U32, F32, STRING, ARRAY, U64 = 0, 4, 6, 8, 9, 10


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


ARCHITECTURE = entry("general.architecture", STRING, text("llama"))


def tensor(name: str = "a", shape: tuple[int, ...] = (8,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def file_of(
    *entries: bytes,
    tensors: tuple[bytes, ...] = (),
    magic: bytes = b"GGUF",
    version: int = 3,
    counts: tuple[int, int] | None = None,
    data: int = 64,
) -> bytes:
    num_tensors, num_entries = counts or (len(tensors), len(entries))
    head = magic + struct.pack("<IQQ", version, num_tensors, num_entries) + b"".join((*entries, *tensors))
    return head + bytes(-len(head) % 32) + bytes(data)


def list_of(kind: int, count: int, items: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + items
