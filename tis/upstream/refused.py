"""What no upstream is asked for: it has no form in the API of OpenAI, or needs tokens that are not known here."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from tis.admission.ticket import Ticket
from tis.engine.text.tokenizer import RawTokenizer, TextCodec
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.errors import BadRequest

T = TypeVar("T")


class RefusedElsewhere:
    """The methods of `Engine` that `UpstreamEngine` does not have, or not yet: each is refused by name."""

    async def with_tokenizer(self, model_id: str, work: Callable[[RawTokenizer], T]) -> T:
        refuse("what needs its tokens: compaction, echo, decisions")

    async def with_codec(self, model_id: str, work: Callable[[TextCodec], T]) -> T:
        refuse("tokens")

    async def describe_voice(self, model_id: str) -> VoiceDescription:
        refuse("speech")

    async def cut_text(self, model_id: str, text: str, pace: float = 1.0) -> CutText:
        refuse("speech")

    async def say(
        self, model_id: str, sentence: SentenceToSay, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> Any:
        refuse("speech")


def refuse(what: str) -> NoReturn:
    raise BadRequest(
        f"This model is served by another engine, which is not asked for {what}.",
        param="model",
        code="model_not_supported",
    )
