"""The fields of an entry in the catalogue: what each may be, and one line that says what is wrong."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, cast, get_args

from tis.engine.prompt import MediumKind
from tis.engine.sampling.params import validate_defaults
from tis.engine.text.markers import REASONING_FORMATS, TOOL_FORMATS
from tis.errors import BadRequest
from tis.network.url import NoUrl, read_url

Task = Literal["chat", "embedding", "rerank", "transcription", "speech"]
TASKS: tuple[Task, ...] = get_args(Task)
DType = Literal["auto", "float32", "bfloat16", "float16"]
PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
POOLING_MODES: tuple[PoolingMode, ...] = get_args(PoolingMode)
UpstreamKind = Literal["openai", "tis", "vllm", "sglang", "llama.cpp", "ollama", "transformers"]
MAX_UPSTREAMS = 64  # URLs of a model
MAX_ADAPTERS = 64  # of a model: all are in memory
MAX_VOICES = 1024
_MAX_SECONDS = 86_400
_REVISION = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class EntryLimits:
    """Of one model, in place of the setting of the same name; 0: as the setting says."""

    max_context_tokens: int = 0
    max_batch_size: int = 0
    max_queue_size: int = 0
    cache_tokens: int = 0


@dataclass(frozen=True, slots=True)
class UpstreamSeconds:
    """How long an engine elsewhere may take."""

    connect: float = 5
    first_token: float = 120
    next_token: float = 60
    answer: float = 3600  # all of it
    probe: float = 10  # between two looks at whether it answers


def checked_fields(name: str, written: Any) -> dict[str, Any]:
    """What `CatalogueEntry` takes. Raises ValueError with one line."""
    if not isinstance(written, dict) or not set(written) <= set(_CHECKS):
        *most, last = _CHECKS
        raise ValueError(f"{name} may have {', '.join(most)} and {last}, and nothing else.")
    return {field: _CHECKS[field](name, value) for field, value in written.items()}


def _one_of(field: str, allowed: tuple[str, ...]) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"{field} of {name} is one of {', '.join(allowed)}.")
        return cast(str, value)

    return check


def _text(field: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{field} of {name} is a text.")
        return value

    return check


def _revision(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _REVISION.fullmatch(value):
        raise ValueError(f"revision of {name} is a branch, a tag or a commit of its repository, as a text in quotes.")
    return value


def _handler(name: str, value: Any) -> str:
    if not isinstance(value, str) or not all(part.isidentifier() for part in value.split(".")) or "." not in value:
        raise ValueError(f"handler of {name} is a class by its path: package.module.ClassName.")
    return value


def _aliases(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise ValueError(f"aliases of {name} are a list of names.")
    return tuple(value)


def _adapters(name: str, value: Any) -> Mapping[str, str]:
    """The ids that clients use, and where each lies."""
    if not isinstance(value, dict) or not all(
        isinstance(part, str) and part.strip() for pair in value.items() for part in pair
    ):
        raise ValueError(f"adapters of {name} map the id of each to its folder or its hub id.")
    if len(value) > MAX_ADAPTERS:
        raise ValueError(f"{name} has {len(value)} adapters; a model may have {MAX_ADAPTERS}.")
    return value


def _voices(name: str, value: Any) -> Mapping[str, str | int]:
    """The names that clients use, and what the model calls each: a speaker's number, a preset, a file."""
    if not isinstance(value, dict) or not all(
        isinstance(voice, str) and voice.strip() and type(of_model) in (str, int) for voice, of_model in value.items()
    ):
        raise ValueError(f"voices of {name} map the name of each to the number, the preset or the file of its speaker.")
    if len(value) > MAX_VOICES:
        raise ValueError(f"{name} has {len(value)} voices; a model may have {MAX_VOICES}.")
    return value


def _memory_mb(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"memory_mb of {name} is a whole number of MiB, for its weights and its cache.")
    return value


def _defaults(name: str, value: Any) -> Mapping[str, Any]:
    try:
        return validate_defaults(value)
    except (TypeError, ValueError, BadRequest) as error:
        raise ValueError(f"defaults of {name}: {' '.join(str(error).split())}") from None


def _limits(name: str, value: Any) -> EntryLimits:
    known = [one.name for one in fields(EntryLimits)]
    if not isinstance(value, dict) or not set(value) <= set(known):
        raise ValueError(f"limits of {name} may have {', '.join(known)}, and nothing else.")
    if not all(type(number) is int and number > 0 for number in value.values()):
        raise ValueError(f"limits of {name} are whole numbers above 0.")
    return EntryLimits(**value)


def _upstream(name: str, value: Any) -> tuple[str, ...]:
    urls = [value] if isinstance(value, str) else value
    if not isinstance(urls, list) or not 0 < len(urls) <= MAX_UPSTREAMS:
        raise ValueError(f"upstream of {name} is a URL, or a list of up to {MAX_UPSTREAMS}.")
    try:
        for url in urls:
            read_url(url if isinstance(url, str) else "", any_port=True)
    except NoUrl:
        raise ValueError(f"upstream of {name} has an entry that is no http(s) URL, or has a password in it.") from None
    if len(set(urls)) < len(urls):
        raise ValueError(f"upstream of {name} names a URL twice.")
    return tuple(urls)


def _upstream_seconds(name: str, value: Any) -> UpstreamSeconds:
    known = [one.name for one in fields(UpstreamSeconds)]
    if not isinstance(value, dict) or not set(value) <= set(known):
        raise ValueError(f"upstream_seconds of {name} may have {', '.join(known)}, and nothing else.")
    if not all(type(number) in (int, float) and 0 < number <= _MAX_SECONDS for number in value.values()):
        raise ValueError(f"upstream_seconds of {name} are numbers above 0, up to a day.")
    return UpstreamSeconds(**value)


def _upstream_media(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(one in get_args(MediumKind) for one in value):
        raise ValueError(f"upstream_media of {name} is a list of {', '.join(get_args(MediumKind))}.")
    return tuple(value)


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "repo": _text("repo"),
    "revision": _revision,
    "task": _one_of("task", TASKS),
    "aliases": _aliases,
    "defaults": _defaults,
    "tool_format": _one_of("tool_format", TOOL_FORMATS),
    "reasoning_format": _one_of("reasoning_format", tuple(REASONING_FORMATS)),
    "dtype": _one_of("dtype", get_args(DType)),
    "pooling": _one_of("pooling", POOLING_MODES),
    "limits": _limits,
    "adapters": _adapters,
    "memory_mb": _memory_mb,
    "handler": _handler,
    "voices": _voices,
    "vocoder": _text("vocoder"),
    "draft_model": _text("draft_model"),
    "upstream": _upstream,
    "upstream_kind": _one_of("upstream_kind", get_args(UpstreamKind)),
    "upstream_model": _text("upstream_model"),
    "upstream_key_env": _text("upstream_key_env"),
    "upstream_key_file": _text("upstream_key_file"),
    "upstream_seconds": _upstream_seconds,
    "upstream_media": _upstream_media,
}
