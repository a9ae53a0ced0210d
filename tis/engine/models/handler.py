"""Models that Python code of the operator computes: the `handler` of a catalogue entry.

The class is made once for each load, with its entry and the folder of its files, in a thread that may take minutes. It
has the method of its task; the thread of the model calls it, one call at a time. docs/many-models.md has an example.
"""

import importlib
import importlib.util
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.entry_fields import Task

# Another process may have other code under this name, so it does not resume answers of this one.
REVISION = f"handler {uuid.uuid4().hex}"
_METHODS: Mapping[Task, str] = {"chat": "generate", "embedding": "embed", "rerank": "score"}


class ModelHandler(Protocol):
    """What every handler has. What it does not have counts as the default that is named here."""

    def __init__(self, entry: CatalogueEntry, folder: Path | None) -> None:
        """`folder` has the files of `repo`; None if the entry names no `repo`. What it raises ends the load."""
        ...

    def close(self) -> None:
        """Optional. The model is unloaded."""
        ...


class ChatHandler(ModelHandler, Protocol):
    def generate(self, messages: Sequence[Mapping[str, Any]], sampling: Mapping[str, Any]) -> Iterator[str]:
        """Yields the answer piece by piece; each piece counts as a token. It is closed when nobody needs more.

        `sampling` has temperature, top_p, top_k, max_tokens, stop and seed. The server itself ends the answer after
        max_tokens pieces and at a stop string.
        """
        ...


class EmbeddingHandler(ModelHandler, Protocol):
    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, all of the same length."""
        ...


class RerankHandler(ModelHandler, Protocol):
    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """How well the second text of each pair answers the first."""
        ...


def why_not_importable(path: str) -> str | None:
    """Looks for the module without running it."""
    module, _, name = path.rpartition(".")
    try:
        found = importlib.util.find_spec(module) if module and name.isidentifier() else None
    except (ImportError, ValueError) as error:
        return f"{path} cannot be imported: {error}"
    return None if found else f"there is no module {module!r} on the Python path (PYTHONPATH)"


def make_handler(entry: CatalogueEntry, folder: Path | None) -> Any:
    path = entry.handler or ""
    module, _, name = path.rpartition(".")
    try:
        made = getattr(importlib.import_module(module), name)(entry, folder)
    except Exception as error:
        raise LoadFailed(f"The handler {path} could not be made: {type(error).__name__}: {error}") from error
    method = _METHODS[entry.task]
    if not callable(getattr(made, method, None)):
        raise LoadFailed(f"The handler {path} has no method {method}(), which the task {entry.task} needs.")
    return made


def reference_to(handler: Any) -> "weakref.ref[Any] | None":
    try:
        return weakref.ref(handler)
    except TypeError:  # its class has `__slots__`
        return None


def limit_of(handler: Any, default: int) -> int:
    """`max_characters` of the handler: of a prompt and its answer, or of a text."""
    limit = getattr(handler, "max_characters", default)
    if type(limit) is not int or limit < 1:
        raise LoadFailed("max_characters of a handler is a whole number above 0.")
    return limit
