"""A request in the engine: its completions, and the answer that their pieces are delivered to."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer, Piece
from tis.engine.completion import Completion
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request_timing import RequestTiming
from tis.errors import ServiceError
from tis.observability.model_metrics import FinishedReason
from tis.observability.request_log import current_request_id


class QueuedRequest(Protocol):
    """What the queue and the worker of a model need to know, whatever the model makes."""

    label: str
    owner: str
    owner_share: float
    timing: RequestTiming

    @property
    def model_name(self) -> str:
        """Of the catalogue; empty: that of its slot."""
        ...

    @property
    def num_prompt_tokens(self) -> int: ...

    @property
    def is_resumed(self) -> bool: ...

    @property
    def is_begun(self) -> bool:
        """Part of an answer that has begun: it is never refused, but waits for its turn."""
        ...

    def cancel_completions(self) -> list["Delivery"]:
        """What readers get when a request leaves before its end."""
        ...

    def receive(self, item: Any, now: float) -> None:
        """Called on the event loop, with what a step made or why nothing more comes; `now` is one time for the step."""
        ...


class Request:
    """Made on the event loop; from then on the model's thread owns its completions, and the loop its answer."""

    is_begun = False

    def __init__(
        self,
        prepared: PreparedRequest,
        on_cancel: "Callable[[Request], None]" = lambda request: None,
        completions: list[Completion] | None = None,
        *,
        begun: list[Completion] | None = None,
        is_resumed: bool = False,
        ticket: Ticket | None = None,
        new_answer: Callable[[int, Callable[[], None]], Answer] = Answer,
    ) -> None:
        """`completions`: of a resumed request, replayed up to what clients have; `begun`: of a new one."""
        self.prepared = prepared
        self.label = current_request_id()  # for the log
        self.is_resumed = is_resumed or completions is not None  # part of an answer that was accepted before
        self.completions = completions or begun or [Completion(index, prepared) for index in range(prepared.params.n)]
        self.owner = ticket.owner if ticket else ""
        self.owner_share = ticket.owner_share if ticket else 1.0
        self.timing = RequestTiming(ticket, is_continued=completions is not None)
        self.answer = new_answer(len(self.unfinished), self.cancel)
        self._num_open = len(self.unfinished)
        self._on_cancel = on_cancel
        self._cancelled = threading.Event()

    @property
    def model_name(self) -> str:
        return self.prepared.model_id

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.prompt_ids)

    @property
    def prompt_ids(self) -> list[int]:
        return self.prepared.prompt_ids

    @property
    def unfinished(self) -> list[Completion]:
        return [completion for completion in self.completions if not completion.is_finished]

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Callable from any thread. The model's thread drops the request at its next step."""
        self._cancelled.set()
        self._on_cancel(self)

    def cancel_completions(self) -> list["Delivery"]:
        return [(self, completion.cancel()) for completion in self.unfinished]

    def receive(self, item: Piece | ServiceError, now: float) -> None:
        if isinstance(item, ServiceError):
            self.timing.finished("error", item.code)
        else:
            if item.token_ids:
                self.timing.tokens(len(item.token_ids), now, self.answer.cached_tokens)
            if item.finish:
                self._num_open -= 1
                reason: FinishedReason = "abort" if item.finish == "cancelled" else item.finish
                self.timing.finished(reason, is_last=self._num_open == 0)
        self.answer.put(item)


Delivery = tuple[QueuedRequest, Any]
# Sends what a step made to the readers. A step calls it once, however many requests took part.
HandOut = Callable[[Sequence[Delivery]], None]


def deliver(deliveries: Sequence[Delivery]) -> None:
    """Called on the event loop."""
    now = time.monotonic()
    for request, item in deliveries:
        request.receive(item, now)
