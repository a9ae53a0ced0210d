"""The engine that computes on this machine: model slots behind the `Engine` Protocol."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.completion import Completion
from tis.engine.compression import compress
from tis.engine.errors import ContextLengthExceeded, GenerationInterrupted, WrongTask
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
from tis.engine.prompt import ChatPrompt, Medium, MediumKind, Picture, RawPrompt, media_of, text_of
from tis.engine.prompt_list import listed_requests
from tis.engine.raw_requests import prepare_raw_prompts
from tis.engine.request import Request
from tis.engine.resumable_request import EmittedTokens, ResumableRequest, SavedMedium
from tis.engine.resume import find_reasoning_limit, replay_completions, restore_request
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.random_stream import new_seed
from tis.engine.speech.heard import HeardWindow, SpeechDescription, SpeechWindow
from tis.engine.speech.loaded_speech import HeardWindows, LoadedSpeech
from tis.engine.text.text_encoder import MAX_CHARS_PER_TOKEN, TooManyTokens
from tis.engine.text.tokenizer import RawTokenizer, TextCodec, Tokenizer, decode
from tis.engine.threads import Bridge
from tis.engine.voice.loaded_voice import LoadedVoice, SpokenTexts
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.errors import BadRequest, Draining, GenerationFailed
from tis.observability.load_log import LoadLog

T = TypeVar("T")
_MAX_COUNTED_TOKENS = 2**20  # as of a text that is tokenised alone
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
        limits = [length for length in (known.context_length, self._max_context(slot.entry)) if length]
        return replace(known, context_length=min(limits, default=None))

    def default_sampling(self, model_id: str) -> SamplingParams:
        loaded = self.slots[model_id].loaded
        recommended = loaded.generation_defaults if isinstance(loaded, LoadedModel) else {}
        return self._layered({}, self._entries[model_id], recommended)

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
        with slot.use.preparing(ticket):
            loaded = await self._writing(slot)
            pool = self._bridge.in_vision_pool if media_of(prompt.messages) else self._bridge.in_pool
            prepared = await pool(
                lambda: self._prepare(
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
        assert self._bridge
        self._require_open(is_resumed=False)
        slot = self._slot_of(model_id)
        entry = self._entries[model_id]
        with slot.use.preparing(ticket):
            loaded = await self._writing(slot)
            prepared = await self._bridge.in_pool(
                lambda: self._prepare_raw(
                    *(entry, loaded, prompts, sampling),
                    prompt_logprobs=prompt_logprobs,
                    prompt_only=prompt_only,
                    cache_salt=cache_salt,
                )
            )
            if grammar is not None:
                made = await compile_grammar(grammar, loaded.grammars, self._bridge, slot.entry.tool_format, ticket)
                prepared = [replace(one, grammar=made) for one in prepared]
            if prepared[0].is_constrained:
                await self._bridge.in_pool(lambda: begin_all_completions(prepared))
            return prepared

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
        slot = self.slots[prepared[0].model_id]
        num_tokens = sum(len(one.prompt_ids) for one in prepared)
        if ticket:
            ticket.queue(num_tokens)
        made = listed_requests(prepared, [None] * len(prepared), slot.submit, slot.drop_if_queued, ticket)
        made.start(is_accepted=False)
        return made.answer

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
        adapter = _adapter_of(self._entries[saved.model_id])
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
        assert self._bridge
        if self.is_draining:
            raise Draining
        slot = self._slot_of(saved[0].model_id)
        adapter = _adapter_of(self._entries[saved[0].model_id])
        with slot.use.preparing(ticket):
            loaded = await self._writing(slot)
            grammar = await compile_for_resume(saved[0].grammar, loaded.grammars, self._bridge)

            def replay() -> tuple[list[PreparedRequest], list[list[Completion] | None]]:
                prepared = [restore_request(one, loaded, (), grammar, adapter) for one in saved]
                each = iter(emitted)
                replayed = [replay_completions(one, list(islice(each, one.params.n))) for one in prepared]
                return prepared, list(replayed)

            prepared, completions = await self._bridge.in_pool(replay)
            if ticket:
                ticket.queue(sum(len(one.prompt_ids) for one in prepared), is_resumed=True)
            made = listed_requests(prepared, completions, slot.submit, slot.drop_if_queued, ticket)
            made.start(is_accepted=True)
            return made.answer

    async def embed(
        self, model_id: str, texts: Sequence[Text], options: EmbeddingOptions, ticket: Ticket | None = None
    ) -> Embeddings:
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing(ticket):
            return await self._pooled.embed(slot, await self._pooling(slot), texts, options, ticket)

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
        with slot.use.preparing(ticket):
            return await self._pooled.score(slot, await self._pooling(slot), pairs, instruction, truncate, ticket)

    async def describe_speech(self, model_id: str) -> SpeechDescription:
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing():
            return (await self._hearing(slot)).description

    async def detect_language(self, model_id: str, samples: Any, ticket: Ticket | None = None) -> str | None:
        slot = self.slots[model_id]
        with slot.use.preparing(ticket):
            return await self._windows.detect_language(slot, await self._hearing(slot), samples, ticket)

    async def hear(self, model_id: str, window: SpeechWindow, ticket: Ticket | None = None) -> HeardWindow:
        """Also while draining: the window may be one of many of a file that was accepted before."""
        slot = self.slots[model_id]
        with slot.use.preparing(ticket):
            return await self._windows.hear(slot, await self._hearing(slot), window, ticket)

    async def describe_voice(self, model_id: str) -> VoiceDescription:
        self._require_open(is_resumed=False)
        slot = self.slots[model_id]
        with slot.use.preparing():
            return (await self._speaking(slot)).description

    async def cut_text(self, model_id: str, text: str, pace: float = 1.0) -> CutText:
        slot = self.slots[model_id]
        with slot.use.preparing():
            return await self._spoken.cut(await self._speaking(slot), text, pace)

    async def say(self, model_id: str, sentence: SentenceToSay, ticket: Ticket | None = None) -> Any:
        """Also while draining: the sentence may be one of many of a text that was accepted before."""
        slot = self.slots[model_id]
        with slot.use.preparing(ticket):
            return await self._spoken.say(slot, await self._speaking(slot), sentence, ticket)

    async def _writing(self, slot: ModelSlot) -> LoadedModel:
        loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
        if not isinstance(loaded, LoadedModel):
            raise WrongTask(slot.entry.id, slot.entry.task)
        return loaded

    async def _pooling(self, slot: ModelSlot) -> LoadedPooling:
        loaded = await slot.ensure_loaded(self._limits.load_wait_seconds)
        if not isinstance(loaded, LoadedPooling):
            raise WrongTask(slot.entry.id, slot.entry.task)
        if limit := self._max_context(slot.entry):
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

    def _max_context(self, entry: CatalogueEntry) -> int:
        """0: as many tokens as the model takes."""
        return entry.limits.max_context_tokens or self._limits.max_context_tokens

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

    def _prepare(
        self,
        entry: CatalogueEntry,
        loaded: LoadedModel,
        prompt: ChatPrompt,
        sampling: Mapping[str, Any],
        *,
        has_grammar: bool,
    ) -> PreparedRequest:
        tokenizer = loaded.tokenizer
        max_context = min(loaded.context_length, self._max_context(entry) or loaded.context_length)
        most = self._max_prompt(prompt, max_context)
        self._refuse_far_too_long(prompt, most)
        params = self._params(entry, loaded, sampling, max_context)
        try:
            prompt, prompt_ids, context = self._encode(loaded, prompt, params, most)
        except TooManyTokens as error:
            raise _too_long(max_context, error.num_tokens) from None
        if len(prompt_ids) >= max_context and not prompt.is_only_counted:
            raise ContextLengthExceeded(max_context, f"you requested {len(prompt_ids)} tokens in the messages.")
        room = max(1, max_context - len(prompt_ids))
        if params.max_tokens > room:
            params = params.with_max_tokens(room)
        seed = new_seed() if params.seed is None else params.seed
        media = media_of(prompt.messages)
        markers = loaded.markers.with_format(entry.tool_format, entry.reasoning_format)
        prepared = PreparedRequest(
            entry.id,
            loaded.revision_with(_adapter_of(entry)),
            tokenizer,
            prompt_ids,
            params,
            seed,
            context,
            vision=loaded.vision.preprocess(prompt_ids, media) if loaded.vision and media else None,
            media=[_saved_medium(medium) for medium in media],
            visible_markers=markers.visible(with_tool_calls=bool(prompt.tools)) if prompt.emit_markers else {},
            markers=markers,
            starts_in_reasoning=markers.starts_in_reasoning(
                prompt_ids, tokenizer.eos_ids, lambda ids: decode(tokenizer, ids)
            ),
            adapter=_adapter_of(entry),
            prediction_ids=_encode_prediction(tokenizer, prompt.prediction, max_context),
        )
        return replace(prepared, reasoning_limit=find_reasoning_limit(loaded, prepared, has_grammar=has_grammar))

    def _prepare_raw(
        self,
        entry: CatalogueEntry,
        loaded: LoadedModel,
        prompts: Sequence[RawPrompt],
        sampling: Mapping[str, Any],
        *,
        prompt_logprobs: int | None,
        prompt_only: bool,
        cache_salt: str,
    ) -> list[PreparedRequest]:
        max_context = min(loaded.context_length, self._max_context(entry) or loaded.context_length)
        params = self._params(entry, loaded, sampling, max_context)
        adapter = _adapter_of(entry)
        prepared = prepare_raw_prompts(
            *(entry.id, adapter, loaded, prompts, params, max_context),
            prompt_logprobs=prompt_logprobs,
            prompt_only=prompt_only,
            cache_salt=cache_salt,
        )
        # No share of the tokens is for reasoning: a grammar applies from the first one on.
        return [replace(one, reasoning_limit=find_reasoning_limit(loaded, one, has_grammar=False)) for one in prepared]

    def _params(
        self, entry: CatalogueEntry, loaded: LoadedModel, sampling: Mapping[str, Any], max_context: int
    ) -> SamplingParams:
        params = self._layered(sampling, entry, loaded.generation_defaults)
        _check_token_ids(params, loaded.tokenizer.vocabulary_size)
        if "max_tokens" in sampling and params.max_tokens > max_context:
            raise ContextLengthExceeded(
                max_context, f"you requested {params.max_tokens} tokens in the completion alone.", param="max_tokens"
            )
        return params

    def _layered(
        self, sampling: Mapping[str, Any], entry: CatalogueEntry, recommended: Mapping[str, Any]
    ) -> SamplingParams:
        limits = self._limits
        return SamplingParams.layered(
            sampling, entry.defaults, limits.operator_defaults or {}, recommended, limits.builtin_defaults or {}
        )

    def _max_prompt(self, prompt: ChatPrompt, max_context: int) -> int:
        """The number of tokens that are encoded at most. Processors of media encode all at once."""
        is_longer = prompt.is_only_counted and not media_of(prompt.messages) and not self._may_truncate(prompt)
        return max(max_context, _MAX_COUNTED_TOKENS) if is_longer else max_context

    def _refuse_far_too_long(self, prompt: ChatPrompt, max_context: int) -> None:
        """Before rendering. What else the template renders, the tokenizer counts: tools, reasoning and calls."""
        num_characters = sum(len(text_of(message)) for message in prompt.messages)
        min_tokens = num_characters // MAX_CHARS_PER_TOKEN
        if min_tokens > max_context and not self._may_truncate(prompt):
            raise _too_long(max_context, min_tokens)

    def _encode(
        self, loaded: LoadedModel, prompt: ChatPrompt, params: SamplingParams, max_context: int
    ) -> tuple[ChatPrompt, list[int], dict[str, Any] | None]:
        """Returns the prompt, truncated if need be, its tokens, and what was dropped."""
        encode = loaded.vision.encode if loaded.vision else loaded.tokenizer.encode_chat
        prompt = replace(prompt, max_tokens=max_context)
        if not self._may_truncate(prompt):
            return prompt, encode(prompt), None
        # Leaves room for the answer, but at least half of the context to the conversation.
        budget = max(max_context // 2, max_context - params.max_tokens)
        return compress(prompt, encode, loaded.tokenizer.count_tokens, budget, max_context)

    def _may_truncate(self, prompt: ChatPrompt) -> bool:
        return self._limits.compress or prompt.may_truncate


def _adapter_of(entry: CatalogueEntry) -> str:
    return entry.id if entry.base else ""


def begin_completions(prepared: PreparedRequest) -> None:
    """Makes the tokens that a grammar forces at the beginning, which may be thousands."""
    try:
        prepared.begun.append([Completion(index, prepared) for index in range(prepared.params.n)])
    except GenerationFailed as error:
        param = prepared.grammar.grammar.param if prepared.grammar else "response_format"
        raise BadRequest(f"{param}: {error.message}", param=param, code="schema_too_large") from None


def begin_all_completions(prepared: Sequence[PreparedRequest]) -> None:
    for one in prepared:
        begin_completions(one)


def _codec_of(loaded: LoadedWeights) -> TextCodec:
    codec: TextCodec | None = None
    if isinstance(loaded, LoadedModel):
        codec = loaded.tokenizer
    elif isinstance(loaded, LoadedPooling):
        codec = loaded.codec
    if codec is None:
        raise BadRequest("This model has no tokens of texts to show.", param="model", code="model_not_supported")
    return codec


def _encode_prediction(tokenizer: Tokenizer, prediction: str, max_context: int) -> list[int]:
    num_tokens = tokenizer.count_tokens(prediction, max_context)
    if num_tokens > max_context:
        raise ContextLengthExceeded(
            max_context, f"you predicted {num_tokens} tokens of the answer, or more.", param="prediction"
        )
    return tokenizer.encode_text(prediction) if prediction else []


def _too_long(max_context: int, min_tokens: int) -> ContextLengthExceeded:
    return ContextLengthExceeded(max_context, f"you requested {min_tokens} tokens or more in the messages.")


def _submit(slot: ModelSlot, request: Request, ticket: Ticket | None) -> None:
    if ticket:
        ticket.queue(len(request.prompt_ids), is_resumed=request.is_resumed)
    slot.submit(request)


def _saved_medium(medium: Medium) -> SavedMedium:
    return SavedMedium("image" if isinstance(medium, Picture) else "video", medium.digest, medium.detail)


def _check_token_ids(params: SamplingParams, vocabulary_size: int) -> None:
    for param, ids in (("logit_bias", params.logit_bias), ("stop_token_ids", params.stop_token_ids)):
        for token_id in ids:
            if not 0 <= token_id < vocabulary_size:
                raise BadRequest(
                    f"{param}: token {token_id} is not in the vocabulary of {vocabulary_size}.", param=param
                )
