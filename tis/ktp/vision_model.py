"""What the reader of cards needs of a vision model. `create_app` passes the engine, tests a few lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tis.admission.ticket import Ticket

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ReplyToken:
    data: bytes
    probability: float  # by the model itself, before the grammar
    overruled: float = 0.0  # the probability of likelier tokens, which the grammar forbade


class VisionModel(Protocol):
    async def served(self, *, is_chosen: bool) -> str | None:
        """The id of a model that can read cards; None if no served model can.

        `is_chosen`: the operator wants a model to read, so that it may be one that is too small to read well.
        """
        ...

    async def ask(
        self,
        model_id: str,
        picture: "NDArray[np.uint8]",
        prompt: str,
        schema: Mapping[str, Any],
        max_tokens: int,
        ticket: Ticket,
    ) -> Sequence[ReplyToken]:
        """A greedy answer that follows the schema, unless it is cut. Cancelled, it stops the model."""
        ...
