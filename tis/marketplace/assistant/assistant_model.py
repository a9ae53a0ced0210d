"""What the assistant needs of a language model. `app` passes the engine's, tests pass a small one of their own."""

from typing import Protocol

from tis.admission.ticket import Ticket
from tis.chat.structured_answer import ModelReply, ModelTask


class AssistantModel(Protocol):
    async def ready_model(self) -> str | None:
        """The id of a model that can answer now."""
        ...

    async def ask(self, task: ModelTask, ticket: Ticket) -> ModelReply | None:
        """None if no answer comes in time or the model fails; the caller then goes on without."""
        ...
