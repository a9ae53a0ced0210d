"""The engine that computes on this machine: model slots behind the `Engine` Protocol."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.chat_preparation import ChatPreparation
from tis.engine.completion import begin_completions
from tis.engine.errors import GenerationInterrupted, WrongTask
from tis.engine.faults import StallClock
from tis.engine.grammar.compile_queue import compile_for_resume, compile_grammar
from tis.engine.grammar.grammar import Grammar
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import ModelDescription, describe_unloaded
from tis.engine.models.load_observer import LoadObserver
from tis.engine.models.loaded_model import LoadedModel, LoadedWeights
from tis.engine.models.model_slot import Fetch, Load, ModelSlot, SlotRules
from tis.engine.models.model_slots import ModelSlots
from tis.engine.models.model_status import ModelStatus
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, LoadedPooling, PairScores, PooledTexts
from tis.engine.pooling.token_row import Text
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Medium, MediumKind, RawPrompt, media_of
from tis.engine.raw_prompts import RawPrompts
from tis.engine.request import Request
from tis.engine.request_rules import RequestRules, adapter_of
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.resume import replay_completions, restore_request
from tis.engine.sampling.params import SamplingParams
from tis.engine.speech.heard import HeardWindow, SpeechDescription, SpeechWindow
from tis.engine.speech.loaded_speech import HeardWindows, LoadedSpeech
from tis.engine.text.tokenizer import RawTokenizer, TextCodec
from tis.engine.threads import Bridge
from tis.engine.voice.loaded_voice import LoadedVoice, SpokenTexts
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.errors import BadRequest, Draining
from tis.observability.load_log import LoadLog
from tis.observability.spans import PROVIDER, Span, child_span

T = TypeVar("T")
_LOOKS_PER_STALL = 4  # at least; more often than once a second is not needed


@dataclass(frozen=True, slots=True)
class EngineLimits:
    load_wait_seconds: float = 60
    queue_size: int = 64
    retry_seconds: float = 1.0  # after the first failed load or worker death; doubles with each further one
    max_context_tokens: int = 0
    compress: bool = False
    embedding_cache_bytes: int = 64 * 2**20
    stall_seconds: float = 120  # a step that takes longer hangs; 0: it may
    idle_seconds: float = 0  # after which a model that nobody uses is unloaded; 0: never
    warms_up: bool = False
    # Of SamplingParams: set by the operator's variables, and for what nothing else sets.
    operator_defaults: Mapping[str, Any] | None = None
    builtin_defaults: Mapping[str, Any] | None = None


class LocalEngine:
    """Computes on this machine: one `ModelSlot` per model of the catalogue."""

    def __init__(
        self,
        models: Sequence[CatalogueEntry],
        load: Load,
        limits: EngineLimits,
        observer: LoadObserver | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        """Without `fetch`, models are loaded whatever memory they need."""
        self.models = models
        self.opened_at = time.time()
        self._load, self._fetch = load, fetch
        self._limits = limits
        self._rules = RequestRules(
            limits.max_context_tokens,
            compresses=limits.compress,
            operator_defaults=limits.operator_defaults or {},
            builtin_defaults=limits.builtin_defaults or {},
        )
        self._chats = ChatPreparation(self._rules)
        self._observer = observer or LoadLog()
        self._entries = {entry.id: entry for entry in models}
        self._slots: ModelSlots | None = None
        self._bridge: Bridge | None = None
        self._draining = asyncio.Event()
        self._lost = asyncio.Event()
        self._loss: str | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def slots(self) -> ModelSlots:
        assert self._slots, "the engine is not open"
        return self._slots

    @property
    def statuses(self) -> Sequence[ModelStatus]:
        return [slot.status for slot in self._slots or ()]

    @property
    def is_draining(self) -> bool:
        return self._draining.is_set()

    async def until_draining(self) -> None:
        await self._draining.wait()

    @property
    def loss(self) -> str | None:
        return self._loss

    async def until_lost(self) -> str:
        """Returns why no model can compute here any more. The process has to end then."""
        await self._lost.wait()
        return self._loss or ""

    @property
    def is_starting(self) -> bool:
        return self._slots is not None and self._slots.is_starting

    async def open(self, *, eager: bool = False) -> None:
        self._bridge = bridge = Bridge()
        self._pooled = PooledTexts(bridge, self._limits.embedding_cache_bytes)
        self._windows = HeardWindows(bridge)
        self._spoken = SpokenTexts(bridge)
        self._raw_prompts = RawPrompts(bridge, self._rules)
        limits = self._limits
        rules = SlotRules(limits.queue_size, limits.retry_seconds, limits.warms_up)
        self._slots = ModelSlots(self.models, self._load, self._fetch, bridge, self._observer, rules, self._on_loss)
        if limits.stall_seconds:
            self._watch = asyncio.create_task(self._watch_steps(limits.stall_seconds))
        if limits.idle_seconds:
            self._slots.unload_idle_after(limits.idle_seconds)
        if eager:
            self._slots.load_at_start()

    async def describe(self, model_id: str) -> ModelDescription:
        assert self._bridge
        slot = self.slots[model_id]
        known = slot.description
        if known is None:
            known = await self._bridge.in_pool(lambda: describe_unloaded(slot.entry.repo, slot.entry.revision))
        limits = [length for length in (known.context_length, self._rules.context_limit(slot.entry)) if length]
        return replace(known, context_length=min(limits, default=None))

    def default_sampling(self, model_id: str) -> SamplingParams:
        loaded = self.slots[model_id].loaded
        recommended = loaded.generation_defaults if isinstance(loaded, LoadedModel) else {}
        return self._rules.layered({}, self._entries[model_id], recommended)

    def watch_load(self, model_id: str) -> AsyncGenerator[ModelStatus, None]:
        self._require_open(is_resumed=False)
        return self.slots.watch_load(model_id)

    async def unload(self, model_id: str) -> ModelStatus:
        return await self.slots.unload(model_id)

    async def media_kinds(self, model_id: str) -> Collection[MediumKind]:
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing():
            loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
        if isinstance(loaded, LoadedPooling):
            return loaded.rows.kinds
        if not isinstance(loaded, LoadedModel):
            raise WrongTask(slot.entry.id, slot.entry.task)
        return loaded.vision.kinds if loaded.vision else ()

    async def template_variables(self, model_id: str) -> AbstractSet[str]:
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing():
            return (await self._writing(slot)).template_variables

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
        assert self._bridge
        self._require_open(is_resumed=is_resumed)
        slot = self._slot_of(model_id)
        entry = self._entries[model_id]
        with slot.use.preparing(ticket), child_span("prepare", {"tis.model": model_id}):
            loaded = await self._writing(slot)
            pool = self._bridge.in_vision_pool if media_of(prompt.messages) else self._bridge.in_pool
            prepared = await pool(
                lambda: self._chats.prepare(
                    entry,
                    loaded,
                    prompt,
                    sampling,
                    has_grammar=bool(grammar and grammar.covers_answer),
                )
            )
            prepared = replace(prepared, cache_salt=cache_salt)
            if grammar is not None:
                waiting = None if is_resumed else ticket
                made = await compile_grammar(grammar, loaded.grammars, self._bridge, slot.entry.tool_format, waiting)
                prepared = replace(prepared, grammar=made)
            if prepared.is_constrained:
                await self._bridge.in_pool(lambda: begin_completions(prepared))
            return prepared

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
        self._require_open(is_resumed=False)
        slot = self._slot_of(model_id)
        with slot.use.preparing(ticket), child_span("prepare", {"tis.model": model_id}):
            return await self._raw_prompts.prepare(
                *(self._entries[model_id], await self._writing(slot), prompts, sampling, grammar),
                prompt_logprobs=prompt_logprobs,
                prompt_only=prompt_only,
                cache_salt=cache_salt,
                ticket=ticket,
            )

    async def with_tokenizer(self, model_id: str, work: Callable[[RawTokenizer], T]) -> T:
        assert self._bridge
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing():
            tokenizer = (await self._writing(slot)).tokenizer
            return await self._bridge.in_text_pool(lambda: work(tokenizer))

    async def with_codec(self, model_id: str, work: Callable[[TextCodec], T]) -> T:
        assert self._bridge
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing():
            loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
            codec = _codec_of(loaded)
            return await self._bridge.in_text_pool(lambda: work(codec))

    def submit(self, prepared: PreparedRequest, *, is_resumed: bool = False, ticket: Ticket | None = None) -> Answer:
        self._require_open(is_resumed=is_resumed)
        slot = self.slots[prepared.model_id]
        begun = prepared.begun.pop() if prepared.begun else None
        request = Request(prepared, slot.drop_if_queued, begun=begun, is_resumed=is_resumed, ticket=ticket)
        _submit(slot, request, ticket)
        return request.answer

    def submit_list(self, prepared: Sequence[PreparedRequest], *, ticket: Ticket | None = None) -> Answer:
        if len(prepared) == 1:
            return self.submit(prepared[0], ticket=ticket)
        self._require_open(is_resumed=False)
        return self._raw_prompts.submit(self.slots[prepared[0].model_id], prepared, ticket)

    async def resume(
        self,
        saved: ResumableRequest,
        emitted: Sequence[EmittedTokens],
        media: Sequence[Medium] = (),
        ticket: Ticket | None = None,
    ) -> Answer:
        assert self._bridge
        if self.is_draining:
            raise Draining
        slot = self._slot_of(saved.model_id)
        adapter = adapter_of(self._entries[saved.model_id])
        with slot.use.preparing(ticket):
            loaded = await self._writing(slot)
            grammar = await compile_for_resume(saved.grammar, loaded.grammars, self._bridge)
            pool = self._bridge.in_vision_pool if media else self._bridge.in_pool
            prepared = await pool(lambda: restore_request(saved, loaded, media, grammar, adapter))
            if ticket:
                ticket.keep("decoded_bytes", prepared.num_media_bytes)
            completions = await self._bridge.in_pool(lambda: replay_completions(prepared, emitted))
            request = Request(prepared, slot.drop_if_queued, completions, ticket=ticket)
            if request.unfinished:
                _submit(slot, request, ticket)
            return request.answer

    async def resume_list(
        self, saved: Sequence[ResumableRequest], emitted: Sequence[EmittedTokens], ticket: Ticket | None = None
    ) -> Answer:
        if len(saved) == 1:
            return await self.resume(saved[0], emitted, ticket=ticket)
        if self.is_draining:
            raise Draining
        slot = self._slot_of(saved[0].model_id)
        adapter = adapter_of(self._entries[saved[0].model_id])
        with slot.use.preparing(ticket):
            loaded = await self._writing(slot)
            return await self._raw_prompts.resume(slot, adapter, loaded, saved, emitted, ticket)

    async def embed(
        self, model_id: str, texts: Sequence[Text], options: EmbeddingOptions, ticket: Ticket | None = None
    ) -> Embeddings:
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing(ticket), _pooling_span("embeddings", model_id) as span:
            made = await self._pooled.embed(slot, await self._pooling(slot), texts, options, ticket)
            span.set({"gen_ai.usage.input_tokens": made.num_tokens})
            return made

    async def score(
        self,
        model_id: str,
        pairs: Sequence[tuple[str, str]],
        instruction: str | None = None,
        *,
        truncate: bool = False,
        ticket: Ticket | None = None,
    ) -> PairScores:
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing(ticket), _pooling_span("rerank", model_id) as span:
            made = await self._pooled.score(slot, await self._pooling(slot), pairs, instruction, truncate, ticket)
            span.set({"gen_ai.usage.input_tokens": made.num_tokens})
            return made

    async def describe_speech(self, model_id: str) -> SpeechDescription:
        self._require_open(is_resumed=False)
        slot = self._slot_of(model_id)
        with slot.use.preparing():
            return (await self._hearing(slot)).description

    async def detect_language(
        self, model_id: str, samples: Any, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> str | None:
        slot = self._slot_of(model_id)
        with slot.use.preparing(ticket):
            loaded = await self._hearing(slot)
            return await self._windows.detect_language(slot, loaded, samples, ticket, is_begun=is_begun)

    async def hear(
        self, model_id: str, window: SpeechWindow, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> HeardWindow:
        """Also while draining: the window may be one of many of a file that was accepted before."""
        slot = self._slot_of(model_id)
        with slot.use.preparing(ticket):
            return await self._windows.hear(slot, await self._hearing(slot), window, ticket, is_begun=is_begun)

    async def describe_voice(self, model_id: str) -> VoiceDescription:
        self._require_open(is_resumed=False)
        slot = self._slot_of(model_id)
        with slot.use.preparing():
            return (await self._speaking(slot)).description

    async def cut_text(self, model_id: str, text: str, pace: float = 1.0) -> CutText:
        slot = self._slot_of(model_id)
        with slot.use.preparing():
            return await self._spoken.cut(await self._speaking(slot), text, pace)

    async def say(
        self, model_id: str, sentence: SentenceToSay, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> Any:
        """Also while draining: the sentence may be one of many of a text that was accepted before."""
        slot = self._slot_of(model_id)
        with slot.use.preparing(ticket):
            return await self._spoken.say(slot, await self._speaking(slot), sentence, ticket, is_begun=is_begun)

    async def _writing(self, slot: ModelSlot) -> LoadedModel:
        loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
        if not isinstance(loaded, LoadedModel):
            raise WrongTask(slot.entry.id, slot.entry.task)
        return loaded

    async def _pooling(self, slot: ModelSlot) -> LoadedPooling:
        loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
        if not isinstance(loaded, LoadedPooling):
            raise WrongTask(slot.entry.id, slot.entry.task)
        if limit := self._rules.context_limit(slot.entry):
            loaded.rows.limit(limit)
        return loaded

    async def _hearing(self, slot: ModelSlot) -> LoadedSpeech:
        if slot.entry.task != "transcription":
            raise WrongTask(slot.entry.id, slot.entry.task)  # without loading it
        loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
        if not isinstance(loaded, LoadedSpeech):
            raise WrongTask(slot.entry.id, slot.entry.task)
        return loaded

    async def _speaking(self, slot: ModelSlot) -> LoadedVoice:
        if slot.entry.task != "speech":
            raise WrongTask(slot.entry.id, slot.entry.task)  # without loading it
        loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
        if not isinstance(loaded, LoadedVoice):
            raise WrongTask(slot.entry.id, slot.entry.task)
        return loaded

    def _slot_of(self, saved_id: str) -> ModelSlot:
        """The model that a saved request names."""
        if slot := self.slots.get(saved_id):
            return slot
        raise GenerationInterrupted(f"The answer cannot be resumed: {saved_id} is not served any more.")

    def drain(self) -> None:
        """Refuses new requests; running ones continue."""
        self._draining.set()

    async def close(self) -> None:
        self.drain()
        if self._watch:
            self._watch.cancel()
        if self._bridge:
            bridge = self._bridge
            self.slots.stop_tasks()
            await asyncio.gather(*(bridge.in_pool(slot.close) for slot in self.slots))
            bridge.close()

    def _on_loss(self, reason: str) -> None:
        self._loss = self._loss or reason
        self.drain()
        self._lost.set()

    async def _watch_steps(self, stall_seconds: float) -> None:
        pause = min(1.0, stall_seconds / _LOOKS_PER_STALL)
        clocks = {slot.name: StallClock(round(stall_seconds / pause)) for slot in self.slots}
        while not self._loss:
            await asyncio.sleep(pause)
            for slot in self.slots:
                if clocks[slot.name].is_stalled(slot.running_step):
                    self._on_loss(f"A step of {slot.name} takes longer than {stall_seconds:g} s.")

    def _require_open(self, *, is_resumed: bool) -> None:
        if self.is_draining and not is_resumed:
            raise Draining


def _codec_of(loaded: LoadedWeights) -> TextCodec:
    codec: TextCodec | None = None
    if isinstance(loaded, LoadedModel):
        codec = loaded.tokenizer
    elif isinstance(loaded, LoadedPooling):
        codec = loaded.codec
    if codec is None:
        raise BadRequest("This model has no tokens of texts to show.", param="model", code="model_not_supported")
    return codec


def _pooling_span(operation: str, model_id: str) -> AbstractContextManager[Span]:
    named = {"gen_ai.operation.name": operation, "gen_ai.provider.name": PROVIDER}
    models = {"gen_ai.request.model": model_id, "gen_ai.response.model": model_id}
    return child_span(f"{operation} {model_id}", {**named, **models})


def _submit(slot: ModelSlot, request: Request, ticket: Ticket | None) -> None:
    if ticket:
        ticket.queue(len(request.prompt_ids), is_resumed=request.is_resumed)
    slot.submit(request)
