"""The engine as the model that reads cards. Nothing of it is recorded, and no request shares its cached prefix."""

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tis.admission.ticket import Ticket
from tis.engine.answer import TokenLogprob
from tis.engine.engine import Engine
from tis.engine.grammar.grammar import Grammar
from tis.engine.models.description import ModelDescription
from tis.engine.prompt import ChatPrompt, Picture
from tis.ktp.vision_model import ReplyToken

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NUM_LIKELIER = 5
# Models that see but cannot read are smaller, such as the demo model (5 MB), which knows colours. The smallest that
# read have 250 million parameters.
_MIN_WEIGHTS_BYTES = 100_000_000
# Greedy, and nothing of what operators or models have as defaults.
_SAMPLING: Mapping[str, Any] = {
    "temperature": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "min_tokens": 0,
    "seed": 0,
    "n": 1,
    "thinking_budget": 0,
    "top_logprobs": _NUM_LIKELIER,
}


class EngineVision:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # By model, and whether it is loaded: probes ask often.
        self._known: dict[tuple[str, bool], ModelDescription] = {}

    async def served(self, *, is_chosen: bool) -> str | None:
        loaded = {status.id for status in self._engine.statuses if status.state == "ready"}
        for entry in self._engine.models:
            if entry.upstream:
                continue  # cards never leave this machine
            key = (entry.id, entry.id in loaded)
            if key not in self._known:
                self._known[key] = await self._engine.describe(entry.id)
            description = self._known[key]
            sees = entry.task == "chat" and "image" in description.media and description.has_grammars
            is_small = description.weights_bytes is not None and description.weights_bytes < _MIN_WEIGHTS_BYTES
            if sees and (is_chosen or not is_small):
                return entry.id
        return None

    async def ask(
        self,
        model_id: str,
        picture: "NDArray[np.uint8]",
        prompt: str,
        schema: Mapping[str, Any],
        max_tokens: int,
        ticket: Ticket,
    ) -> Sequence[ReplyToken]:
        # A digest of its own, so that nothing that is cached of the picture is ever found again.
        shown = Picture(picture, secrets.token_hex(32))
        content = [{"type": "image", "image": shown}, {"type": "text", "text": prompt}]
        prepared = await self._engine.prepare(
            model_id,
            ChatPrompt([{"role": "user", "content": content}]),
            {**_SAMPLING, "max_tokens": max_tokens},
            Grammar("json_schema", dict(schema), param="image"),
            cache_salt=secrets.token_hex(16),
            ticket=ticket,
        )
        answer = self._engine.submit(prepared, ticket=ticket)
        try:
            return [_reply_token(one) async for piece in answer for one in piece.logprobs]
        finally:
            answer.cancel()


def _reply_token(picked: TokenLogprob) -> ReplyToken:
    """What is likelier than the token that was picked greedily, the grammar had forbidden."""
    forbidden = sum(math.exp(one.logprob) for one in picked.top if one.logprob > picked.logprob)
    return ReplyToken(picked.bytes, math.exp(min(picked.logprob, 0.0)), min(1.0, forbidden))
