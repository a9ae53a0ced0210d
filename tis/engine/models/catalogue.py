"""The models that may be served: `configs/model_config.yaml`, and the one that MODEL_REPO_ID names."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

import yaml

from tis.engine.models.description import read_object
from tis.engine.models.echo import is_echo
from tis.engine.models.entry_fields import (
    MAX_ADAPTERS,
    DType,
    EntryLimits,
    PoolingMode,
    Task,
    UpstreamKind,
    UpstreamSeconds,
    checked_fields,
)
from tis.engine.models.gguf_file import is_gguf
from tis.engine.prompt import MediumKind
from tis.engine.text.markers import ReasoningFormat, ToolFormat

_HEARING = ("WhisperForConditionalGeneration", "MoonshineForConditionalGeneration", "ForCTC")
_SPEAKING = (
    "VitsModel",
    "SpeechT5ForTextToSpeech",
    "BarkModel",
    "DiaForConditionalGeneration",
    "CsmForConditionalGeneration",
)
SEE_VIDEOS = ("tis", "vllm", "sglang", "transformers")  # kinds of upstreams: OpenAI's API has none
NO_FILES = "handler:"  # begins the repository of a model that is code alone
_ELSEWHERE = "upstream:"  # of a model that another engine serves


# Fields of an entry that say how this process computes it.
_OF_WEIGHTS = (
    *("repo", "revision", "tool_format", "reasoning_format", "dtype", "pooling", "adapters", "memory_mb", "handler"),
    *("vocoder", "draft_model"),
)


class CatalogueError(Exception):
    """What is wrong with the catalogue, in one line."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    id: str
    repo: str
    task: Task = "chat"
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of SamplingParams
    tool_format: ToolFormat | None = None  # None: detected from its chat template
    memory_mb: int = 0  # of weights and cache together; 0: a share of the machine
    revision: str | None = None  # branch, tag or commit of the repository; None: its main branch
    aliases: Sequence[str] = ()  # further names that requests may use
    reasoning_format: ReasoningFormat | None = None  # None: detected from its chat template
    dtype: DType | None = None  # None: as the setting says
    pooling: PoolingMode | None = None  # of an embedding model; None: as its files say
    limits: EntryLimits = EntryLimits()
    adapters: Mapping[str, str] = field(default_factory=dict)  # of LoRA: the id of each, and its folder or repository
    base: str | None = None  # of an adapter: the id of the model that it changes
    handler: str | None = None  # the path of a Python class that computes it: package.module.ClassName
    voices: Mapping[str, str | int] = field(default_factory=dict)  # the speaker behind each name; empty: as it has them
    vocoder: str | None = None  # folder or repository of what makes sound, for models that do not have it within
    draft_model: str | None = None  # folder or repository of a smaller model that drafts its answers
    upstream: Sequence[str] = ()  # base URLs of the engines that serve it, all the same; empty: this process does
    upstream_kind: UpstreamKind = "openai"
    upstream_model: str | None = None  # its name there; None: the same
    upstream_key_env: str | None = None  # the variable that has the key, which is never in the entry itself
    upstream_key_file: str | None = None
    upstream_seconds: UpstreamSeconds = UpstreamSeconds()
    upstream_media: Sequence[MediumKind] = ()  # what it takes beside text

    @property
    def parts(self) -> list[str]:
        """Folders and repositories that are loaded beside its own."""
        return [*self.adapters.values(), *filter(None, (self.vocoder, self.draft_model))]

    @property
    def has_files(self) -> bool:
        return not (is_echo(self.repo) or self.repo.startswith((NO_FILES, _ELSEWHERE)))

    def is_called(self, name: str | None) -> bool:
        return name is not None and name in (self.id, self.repo, *self.aliases)

    @property
    def adapter_entries(self) -> "list[CatalogueEntry]":
        """Each adapter is a model of its own for clients, with all else of its base."""
        return [
            replace(self, id=name, repo=place, revision=None, aliases=(), adapters={}, base=self.id)
            for name, place in self.adapters.items()
        ]


