"""Messages and blocks of large bodies are validated by calls that are too short to hold up the other threads."""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from tis.anthropic_api.wire import messages_request
from tis.anthropic_api.wire.messages_request import MessagesRequest
from tis.openai_api.wire.slices import SLICE_COST

TEXT = {"type": "text", "text": "x"}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [TEXT] * 4000}
DOCUMENT = {"type": "document", "source": {"type": "content", "content": [TEXT] * 4000}}
DEEP: dict[str, Any] = TEXT
for _ in range(60):
    DEEP = {"type": "tool_result", "tool_use_id": "t", "content": [DEEP, *[TEXT] * 50]}
BODIES: dict[str, dict[str, Any]] = {
    "results": {"messages": [{"role": "user", "content": [RESULT] * 3}]},
    "documents": {"messages": [{"role": "user", "content": [DOCUMENT, RESULT]}]},
    "levels": {"messages": [{"role": "user", "content": [DEEP]}]},
    "system": {"system": [TEXT] * 4000, "messages": [{"role": "user", "content": "x"}] * 5000},
    "small": {"system": "x", "messages": [{"role": "user", "content": [TEXT]}]},
}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of entries that are validated in one call."""
    found: list[int] = []
    for name in ("_MESSAGES", "_BLOCKS"):
        validate = getattr(messages_request, name).validate_python

        def measured(some: list[Any], validate: Any = validate) -> Any:
            found.append(num_raw(some))
            return validate(some)

        monkeypatch.setattr(messages_request, name, SimpleNamespace(validate_python=measured))
    return found


def num_raw(value: Any) -> int:
    """Those that are validated already cost nothing."""
    if isinstance(value, list):
        return sum(isinstance(one, dict) for one in value) + sum(map(num_raw, value))
    return sum(map(num_raw, value.values())) if isinstance(value, dict) else 0


@pytest.mark.parametrize("name", BODIES)
def test_no_call_validates_many(sizes: list[int], name: str) -> None:
    prepared = MessagesRequest.prepare_large(BODIES[name])
    assert sizes and max(sizes) <= 2 * SLICE_COST
    assert num_raw(prepared) == 0
    assert MessagesRequest.model_validate(prepared) == MessagesRequest.model_validate(BODIES[name])


@pytest.mark.parametrize("name", ["results", "documents"])
def test_what_is_wrong_is_found_where_it_is(sizes: list[int], name: str) -> None:
    """What stands behind it is not validated."""
    [message] = BODIES[name]["messages"]
    first, *others = message["content"]
    body = {"messages": [{**message, "content": [first, {"type": 1}, *others, *others]}]}
    prepared = MessagesRequest.prepare_large(body)
    with pytest.raises(ValidationError) as expected:
        MessagesRequest.model_validate(body)
    with pytest.raises(ValidationError) as found:
        MessagesRequest.model_validate(prepared)
    assert found.value.errors(include_input=False) == expected.value.errors(include_input=False)
    assert max(sizes) <= 2 * SLICE_COST
