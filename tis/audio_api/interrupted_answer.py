"""A recorded answer that another process began and none can continue."""

from collections.abc import AsyncGenerator, Mapping, Sequence

from tis.engine.errors import GenerationInterrupted
from tis.openai_api.wire.chat_writer import error_event
from tis.streaming.source import Block
from tis.streaming.stores.store import Status


class InterruptedAnswer:
    """One that ends here, with the reason."""

    is_waiting_to_resume = False
    may_be_repeated = True
    outcome: Status = "failed"
    request = b""
    summary = b"{}"
    attachments: Mapping[str, bytes] = {}
    traceparent = ""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        raise GenerationInterrupted(self._reason)
        yield  # what makes it a generator

    def cancel(self) -> None:
        pass

    def failure(self, error: Exception) -> Block:
        return Block(error_event(error))
