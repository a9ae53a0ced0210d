"""A hash that identifies a model: the same in every process and on every machine."""

import hashlib
from pathlib import Path
from typing import Any

from tis.engine.models.description import read_object
from tis.engine.models.gguf_file import read_gguf_header

# Files that decide how text is tokenised and what the weights mean. Not chat templates and recommended sampling: a
# resumed request has its prompt tokens and its parameters already.
_HASHED_WHOLE = (
    "config.json",
    "tokenizer*.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "*.tiktoken",
    "*.safetensors.index.json",
    "adapter_config.json",
    # A resumed request decodes and preprocesses its images again.
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "processor_config.json",
)
_WEIGHTS = "*.safetensors"
# Samples of each weights file, from its beginning to its end: enough to notice a fine-tune of some layers only.
_SAMPLES = 16
_SAMPLE_BYTES = 64 * 1024


def revision_of(*folders: Path) -> str:
    """Of a model, or of one and its adapter.

    Reads only megabytes, whatever the size of the model. Does not depend on the dtype that it is loaded in.
    """
    digest = hashlib.blake2b(digest_size=16)
    for folder in folders:
        _hash_folder(digest, folder)
    return digest.hexdigest()


def _hash_folder(digest: Any, folder: Path) -> None:
    if folder.is_file():
        _hash_file(digest, folder)
        return
    small = {path for pattern in _HASHED_WHOLE for path in folder.glob(pattern) if path.is_file()}
    for path in sorted(small):
        _hash_name_and_size(digest, path)
        digest.update(path.read_bytes())
    digest.update(_ending_ids(folder))
    for path in sorted(folder.glob(_WEIGHTS)):
        _hash_name_and_size(digest, path)
        _hash_samples(digest, path)


def _hash_file(digest: Any, path: Path) -> None:
    """A GGUF file: its header, in which its tokenizer is, and samples of its weights."""
    tensors = read_gguf_header(path).tensors.values()
    _hash_name_and_size(digest, path)
    with path.open("rb") as file:
        digest.update(file.read(min(one.begin for one in tensors) if tensors else -1))
    _hash_samples(digest, path)


def _ending_ids(folder: Path) -> bytes:
    """The only entry of generation_config.json that changes the meaning of a recorded answer."""
    configured = read_object(folder / "generation_config.json").get("eos_token_id")
    ids = configured if isinstance(configured, list) else [configured]
    return repr(sorted(set(ids))).encode() if configured is not None else b""


def _hash_name_and_size(digest: Any, path: Path) -> None:
    digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())


def _hash_samples(digest: Any, path: Path) -> None:
    last = max(0, path.stat().st_size - _SAMPLE_BYTES)
    with path.open("rb") as file:
        for at in range(_SAMPLES):
            file.seek(last * at // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
