"""A request for vectors or scores in the engine, and the rows that it has."""

from collections.abc import Callable, Sequence
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.future_request import FutureRequest
from tis.engine.pooling.token_row import TokenRow
from tis.engine.request import QueuedRequest


class PoolingRequest(FutureRequest[Sequence[Any]]):
    """The model's thread owns its rows and results."""

    def __init__(
        self, rows: Sequence[TokenRow], on_cancel: Callable[[QueuedRequest], None], ticket: Ticket | None
    ) -> None:
        super().__init__(on_cancel, ticket)
        self.rows = rows
        self.results: list[Any] = [None] * len(rows)
        self.num_left = len(rows)
        self.num_taken = 0  # rows that are computed, or being computed

    @property
    def num_tokens(self) -> int:
        return sum(map(len, self.rows))

    @property
    def num_prompt_tokens(self) -> int:
        return self.num_tokens
