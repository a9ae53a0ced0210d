"""What a request says that nothing follows: hints that the model has no use for, and fields that nobody knows.

Neither fails. The client reads their names in the header `X-Ignored-Parameters`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args
from urllib.parse import quote

from fastapi import Request, Response
from pydantic import BaseModel

from tis.engine.engine import Engine
from tis.engine.models.description import ModelDescription
from tis.http.scanned_route import in_thread_if, is_large_body

IGNORED_PARAMETERS = "X-Ignored-Parameters"
_MAX_NAMES = 32
_MAX_NAME_CHARS = 64
# Hints whose name in the body depends on the API, by what a model must follow.
_EFFORTS = ("reasoning_effort", "reasoning.effort", "output_config.effort")
_VERBOSITIES = ("verbosity", "text.verbosity")
# Values that ask for what the server does anyway.
_AS_IT_IS: Mapping[str, Sequence[Any]] = {
    "service_tier": ("auto", "default", "standard_only"),
    "speed": ("standard",),
}


async def name_ignored(
    response: Response,
    request: Request,
    body: BaseModel,
    engine: Engine,
    model_id: str,
    no_effect: Sequence[str] = (),
    also: Sequence[str] = (),
) -> Response:
    """Adds the header. `no_effect`: known fields that change nothing. `also`: what this request says in vain."""
    given = await request.json()
    given = {name: value for name, value in given.items() if value not in _AS_IT_IS.get(name, ())}
    names = await in_thread_if(is_large_body(request), lambda: dict.fromkeys(_unknown(given, (type(body),))))
    names |= dict.fromkeys(name for name in no_effect if given.get(name) is not None)
    names |= dict.fromkeys(also)
    hinted = [name for name in (*_EFFORTS, *_VERBOSITIES) if _value(given, name) is not None]
    if hinted:
        known = await engine.describe(model_id)
        names |= dict.fromkeys(name for name in hinted if not _follows(known, body, name))
    return name_in_header(response, list(names))


def name_in_header(response: Response, names: Sequence[str]) -> Response:
    if names:
        short = [_printable(name) for name in names[:_MAX_NAMES]]
        response.headers[IGNORED_PARAMETERS] = ", ".join(short)
    return response


def _printable(name: str) -> str:
    """JSON allows half a surrogate in a name; no encoding has it."""
    return quote(name[:_MAX_NAME_CHARS], safe="._-$", errors="replace")[:_MAX_NAME_CHARS]


def _follows(known: ModelDescription, body: BaseModel, name: str) -> bool:
    """A value that the field does not have is none in the body."""
    if _value(body, name) is None:
        return False
    return known.follows_effort if name in _EFFORTS else known.follows_verbosity


def _value(given: Any, path: str) -> Any:
    for name in path.split("."):
        given = given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
    return given


def _unknown(given: Mapping[str, Any], models: Sequence[type[BaseModel]], path: str = "") -> Iterator[str]:
    """Null means absent. The messages of a large body are validated before; their fields are not looked at."""
    fields = [_fields(model) for model in models]
    takes_any = any(model.model_config.get("extra") == "allow" for model in models)
    for name, value in given.items():
        inner = [model for known in fields for model in known.get(name, ())]
        if not any(name in known for known in fields):
            if value is not None and not takes_any:
                yield path + name
        elif inner:
            for entry in value if isinstance(value, list) else [value]:
                if isinstance(entry, Mapping):
                    yield from _unknown(entry, inner, f"{path}{name}.")


@cache
def _fields(model: type[BaseModel]) -> Mapping[str, Sequence[type[BaseModel]]]:
    """The fields by their names in JSON, each with the models in it."""
    return {field.alias or name: tuple(_models_in([field.annotation])) for name, field in model.model_fields.items()}


def _models_in(annotations: Iterable[Any]) -> Iterator[type[BaseModel]]:
    for annotation in annotations:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        else:
            yield from _models_in(get_args(annotation))
