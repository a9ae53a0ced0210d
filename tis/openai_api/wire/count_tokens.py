"""The tokens of the prompt that a chat would make."""

from dataclasses import replace

from tis.admission.ticket import Ticket
from tis.chat.media import with_media
from tis.chat.run import first_prompt
from tis.chat.run_spec import RunSpec, Services
from tis.engine.prepared_request import PreparedRequest
from tis.http.scanned_route import in_thread_if
from tis.openai_api.wire.begin import chat_mcp_spec, converted_chat
from tis.openai_api.wire.chat_prompt import require_template_options
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import DIALECT


async def prepared_to_count(
    body: ChatRequest, services: Services, model_id: str, ticket: Ticket, *, is_large: bool = False
) -> PreparedRequest:
    """With tools, pictures and videos; lists the tools of MCP servers, and calls none. Generates nothing.

    There may be more tokens than the model has.
    """
    engine = services.engine
    chat = await in_thread_if(is_large, lambda: converted_chat(body, services.mcp_client))
    await require_template_options(body, engine, model_id)
    counted = replace(chat.prompt, is_only_counted=True)
    prompt, _ = await with_media(counted, model_id, engine, services.media, ticket)
    prepared = await engine.prepare(model_id, prompt, chat.sampling, ticket=ticket)
    if chat.servers:
        mcp = chat_mcp_spec(chat.body, chat.servers, prompt, chat.forced)
        prepared = await first_prompt(RunSpec(DIALECT, "", {}, prepared.resumable), mcp, services, ticket)
    return prepared
