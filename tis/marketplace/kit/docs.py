"""Examples for /docs: how OpenAPI wants them. The examples themselves stand beside the schemas of each room."""

from collections.abc import Mapping
from typing import Any

from fastapi import Body
from pydantic import ConfigDict

Responses = dict[int | str, dict[str, Any]]
STALE_VERSION = {412: "It was changed meanwhile: it is version 2 now."}
KEY_USED = {422: "This Idempotency-Key was used for another request."}


def schema_example(example: Any) -> ConfigDict:
    """For `model_config`."""
    return ConfigDict(json_schema_extra={"example": example})


def body_example(example: Any) -> dict[str, Any]:
    """For `Body(openapi_examples=...)`."""
    return {"example": {"summary": "Example", "value": example}}


def example_body(example: Any) -> Any:
    """For `Annotated[..., example_body(...)]`, the body of a route."""
    return Body(openapi_examples=body_example(example))


def responses(example: Any, *errors: Mapping[int, str]) -> Responses:
    """For `responses=` of a route; `errors` map a status to its `detail`."""
    documented: Responses = {200: json_example("OK", example)}
    for error in errors:
        documented |= {status: json_example(detail, {"detail": detail}) for status, detail in error.items()}
    return documented


def json_example(description: str, example: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"example": example}}}
