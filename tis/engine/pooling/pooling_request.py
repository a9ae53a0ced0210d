"""A request for vectors or scores in the engine: its rows, and the future that its reader waits for."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.pooling.token_row import TokenRow
from tis.engine.request import Delivery, QueuedRequest
from tis.engine.request_timing import RequestTiming
from tis.errors import ServiceError
from tis.observability.request_log import current_request_id


class PoolingRequest:
    """Made on the event loop; from then on the model's thread owns its rows and results, and the loop its future."""

    is_resumed = is_begun = False
    model_name = ""

    def __init__(
        self, rows: Sequence[TokenRow], on_cancel: Callable[[QueuedRequest], None], ticket: Ticket | None
    ) -> None:
        self.label = current_request_id()  # for the log
        self.rows = rows
        self.results: list[Any] = [None] * len(rows)
        self.num_left = len(rows)
        self.num_taken = 0  # rows that are computed, or being computed
        self.owner = ticket.owner if ticket else ""
        self.owner_share = ticket.owner_share if ticket else 1.0
        self.timing = RequestTiming(ticket, is_continued=False)
        self.answer: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
        self._on_cancel = on_cancel
        self._cancelled = threading.Event()

    @property
    def num_tokens(self) -> int:
        return sum(map(len, self.rows))

    @property
    def num_prompt_tokens(self) -> int:
        return self.num_tokens

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """The model's thread drops the request at its next step."""
        self._cancelled.set()
        self._on_cancel(self)

    def cancel_completions(self) -> list[Delivery]:
        """Nobody waits for it any more."""
        return []

    def receive(self, item: Any, now: float) -> None:
        """Called on the event loop: all results, or why there are none."""
        if self.answer.done():
            return
        if isinstance(item, ServiceError):
            self.timing.finished("error", item.code)
            self.answer.set_exception(item)
        else:
            self.timing.finished("stop")
            self.answer.set_result(item)
