"""A request that an upstream answers at once: vectors, scores, what it heard in a window."""

from collections.abc import Awaitable, Callable
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.future_request import FutureRequest
from tis.engine.request import QueuedRequest
from tis.upstream.http_client import UpstreamHttp


class WholeRequest(FutureRequest[Any]):
    def __init__(
        self,
        ask: Callable[[UpstreamHttp], Awaitable[Any]],
        on_cancel: Callable[[QueuedRequest], None],
        ticket: Ticket | None,
        *,
        num_tokens: int = 0,
        is_begun: bool = False,
    ) -> None:
        """`ask`: asks one upstream; it may be called again, for another one."""
        super().__init__(on_cancel, ticket, is_begun=is_begun)
        self.ask = ask
        self._num_tokens = num_tokens

    @property
    def num_prompt_tokens(self) -> int:
        return self._num_tokens