def bundled_catalogue() -> Path:
    """Installed, it lies inside the package; in a checkout, beside it."""
    package = Path(__file__).parents[2]
    inside = package / "configs" / "model_config.yaml"
    return inside if inside.exists() else package.parent / "configs" / "model_config.yaml"


def read_catalogue(path: Path) -> list[CatalogueEntry]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    models = document.get("models") if isinstance(document, dict) else None
    if not isinstance(models, dict):
        raise CatalogueError(f"{path} must have a mapping `models:` of id to entry.")
    entries = [_entry(path, str(name), written or {}) for name, written in models.items()]
    _require_clear_names(path, entries)
    return entries


def find_entry(catalogue: Iterable[CatalogueEntry], name: str) -> CatalogueEntry | None:
    """By id, alias, repository or folder; an id wins over another entry's repository."""
    by_name: dict[str, CatalogueEntry] = {}
    for entry in catalogue:
        by_name |= dict.fromkeys((entry.repo, entry.repo.removeprefix("./")), entry)
    for entry in catalogue:
        by_name |= dict.fromkeys((*entry.aliases, entry.id), entry)
    return by_name.get(name)


def entry_of(catalogue: Iterable[CatalogueEntry], name: str) -> CatalogueEntry:
    """The entry, or one for a repository or folder that is not in the catalogue."""
    return find_entry(list(catalogue), name) or CatalogueEntry(_public_name(name), name, _task_of(Path(name)))


def select_served(
    catalogue: Sequence[CatalogueEntry], main: str, others: Iterable[str] = (), main_id: str | None = None
) -> list[CatalogueEntry]:
    """Returns the served models, the main one first. `main` is a name of the catalogue, or neither.

    `main_id` replaces the id of the main model.
    """
    entry = entry_of(catalogue, main)
    entries = {(entry.id, entry.repo): replace(entry, id=main_id or entry.id)}
    for name in others:
        other = find_entry(catalogue, name)
        if other is None:
            raise CatalogueError(f"MODELS names {name!r}, which is not in the catalogue.")
        entries.setdefault((other.id, other.repo), other)
    served = list(entries.values())
    if any(served[0].id in (other.id, *other.aliases) for other in served[1:]):
        how = f"SERVED_MODEL_NAME={main_id!r}" if main_id else f"MODEL_REPO_ID={main!r} without SERVED_MODEL_NAME"
        raise CatalogueError(f"{how} means the id of another model, which MODELS names.")
    return served


def with_adapters(served: Sequence[CatalogueEntry], of_main: Mapping[str, str]) -> list[CatalogueEntry]:
    """Puts the adapters of each model behind it; `of_main` are further ones of the first model."""
    main, *others = served
    if of_main and main.task != "chat":
        raise CatalogueError(f"ADAPTERS are for the task chat, and {main.id} is of {main.task}.")
    main = replace(main, adapters={**main.adapters, **of_main})
    if len(main.adapters) > MAX_ADAPTERS:
        raise CatalogueError(f"{main.id} has {len(main.adapters)} adapters; a model may have {MAX_ADAPTERS}.")
    all_served = [one for entry in (main, *others) for one in (entry, *entry.adapter_entries)]
    seen: set[str] = set()
    for entry in all_served:
        if not seen.isdisjoint((entry.id, *entry.aliases)):
            raise CatalogueError(f"Two served models are called {entry.id}: give the adapter or the model another id.")
        seen |= {entry.id, *entry.aliases}
    return all_served


def with_draft_model(served: Sequence[CatalogueEntry], draft_model: str | None) -> list[CatalogueEntry]:
    """`draft_model`: of the first model, in place of what the catalogue says."""
    main, *others = served
    if not draft_model:
        return [main, *others]
    if main.task != "chat" or not main.has_files or main.handler:
        raise CatalogueError(f"DRAFT_MODEL is for models of weights with the task chat, which {main.id} is not.")
    return [replace(main, draft_model=draft_model), *others]


