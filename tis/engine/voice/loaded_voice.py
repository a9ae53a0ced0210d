"""A model that speaks and is ready, and what it makes of texts."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.models.loaded_model import LoadedWeights
from tis.engine.models.model_slot import ModelSlot
from tis.engine.threads import Bridge
from tis.engine.voice.sentences import sentences_of
from tis.engine.voice.speaking_model import SpeakingModel
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.engine.voice.voice_request import SpeakingRequest
from tis.errors import BadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedVoice(LoadedWeights):
    model: SpeakingModel
    origins: Mapping[str, str]

    @property
    def description(self) -> VoiceDescription:
        model = self.model
        return VoiceDescription(
            *(model.sample_rate, model.voices, model.sets_pace, self.revision, self.origins, model.min_token_seconds)
        )


class SpokenTexts:
    """Speaks with the models of this machine. All methods run on the event loop."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def cut(self, loaded: LoadedVoice, text: str, pace: float) -> CutText:
        """What the model cannot say is left out. Raises BadRequest if nothing is left.

        Sentences that are spoken slowly are shorter, so that each takes no more time and memory.
        """
        model = loaded.model
        max_chars = round(model.max_chars * (min(1.0, pace) if model.sets_pace else 1.0))

        def cut() -> CutText:
            counted = [(one, model.num_tokens(one)) for one in sentences_of(text, max_chars)]
            return CutText([one for one, number in counted if number], sum(number for _, number in counted))

        made = await self._bridge.in_text_pool(cut)
        if not made.sentences:
            raise BadRequest("input: it has no character that this model can say.", param="input")
        return made

    async def say(
        self, slot: ModelSlot, loaded: LoadedVoice, sentence: SentenceToSay, ticket: Ticket | None, *, is_begun: bool
    ) -> Any:
        request = SpeakingRequest(sentence, loaded.model.sample_rate, slot.drop_if_queued, ticket, is_begun=is_begun)
        if ticket and not ticket.has_answered:
            ticket.queue(len(sentence.text), is_resumed=is_begun)
        slot.submit(request)
        try:
            return await request.answer
        except asyncio.CancelledError:
            request.cancel()
            raise
