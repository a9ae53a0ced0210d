"""What clients may know of a model: from the model itself once it is loaded, before that from its small files."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tis.engine.errors import LoadFailed
from tis.engine.models.echo import CONTEXT_LENGTH, EchoOptions, is_echo
from tis.engine.models.gguf_file import read_gguf_header
from tis.engine.models.hub_files import find_local_folder
from tis.engine.models.loaded_model import LoadedModel, LoadedWeights
from tis.engine.prompt import MediumKind
from tis.engine.text.markers import detect_markers
from tis.engine.vision.hearing_families import HEARING_FAMILIES
from tis.engine.vision.preprocessor_config import has_preprocessor
from tis.engine.vision.qwen_family import QWEN_FAMILIES

_MAX_FILE_BYTES = 32 * 2**20
_EFFORT_NAMES = {"reasoning_effort", "enable_thinking", "thinking"}  # in chat templates
_CONTEXT_NAMES = ("max_position_embeddings", "n_positions")


@runtime_checkable
class TemplateTokenizer(Protocol):
    @property
    def template(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ModelDescription:
    context_length: int | None = None  # of the model; None: not known before it is loaded
    media: Collection[MediumKind] = ()  # beside text
    calls_tools: bool = False
    reasons: bool = False
    follows_effort: bool = False  # `reasoning_effort` changes something
    follows_verbosity: bool = False
    has_grammars: bool = False
    chat_template: str = ""  # all of them, if there are several
    weights_time: float | None = None  # when the weights file was written, in seconds since 1970
    weights_bytes: int | None = None  # of its safetensors files; None: not known
    voices: Sequence[str] = ()  # of a model that speaks, once it is loaded
    takes_instructions: bool = False  # how to speak
    takes_seed: bool = True  # of a speech: the same one makes the same sound


def describe_loaded(model: LoadedWeights) -> ModelDescription:
    if not isinstance(model, LoadedModel):
        return ModelDescription(
            model.context_length,
            weights_time=model.weights_time,
            weights_bytes=model.weights_bytes,
            voices=model.voices,
            media=model.media,
        )
    return ModelDescription(
        context_length=model.context_length,
        media=model.vision.kinds if model.vision else (),
        calls_tools="tools" in model.template_variables,
        reasons=model.markers.reasoning is not None,
        follows_effort=model.markers.reasoning is not None or bool(_EFFORT_NAMES & model.template_variables),
        follows_verbosity="verbosity" in model.template_variables,
        has_grammars=model.grammars is not None,
        chat_template=model.tokenizer.template if isinstance(model.tokenizer, TemplateTokenizer) else "",
        weights_time=model.weights_time,
        weights_bytes=model.weights_bytes,
    )


def describe_unloaded(repo: str, revision: str | None = None) -> ModelDescription:
    """Blocks while it reads files. Knows nothing of a model that is not on this machine."""
    if is_echo(repo):
        thinks = EchoOptions.from_repo(repo).thinks
        return ModelDescription(CONTEXT_LENGTH, calls_tools=True, reasons=thinks, follows_effort=thinks)
    folder = find_local_folder(repo, revision)
    if folder and folder.is_file():
        return _describe_gguf(folder, folder.stat().st_mtime, folder.stat().st_size)
    config = read_object(folder / "config.json") if folder else {}
    if folder is None or not config:
        return ModelDescription()
    return replace(
        _of_template(_template(folder)),
        context_length=_context_length(config),
        media=_media(folder, config),
        has_grammars=(folder / "tokenizer.json").exists(),
        weights_time=weights_time_of(folder),
        weights_bytes=weights_bytes_of(folder),
    )


@lru_cache(maxsize=16)
def _describe_gguf(path: Path, changed_at: float, num_bytes: int) -> ModelDescription:
    try:
        header = read_gguf_header(path)
    except LoadFailed:  # the load reports the reason
        return ModelDescription()
    template = header.metadata.get("tokenizer.chat_template")
    template = template if isinstance(template, str) else ""
    length = header.of_architecture("context_length")
    return replace(
        _of_template(template),
        context_length=length if isinstance(length, int) else None,
        has_grammars=True,
        weights_time=changed_at,
        weights_bytes=num_bytes,
    )


def _of_template(template: str) -> ModelDescription:
    words = set(re.findall(r"\w+", template))
    reasons = detect_markers(template, {}).reasoning is not None
    return ModelDescription(
        calls_tools="tools" in words,
        reasons=reasons,
        follows_effort=reasons or bool(_EFFORT_NAMES & words),
        follows_verbosity="verbosity" in words,
        chat_template=template,
    )


def weights_time_of(folder: Path) -> float | None:
    if folder.is_file():
        return folder.stat().st_mtime
    return max((path.stat().st_mtime for path in folder.glob("*.safetensors")), default=None)


def weights_bytes_of(folder: Path) -> int | None:
    if folder.is_file():
        return folder.stat().st_size
    return sum(path.stat().st_size for path in folder.glob("*.safetensors")) or None


def _context_length(config: Mapping[str, Any]) -> int | None:
    text_config = config.get("text_config")
    for section in (text_config, config) if isinstance(text_config, dict) else (config,):
        for name in _CONTEXT_NAMES:
            if isinstance(section.get(name), int):
                return int(section[name])
    return None


def _media(folder: Path, config: Mapping[str, Any]) -> Collection[MediumKind]:
    if not has_preprocessor(folder):
        return ()
    if config.get("model_type") in HEARING_FAMILIES:
        return {"audio"}
    if "vision_config" not in config:
        return ()
    kinds: set[MediumKind] = {"image"}
    if config.get("model_type") in QWEN_FAMILIES:
        kinds.add("video")
    if config.get("audio_config") and config.get("audio_token_id") is not None:
        kinds.add("audio")
    return kinds


def _template(folder: Path) -> str:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        template = read_object(folder / name).get("chat_template")
        if template:  # a tokenizer may have several templates, by name
            return template if isinstance(template, str) else json.dumps(template)
    return ""


def read_object(path: Path) -> Mapping[str, Any]:
    """Empty if the file is missing or invalid: the load reports the reason."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:  # to open a FIFO may wait for ever
            return {}
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
