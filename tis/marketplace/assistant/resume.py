"""Resumes turns of the assistant that another process began."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from tis.admission.admission import Admission
from tis.engine.errors import GenerationInterrupted
from tis.errors import ServiceError
from tis.marketplace.assistant.chat_schemas import event_json
from tis.marketplace.assistant.turn import AssistantTurn, TurnDatabase, TurnSpec, event_block
from tis.observability.logs import log_exception
from tis.streaming.source import Block, Source
from tis.streaming.stores.store import Status


def resume_turn(
    request: bytes,
    resume_states: Sequence[bytes],
    market: Callable[[], TurnDatabase],
    admission: Admission,
    *,
    resume: bool,
) -> Source:
    """Never raises: what cannot be read or must not go on ends with its reason."""
    try:
        turn = AssistantTurn(TurnSpec.from_json(json.loads(request)), market, admission, None, resume_states)
    except (ValueError, KeyError, TypeError) as fault:
        log_exception("an interrupted turn of the assistant cannot be read", fault, "-")
        return InterruptedTurn("The server was restarted during this answer, and cannot read the stored part of it.")
    if resume or turn.is_over:
        return turn
    return InterruptedTurn("The server was restarted during this answer, and RESUME_GENERATION is 0.")


class InterruptedTurn:
    """A turn that ends here, with the reason."""

    is_waiting_to_resume = False
    may_be_repeated = True
    outcome: Status = "failed"
    request = b""
    summary = b"{}"
    attachments: Mapping[str, bytes] = {}

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        raise GenerationInterrupted(self._reason)
        yield  # what makes it a generator

    def cancel(self) -> None:
        pass

    def failure(self, error: Exception) -> Block:
        status = error.status if isinstance(error, ServiceError) else 500
        return event_block(event_json("failed", detail=self._reason, status=status))
