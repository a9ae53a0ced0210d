"""The routes below `/v1` that speak as Anthropic's API does; `WRITERS` by the names of their dialects.

They stand before those of OpenAI: both have `/v1/models`.
"""

from fastapi import APIRouter

from tis.anthropic_api.routes import messages, models
from tis.anthropic_api.wire import message_writer
from tis.chat.parts import NewWriter
from tis.http.dependencies import DOCUMENTED_KEY

router = APIRouter(tags=["Anthropic"])
router.include_router(messages.router)
router.include_router(models.router, dependencies=[DOCUMENTED_KEY])

WRITERS: dict[str, NewWriter] = {message_writer.DIALECT: message_writer.MessageWriter}
