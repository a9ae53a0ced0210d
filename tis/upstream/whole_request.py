"""A request that an upstream answers at once: vectors, scores, what it heard in a window, a sentence that it says."""

from collections.abc import Awaitable, Callable
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.future_request import FutureRequest
from tis.engine.request import QueuedRequest
from tis.engine.request_timing import RequestTiming
from tis.upstream.http_client import UpstreamHttp

CountMade = Callable[[RequestTiming, Any, float], None]


class WholeRequest(FutureRequest[Any]):
    def __init__(
        self,
        ask: Callable[[UpstreamHttp], Awaitable[Any]],
        on_cancel: Callable[[QueuedRequest], None],
        ticket: Ticket | None,
        *,
        num_tokens: int = 0,
        is_begun: bool = False,
        count_made: CountMade | None = None,
    ) -> None:
        """`ask`: asks one upstream; it may be called again, for another one.

        `count_made`: counts the tokens of an answer that has some.
        """
        super().__init__(on_cancel, ticket, is_begun=is_begun)
        self.ask = ask
        self._num_tokens = num_tokens
        self._count_made = count_made

    @property
    def num_prompt_tokens(self) -> int:
        return self._num_tokens

    def count(self, made: Any, now: float) -> None:
        if self._count_made:
            self._count_made(self.timing, made, now)
