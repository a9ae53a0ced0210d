"""The header of a GGUF file is read with suspicion: what is wrong is refused by the file's name, and quickly."""

import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.engine.gguf_headers import (
    ARCHITECTURE,
    ARRAY,
    F32,
    STRING,
    U8,
    U32,
    entry,
    file_of,
    list_of,
    tensor,
    text,
)
from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import entry_of
from tis.engine.models.description import ModelDescription, describe_unloaded
from tis.engine.models.gguf_file import is_gguf, read_gguf_header
from tis.engine.models.hub_files import HubSource, file_in_repository, find_local_folder, is_complete
from tis.engine.models.loading import LoadOptions, load_model

HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no GGUF file"),
    "a few bytes": (b"GGUF", "no GGUF file"),
    "another magic": (file_of(ARCHITECTURE, magic=b"GGML"), "does not begin"),
    "safetensors": (b"\x10\0\0\0\0\0\0\0" + b'{"a": {}}' + bytes(64), "does not begin"),
    "version 1": (file_of(ARCHITECTURE, version=1), "version 1"),
    "big-endian": (file_of(ARCHITECTURE, version=0x03000000), "little-endian"),
    "absurd entries": (file_of(counts=(0, 2**63)), "entries"),
    "absurd tensors": (file_of(ARCHITECTURE, counts=(2**40, 1)), "tensors"),
    "more entries than there are": (file_of(ARCHITECTURE, counts=(0, 60_000), data=0), "truncated|text of|type|twice"),
    "a huge key": (file_of(struct.pack("<Q", 2**62)), "text of 46116"),
    "a huge text": (file_of(entry("general.name", STRING, struct.pack("<Q", 2**40))), "text of"),
    "a text behind the end": (file_of(entry("general.name", STRING, struct.pack("<Q", 10_000)), data=0), "truncated"),
    "a huge list": (file_of(entry("a", ARRAY, list_of(U8, 2**62))), "lists of more"),
    "a list of a large number of texts": (file_of(entry("a", ARRAY, list_of(STRING, 4_000_000)), data=0), "truncated"),
    "a huge token": (file_of(entry("a", ARRAY, list_of(STRING, 1, struct.pack("<Q", 2**20)))), "text of"),
    "a list of lists": (file_of(entry("a", ARRAY, list_of(ARRAY, 1))), "list of type 9"),
    "an unknown type of entry": (file_of(entry("a", 77, b"")), "type 77"),
    "an entry twice": (file_of(ARCHITECTURE, ARCHITECTURE), "twice"),
    "no architecture": (file_of(entry("general.name", STRING, text("x"))), "architecture"),
    "an architecture that is a number": (file_of(entry("general.architecture", U32, bytes(4))), "architecture"),
    "no UTF-8": (file_of(entry("general.architecture", STRING, struct.pack("<Q", 2) + b"\xff\xfe")), "UTF-8"),
    "a part of a split file": (file_of(ARCHITECTURE, entry("split.count", 2, struct.pack("<H", 3))), "one of 3 parts"),
    "no alignment": (file_of(ARCHITECTURE, entry("general.alignment", U32, bytes(4))), "alignment"),
    "an odd alignment": (file_of(ARCHITECTURE, entry("general.alignment", U32, struct.pack("<I", 33))), "alignment"),
    "an unknown type of tensor": (file_of(ARCHITECTURE, tensors=(tensor(kind=99),)), "number 99"),
    "no dimension": (file_of(ARCHITECTURE, tensors=(tensor(shape=()),)), "dimensions"),
    "many dimensions": (
        file_of(ARCHITECTURE, counts=(1, 1), tensors=(text("a") + struct.pack("<I", 2**31),)),
        "dimens",
    ),
    "a dimension of none": (file_of(ARCHITECTURE, tensors=(tensor(shape=(8, 0)),)), "shape"),
    "dimensions that overflow": (file_of(ARCHITECTURE, tensors=(tensor(shape=(2**33, 2**33)),)), "behind its end"),
    "half a block": (file_of(ARCHITECTURE, tensors=(tensor(shape=(33, 2), kind=8),)), "block"),
    "data behind the end": (file_of(ARCHITECTURE, tensors=(tensor(shape=(1024,)),)), "behind its end"),
    "an absurd offset": (file_of(ARCHITECTURE, tensors=(tensor(offset=2**63),)), "behind its end"),
    "an offset beside the alignment": (file_of(ARCHITECTURE, tensors=(tensor(offset=4),)), "behind its end"),
    "a tensor twice": (file_of(ARCHITECTURE, tensors=(tensor(), tensor())), "twice"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_faulty_files_are_refused_by_name_in_bounded_memory_and_time(name: str, tmp_path: Path) -> None:
    data, reason = HOSTILE[name]
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(LoadFailed, match=reason) as refused:
            read_gguf_header(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 1
    assert refused.value.message.startswith("bad.gguf ") and str(tmp_path) not in refused.value.message
    assert describe_unloaded(str(path)) == ModelDescription()  # the catalogue lists it; the load says why not


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    whole = file_of(
        ARCHITECTURE,
        entry("tokenizer.ggml.tokens", ARRAY, list_of(STRING, 2, text("a") + text("b"))),
        entry("llama.rope.freq_base", F32, struct.pack("<f", 5.0)),
        tensors=(tensor(shape=(8, 2)), tensor("b", (32,), 8, 64)),
        data=98,
    )
    path.write_bytes(whole)
    header = read_gguf_header(path)
    assert header.architecture == "llama" and header.of_architecture("rope.freq_base") == 5.0
    assert header.metadata["tokenizer.ggml.tokens"] == ["a", "b"]
    assert {name: one.shape for name, one in header.tensors.items()} == {"a": (2, 8), "b": (32,)}
    assert header.tensors["b"].begin + 34 == len(whole)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(LoadFailed, match=r"cut\.gguf"):
            read_gguf_header(path)


def test_a_load_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(file_of(ARCHITECTURE, magic=b"abcd"))
    for name, reason in (("bad.gguf", "does not begin"), ("none.gguf", "There is no file")):
        with pytest.raises(LoadFailed, match=reason):
            load_model(str(tmp_path / name), LoadOptions(device_map="cpu"), lambda stage, share: None)
    (tmp_path / "folder.gguf").mkdir()
    with pytest.raises(LoadFailed, match="There is no file"):
        load_model(str(tmp_path / "folder.gguf"), LoadOptions(device_map="cpu"), lambda stage, share: None)


NAMES: dict[str, tuple[str, Any]] = {
    "./models/shop-q4_k_m.gguf": ("shop-q4_k_m", None),
    "C:\\models\\shop.gguf": ("shop", None),
    "owner/shop-GGUF:shop-q4_k_m.gguf": ("shop-q4_k_m", ("owner/shop-GGUF", "shop-q4_k_m.gguf")),
    "owner/shop-GGUF:Q4/shop.gguf": ("shop", ("owner/shop-GGUF", "Q4/shop.gguf")),
}


@pytest.mark.parametrize("repo", NAMES)
def test_clients_see_the_name_of_the_file(repo: str) -> None:
    name, in_repository = NAMES[repo]
    assert is_gguf(repo)
    assert entry_of([], repo).id == name
    assert file_in_repository(repo) == in_repository


def test_a_file_of_the_hub_is_found_where_its_downloads_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    commit = "a" * 40
    snapshot = tmp_path / "models--owner--shop-GGUF" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (refs := tmp_path / "models--owner--shop-GGUF" / "refs").mkdir()
    (refs / "main").write_text(commit)
    (snapshot / "shop.gguf").write_bytes(file_of(ARCHITECTURE))
    found = find_local_folder("owner/shop-GGUF:shop.gguf")
    assert found == snapshot / "shop.gguf"
    assert is_complete("owner/shop-GGUF:shop.gguf", HubSource())
    assert not is_complete("owner/shop-GGUF:other.gguf", HubSource())
    offline = LoadOptions(device_map="cpu", may_download=False)
    with pytest.raises(LoadFailed, match=r"shop\.gguf"):  # it is read: it has no tokenizer
        load_model("owner/shop-GGUF:shop.gguf", offline, lambda stage, share: None)
    with pytest.raises(LoadFailed, match=r"other\.gguf|tis download"):
        load_model("owner/shop-GGUF:other.gguf", offline, lambda stage, share: None)
