"""Namespaces of the Responses API: tools under a common name. To the model, that begins the names of its functions."""

from collections.abc import Iterator, Mapping
from typing import Any

from tis.errors import BadRequest
from tis.openai_api.store.items import Item

_MAX_NAME_CHARS = 64  # of a function, as the model knows it


def name_in_namespace(namespace: str, name: str) -> str:
    return f"{namespace}__{name}"


def name_for_model(item: Item) -> str:
    """Of the tool that a call is of."""
    name, namespace = str(item["name"]), item.get("namespace")
    return name_in_namespace(namespace, name) if namespace else name


def namespace_of(item: Mapping[str, Any]) -> Item:
    """As a field of the call's item, which has none outside of a namespace."""
    given = item.get("namespace")
    return {"namespace": given} if isinstance(given, str) and given else {}


def with_members(tool: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tools in a namespace, each with its place in the request."""
    members = tool.get("tools")
    if not isinstance(members, list) or not all(isinstance(one, dict) for one in members):
        raise BadRequest(f"{where}.tools must be a list of tools.", param=f"{where}.tools", code="invalid_type")
    for position, one in enumerate(members):
        place = f"{where}.tools.{position}"
        if one.get("type") not in ("function", "custom"):
            raise BadRequest(
                f"{place}: a namespace has functions and custom tools.", param=f"{place}.type", code="unsupported_value"
            )
        yield place, one


def as_own_tool(namespace: Mapping[str, Any], member: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A tool of a namespace, checked, as one that stands alone."""
    name = name_in_namespace(namespace["name"], member["name"])
    if len(name) > _MAX_NAME_CHARS:
        raise BadRequest(
            f"{where}.name: with its namespace and two _ between, a name has at most {_MAX_NAME_CHARS} characters.",
            param=f"{where}.name",
        )
    if not isinstance(member["description"], str | None):
        param = f"{where}.description"
        raise BadRequest(f"{param} must be a string.", param=param, code="invalid_type")
    texts = [text for text in (namespace["description"], member["description"]) if text]
    return {**member, "name": name, "description": "\n".join(texts) or None}
