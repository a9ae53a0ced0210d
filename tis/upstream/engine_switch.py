"""The engine of an app that serves models of both kinds: here, and elsewhere. The id of a model says which."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.engine import Engine
from tis.engine.grammar.grammar import Grammar
from tis.engine.local_engine import LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import ModelDescription
from tis.engine.models.model_status import ModelStatus
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, PairScores
from tis.engine.pooling.token_row import Text
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Medium, MediumKind, RawPrompt
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.sampling.params import SamplingParams
from tis.engine.speech.heard import HeardWindow, SpeechDescription, SpeechWindow
from tis.engine.text.tokenizer import RawTokenizer, TextCodec
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.upstream.upstream_engine import UpstreamEngine

T = TypeVar("T")


class EngineSwitch:
    def __init__(self, models: Sequence[CatalogueEntry], local: LocalEngine, upstream: UpstreamEngine) -> None:
        """`models`: of both, in the order in which clients see them."""
        self.models = models
        self.local = local
        self.upstream = upstream
        self.opened_at = local.opened_at
        self._elsewhere = {entry.id for entry in upstream.models}

    async def open(self, *, eager: bool = False) -> None:
        await self.upstream.open()
        await self.local.open(eager=eager)

    def drain(self) -> None:
        self.upstream.drain()
        self.local.drain()

    async def close(self) -> None:
        await asyncio.gather(self.upstream.close(), self.local.close())

    async def until_lost(self) -> str:
        return await self.local.until_lost()

    def _of(self, model_id: str) -> Engine:
        return self.upstream if model_id in self._elsewhere else self.local

    @property
    def statuses(self) -> Sequence[ModelStatus]:
        known = {one.id: one for one in (*self.local.statuses, *self.upstream.statuses)}
        return [known[entry.id] for entry in self.models if entry.id in known]

    @property
    def is_draining(self) -> bool:
        return self.local.is_draining

    @property
    def loss(self) -> str | None:
        return self.local.loss

    @property
    def is_starting(self) -> bool:
        return self.local.is_starting

    async def until_draining(self) -> None:
        await self.local.until_draining()

    async def describe(self, model_id: str) -> ModelDescription:
        return await self._of(model_id).describe(model_id)

    def default_sampling(self, model_id: str) -> SamplingParams:
        return self._of(model_id).default_sampling(model_id)

    def watch_load(self, model_id: str) -> AsyncGenerator[ModelStatus, None]:
        return self._of(model_id).watch_load(model_id)

    async def unload(self, model_id: str) -> ModelStatus:
        return await self._of(model_id).unload(model_id)

    async def media_kinds(self, model_id: str) -> Collection[MediumKind]:
        return await self._of(model_id).media_kinds(model_id)

    async def template_variables(self, model_id: str) -> AbstractSet[str]:
        return await self._of(model_id).template_variables(model_id)

    async def prepare(
        self,
        model_id: str,
        prompt: ChatPrompt,
        sampling: Mapping[str, Any],
        grammar: Grammar | None = None,
        *,
        is_resumed: bool = False,
        cache_salt: str = "",
        ticket: Ticket | None = None,
    ) -> PreparedRequest:
        return await self._of(model_id).prepare(
            *(model_id, prompt, sampling, grammar), is_resumed=is_resumed, cache_salt=cache_salt, ticket=ticket
        )

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
        return await self._of(model_id).prepare_raw(
            *(model_id, prompts, sampling, grammar),
            prompt_logprobs=prompt_logprobs,
            prompt_only=prompt_only,
            cache_salt=cache_salt,
            ticket=ticket,
        )

    def submit(self, prepared: PreparedRequest, *, is_resumed: bool = False, ticket: Ticket | None = None) -> Answer:
        return self._of(prepared.model_id).submit(prepared, is_resumed=is_resumed, ticket=ticket)

    def submit_list(self, prepared: Sequence[PreparedRequest], *, ticket: Ticket | None = None) -> Answer:
        return self._of(prepared[0].model_id).submit_list(prepared, ticket=ticket)

    async def with_tokenizer(self, model_id: str, work: Callable[[RawTokenizer], T]) -> T:
        return await self._of(model_id).with_tokenizer(model_id, work)

    async def with_codec(self, model_id: str, work: Callable[[TextCodec], T]) -> T:
        return await self._of(model_id).with_codec(model_id, work)

    async def embed(
        self, model_id: str, texts: Sequence[Text], options: EmbeddingOptions, ticket: Ticket | None = None
    ) -> Embeddings:
        return await self._of(model_id).embed(model_id, texts, options, ticket)

    async def score(
        self,
        model_id: str,
        pairs: Sequence[tuple[str, str]],
        instruction: str | None = None,
        *,
        truncate: bool = False,
        ticket: Ticket | None = None,
    ) -> PairScores:
        return await self._of(model_id).score(model_id, pairs, instruction, truncate=truncate, ticket=ticket)

    async def describe_speech(self, model_id: str) -> SpeechDescription:
        return await self._of(model_id).describe_speech(model_id)

    async def detect_language(
        self, model_id: str, samples: Any, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> str | None:
        return await self._of(model_id).detect_language(model_id, samples, ticket, is_begun=is_begun)

    async def hear(
        self, model_id: str, window: SpeechWindow, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> HeardWindow:
        return await self._of(model_id).hear(model_id, window, ticket, is_begun=is_begun)

    async def describe_voice(self, model_id: str) -> VoiceDescription:
        return await self._of(model_id).describe_voice(model_id)

    async def cut_text(self, model_id: str, text: str, pace: float = 1.0) -> CutText:
        return await self._of(model_id).cut_text(model_id, text, pace)

    async def say(
        self, model_id: str, sentence: SentenceToSay, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> Any:
        return await self._of(model_id).say(model_id, sentence, ticket, is_begun=is_begun)

    async def resume(
        self,
        saved: ResumableRequest,
        emitted: Sequence[EmittedTokens],
        media: Sequence[Medium] = (),
        ticket: Ticket | None = None,
    ) -> Answer:
        return await self._of(saved.model_id).resume(saved, emitted, media, ticket)

    async def resume_list(
        self, saved: Sequence[ResumableRequest], emitted: Sequence[EmittedTokens], ticket: Ticket | None = None
    ) -> Answer:
        return await self._of(saved[0].model_id).resume_list(saved, emitted, ticket)
