"""What no upstream is asked for: it has no form in the API of OpenAI, or needs tokens that are not known here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.grammar.grammar import Grammar
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, PairScores
from tis.engine.pooling.token_row import Text
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import RawPrompt
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.speech.heard import HeardWindow, SpeechDescription, SpeechWindow
from tis.engine.text.tokenizer import RawTokenizer, TextCodec
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.errors import BadRequest

T = TypeVar("T")


class RefusedElsewhere:
    """The methods of `Engine` that `UpstreamEngine` does not have, or not yet: each is refused by name."""

    async def prepare_raw(
        self,
        model_id: str,
        prompts: Sequence[RawPrompt],
        sampling: Mapping[str, Any],
        grammar: Grammar | None = None,
        *,
        prompt_logprobs: int | None = None,
        prompt_only: bool = False,
        cache_salt: str = "",
        ticket: Ticket | None = None,
    ) -> list[PreparedRequest]:
        refuse("raw prompts")

    def submit_list(self, prepared: Sequence[PreparedRequest], *, ticket: Ticket | None = None) -> Answer:
        refuse("lists of prompts")

    async def resume_list(
        self, saved: Sequence[ResumableRequest], emitted: Sequence[EmittedTokens], ticket: Ticket | None = None
    ) -> Answer:
        refuse("lists of prompts")

    async def with_tokenizer(self, model_id: str, work: Callable[[RawTokenizer], T]) -> T:
        refuse("what needs its tokens: compaction, echo, decisions")

    async def with_codec(self, model_id: str, work: Callable[[TextCodec], T]) -> T:
        refuse("tokens")

    async def embed(
        self, model_id: str, texts: Sequence[Text], options: EmbeddingOptions, ticket: Ticket | None = None
    ) -> Embeddings:
        refuse("embeddings")

    async def score(
        self,
        model_id: str,
        pairs: Sequence[tuple[str, str]],
        instruction: str | None = None,
        *,
        truncate: bool = False,
        ticket: Ticket | None = None,
    ) -> PairScores:
        refuse("reranking")

    async def describe_speech(self, model_id: str) -> SpeechDescription:
        refuse("transcription")

    async def detect_language(
        self, model_id: str, samples: Any, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> str | None:
        refuse("transcription")

    async def hear(
        self, model_id: str, window: SpeechWindow, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> HeardWindow:
        refuse("transcription")

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
