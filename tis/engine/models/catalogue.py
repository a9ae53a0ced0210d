"""The models that may be served: `configs/model_config.yaml`, and the one that MODEL_REPO_ID names."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from tis.engine.models.description import read_object
from tis.engine.sampling.params import validate_defaults
from tis.engine.text.markers import TOOL_FORMATS, ToolFormat
from tis.errors import BadRequest

Task = Literal["chat", "embedding", "rerank"]
TASKS: tuple[Task, ...] = get_args(Task)


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
    return [_entry(path, str(name), fields or {}) for name, fields in models.items()]


def select_served(
    catalogue: Iterable[CatalogueEntry], main: str, others: Iterable[str] = (), main_id: str | None = None
) -> list[CatalogueEntry]:
    """Returns the served models, the main one first. `main` is an id or a repository of the catalogue, or neither.

    `main_id` replaces the id of the main model.
    """
    by_name = {name: entry for entry in catalogue for name in (entry.repo, entry.repo.removeprefix("./"), entry.id)}
    entry = by_name.get(main) or CatalogueEntry(_public_name(main), main, _task_of(Path(main)))
    entries = {(entry.id, entry.repo): replace(entry, id=main_id or entry.id)}
    for name in others:
        if name not in by_name:
            raise CatalogueError(f"MODELS names {name!r}, which is not in the catalogue.")
        entries.setdefault((by_name[name].id, by_name[name].repo), by_name[name])
    served = list(entries.values())
    if served[0].id in [other.id for other in served[1:]]:
        how = f"SERVED_MODEL_NAME={main_id!r}" if main_id else f"MODEL_REPO_ID={main!r} without SERVED_MODEL_NAME"
        raise CatalogueError(f"{how} means the id of another model, which MODELS names.")
    return served


def _public_name(repo: str) -> str:
    """A hub id, or the name of a folder: clients must not see paths of the machine."""
    path = repo.replace("\\", "/")
    is_folder = path.startswith((".", "/", "~")) or path.count("/") > 1 or path != repo or Path(repo).is_dir()
    return (os.path.basename(os.path.abspath(path)) or repo) if is_folder else repo


def _task_of(folder: Path) -> Task:
    """Of a model that is not in the catalogue: what its files say, if they are on this machine."""
    if (folder / "modules.json").exists():
        return "embedding"
    architectures = read_object(folder / "config.json").get("architectures")
    names = architectures if isinstance(architectures, list) else []
    return "rerank" if any(str(name).endswith("ForSequenceClassification") for name in names) else "chat"


def _entry(path: Path, name: str, fields: Any) -> CatalogueEntry:
    if not isinstance(fields, dict) or not set(fields) <= {"repo", "task", "defaults", "tool_format", "memory_mb"}:
        raise CatalogueError(
            f"{path}: {name} may have repo, task, defaults, tool_format and memory_mb, and nothing else."
        )
    memory_mb = fields.get("memory_mb", 0)
    if type(memory_mb) is not int or memory_mb < 0:
        raise CatalogueError(f"{path}: memory_mb of {name} is a whole number of MiB, for its weights and its cache.")
    task = fields.get("task", "chat")
    if task not in TASKS:
        raise CatalogueError(f"{path}: task of {name} is one of {', '.join(TASKS)}.")
    tool_format = fields.get("tool_format")
    if tool_format not in (None, *TOOL_FORMATS):
        raise CatalogueError(f"{path}: tool_format of {name} is one of {', '.join(TOOL_FORMATS)}.")
    try:
        defaults = validate_defaults(fields.get("defaults", {}))
    except (TypeError, ValueError, BadRequest) as error:
        raise CatalogueError(f"{path}: defaults of {name}: {' '.join(str(error).split())}") from None
    return CatalogueEntry(name, str(fields.get("repo", name)), task, defaults, tool_format, memory_mb)
