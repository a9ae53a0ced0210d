"""A request whose answer comes at once, as a future: vectors, a window that was heard, a sentence that was spoken."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tis.admission.ticket import Ticket
from tis.engine.request import Delivery, QueuedRequest
from tis.engine.request_timing import RequestTiming
from tis.errors import ServiceError
from tis.observability.request_log import current_request_id

Made = TypeVar("Made")


class FutureRequest(Generic[Made]):
    """Made on the event loop, which owns its future; the model's thread has the rest."""

    is_resumed = False
    model_name = ""

    def __init__(
        self, on_cancel: Callable[[QueuedRequest], None], ticket: Ticket | None, *, is_begun: bool = False
    ) -> None:
        self.is_begun = is_begun
        self.label = current_request_id()  # for the log
        self.owner = ticket.owner if ticket else ""
        self.owner_share = ticket.owner_share if ticket else 1.0
        self.timing = RequestTiming(ticket, is_continued=False)
        self.answer: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        self._on_cancel = on_cancel
        self._cancelled = threading.Event()

    @property
    def num_prompt_tokens(self) -> int:
        return 0

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """The model's thread drops the request before its next step."""
        self._cancelled.set()
        self._on_cancel(self)

    def cancel_completions(self) -> list[Delivery]:
        """Nobody waits for it any more."""
        return []

    def receive(self, item: Any, now: float) -> None:
        """Called on the event loop, with what was made or a ServiceError."""
        if self.answer.done():
            return
        if isinstance(item, ServiceError):
            self.timing.finished("error", item.code)
            self.answer.set_exception(item)
            return
        self.count(item, now)
        self.timing.finished("stop")
        self.answer.set_result(item)

    def count(self, made: Made, now: float) -> None:
        """Counts its tokens, of a kind that has some."""