def _public_name(repo: str) -> str:
    """A hub id, or the name of a folder or file: clients must not see paths of the machine."""
    if is_gguf(repo):
        return PurePath(repo.replace("\\", "/").rpartition(":")[2]).stem
    path = repo.replace("\\", "/")
    is_folder = path.startswith((".", "/", "~")) or path.count("/") > 1 or path != repo or Path(repo).is_dir()
    return (os.path.basename(os.path.abspath(path)) or repo) if is_folder else repo


def _task_of(folder: Path) -> Task:
    """Of a model that is not in the catalogue: what its files say, if they are on this machine."""
    if (folder / "modules.json").exists():
        return "embedding"
    architectures = read_object(folder / "config.json").get("architectures")
    names = [str(name) for name in architectures] if isinstance(architectures, list) else []
    if any(name.endswith(_HEARING) for name in names):
        return "transcription"
    if any(name.endswith(_SPEAKING) for name in names):
        return "speech"
    return "rerank" if any(name.endswith("ForSequenceClassification") for name in names) else "chat"


def _entry(path: Path, name: str, written: Any) -> CatalogueEntry:
    try:
        checked = checked_fields(name, written)
        repo = NO_FILES + checked["handler"] if "handler" in checked else name
        repo = _ELSEWHERE + name if "upstream" in checked else repo
        entry = CatalogueEntry(name, **{"repo": repo, **checked})
    except ValueError as error:
        raise CatalogueError(f"{path}: {error}") from None
    if entry.adapters and (entry.task != "chat" or entry.handler):
        raise CatalogueError(f"{path}: {name} has adapters, which are for the task chat, without a handler.")
    if entry.handler and entry.task in ("transcription", "speech"):
        raise CatalogueError(f"{path}: {name} has a handler, which the task {entry.task} does not take.")
    if (entry.voices or entry.vocoder) and entry.task != "speech":
        raise CatalogueError(f"{path}: {name} has voices or a vocoder, which are for the task speech.")
    if entry.draft_model and (entry.task != "chat" or not entry.has_files or entry.handler):
        raise CatalogueError(f"{path}: {name} has a draft_model, which is for the task chat, without a handler.")
    _check_upstream(path, entry, checked)
    if entry.pooling and entry.task != "embedding":
        raise CatalogueError(f"{path}: pooling of {name} is for the task embedding, and it is of {entry.task}.")
    return entry


def _check_upstream(path: Path, entry: CatalogueEntry, checked: Mapping[str, Any]) -> None:
    name = entry.id
    if not entry.upstream and (stray := next((one for one in checked if one.startswith("upstream_")), None)):
        raise CatalogueError(f"{path}: {name} has {stray}, which is for entries with an upstream.")
    if entry.upstream and (stray := next((one for one in _OF_WEIGHTS if one in checked), None)):
        raise CatalogueError(f"{path}: {name} has an upstream, so {stray} is not for it.")
    if "video" in entry.upstream_media and entry.upstream_kind not in SEE_VIDEOS:
        raise CatalogueError(f"{path}: {name} has videos in upstream_media, which are for {', '.join(SEE_VIDEOS)}.")
    if entry.upstream_key_env and entry.upstream_key_file:
        raise CatalogueError(f"{path}: {name} has upstream_key_env and upstream_key_file: one is enough.")


def _require_clear_names(path: Path, entries: Sequence[CatalogueEntry]) -> None:
    owners = {entry.id: entry.id for entry in entries}
    for entry in entries:
        for alias in entry.aliases:
            if owners.setdefault(alias, entry.id) != entry.id:
                raise CatalogueError(f"{path}: the alias {alias} of {entry.id} is a name of {owners[alias]}, too.")
