"""How many tokens a prompt has: as its upstream counts them, or as an estimate."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tis.errors import BadRequest
from tis.upstream.errors import UpstreamFault
from tis.upstream.upstream_model import UpstreamModel

_BYTES_PER_TOKEN = 4  # of an estimate
_MAX_SECONDS = 5.0
_NAMES = (
    *("model", "messages", "prompt", "tools", "chat_template_kwargs"),
    *("add_generation_prompt", "continue_final_message", "add_special_tokens"),
)


async def count_tokens(model: UpstreamModel, body: Mapping[str, Any]) -> int | None:
    """By the upstream's own tokenizer; None if it cannot tell."""
    prompt = body.get("prompt")
    if isinstance(prompt, list):
        return len(prompt)
    endpoint = model.pool.choose((), ()) if model.abilities.counts_chats else None
    if endpoint is None:
        return None
    asked = {name: body[name] for name in _NAMES if name in body}
    try:
        counted = await endpoint.http.post_at_root("/tokenize", asked, _MAX_SECONDS)
    except UpstreamFault as fault:
        if isinstance(fault.error, BadRequest):
            raise fault.error from None
        return None
    count = counted.get("count") if isinstance(counted, dict) else None
    return count if type(count) is int and 0 < count < 2**31 else None


async def estimated_tokens(body: Mapping[str, Any]) -> int:
    texts = [body.get(name) for name in ("messages", "prompt", "tools", "input", "query", "documents")]
    text = await asyncio.to_thread(json.dumps, texts, ensure_ascii=False)
    return estimated_text_tokens(text)


def estimated_text_tokens(text: str) -> int:
    return 1 + len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN
