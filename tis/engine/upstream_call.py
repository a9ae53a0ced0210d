"""A request for an engine elsewhere: what is sent there, in place of the tokens of a prompt."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

_MAX_TOKENS_OF_ESTIMATED = 4
_MAX_TEMPLATE_TOKENS = 4096


def beyond_estimate(estimate: int, num_counted: int) -> int:
    """Tokens of a prompt that its engine has counted at the end. A token has at least a byte, whatever it says."""
    return max(0, min(num_counted, _MAX_TOKENS_OF_ESTIMATED * estimate + _MAX_TEMPLATE_TOKENS) - estimate)


@dataclass(frozen=True, slots=True)
class UpstreamCall:
    path: str  # below the base URL
    body: dict[str, Any]  # without media: `tis.upstream` puts their bytes in where it is sent
    num_prompt_tokens: int
    is_estimate: bool = False  # nobody could count the prompt before it was answered
    unset: tuple[str, ...] = ()  # sampling parameters that nothing sets: the upstream has defaults of its own

    def to_json(self) -> Mapping[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
