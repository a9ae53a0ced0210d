"""The `Engine` of models that engines elsewhere serve."""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.errors import ContextLengthExceeded, GenerationInterrupted, WrongTask
from tis.engine.grammar.grammar import Grammar
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import ModelDescription
from tis.engine.models.model_status import ModelStatus
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, PairScores
from tis.engine.pooling.token_row import Text
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Medium, MediumKind, RawPrompt, media_of
from tis.engine.request_rules import RequestRules
from tis.engine.resumable_request import EmittedTokens, ResumableRequest, SavedMedium
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.random_stream import new_seed
from tis.engine.speech.heard import HeardWindow, HearingOptions, SpeechDescription, SpeechWindow
from tis.engine.upstream_call import UpstreamCall
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.errors import BadRequest, Draining
from tis.upstream.chat_body import chat_body, lacking
from tis.upstream.completion_body import completion_body
from tis.upstream.endpoints import Endpoint, EndpointPool
from tis.upstream.errors import unreachable
from tis.upstream.hearing import DESCRIPTION
from tis.upstream.http_client import UpstreamHttp
from tis.upstream.media_parts import estimated_media_tokens, files_of
from tis.upstream.no_tokenizer import NO_TOKENIZER
from tis.upstream.prompt_lists import choices_of_prompts, listed_answer, prepared_again, require_continuable
from tis.upstream.refused import RefusedElsewhere
from tis.upstream.speaking import cut_text, describe_voice
from tis.upstream.token_counts import count_tokens, estimated_tokens
from tis.upstream.upstream_model import UpstreamModel
from tis.upstream.upstream_request import UpstreamRequest
from tis.upstream.whole_answers import embed_at, hear_at, say_at, score_at

_CHAT, _COMPLETION = "/chat/completions", "/completions"


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    queue_size: int = 64
    max_running: int = 32
    max_context_tokens: int = 0
    # Of SamplingParams, as in `EngineLimits`.
    operator_defaults: Mapping[str, Any] = field(default_factory=dict)
    builtin_defaults: Mapping[str, Any] = field(default_factory=dict)


class UpstreamEngine(RefusedElsewhere):
    def __init__(self, models: Sequence[CatalogueEntry], keys: Mapping[str, str], limits: UpstreamLimits) -> None:
        """`keys`: of the upstreams, by the id of the model."""
        self.models = models
        self.opened_at = time.time()
        self._keys = keys
        self._limits = limits
        self._rules = RequestRules(
            limits.max_context_tokens,
            compresses=False,
            operator_defaults=limits.operator_defaults,
            builtin_defaults=limits.builtin_defaults,
        )
        self._models: dict[str, UpstreamModel] = {}
        self._draining = asyncio.Event()

    async def open(self) -> None:
        tls = None
        if any(url.startswith("https:") for entry in self.models for url in entry.upstream):
            tls = await asyncio.to_thread(ssl.create_default_context)
        for entry in self.models:
            self._models[entry.id] = self._model(entry, tls)
            self._models[entry.id].pool.open()

    def _model(self, entry: CatalogueEntry, tls: ssl.SSLContext | None) -> UpstreamModel:
        key, limits = self._keys.get(entry.id, ""), self._limits
        endpoints = [Endpoint(UpstreamHttp(url, key, entry.upstream_seconds, tls)) for url in entry.upstream]
        pool = EndpointPool(endpoints, entry.upstream_model or entry.id, entry.upstream_seconds)
        return UpstreamModel(
            *(entry, pool, key),
            entry.limits.max_batch_size or limits.max_running,
            entry.limits.max_queue_size or limits.queue_size,
        )

    def drain(self) -> None:
        self._draining.set()

    async def close(self) -> None:
        self.drain()
        await asyncio.gather(*(model.close() for model in self._models.values()))

    @property
    def statuses(self) -> Sequence[ModelStatus]:
        return [model.status for model in self._models.values()]

    @property
    def is_draining(self) -> bool:
        return self._draining.is_set()

    @property
    def loss(self) -> str | None:
        return None

    @property
    def is_starting(self) -> bool:
        return False

    async def until_draining(self) -> None:
        await self._draining.wait()

    async def describe(self, model_id: str) -> ModelDescription:
        model = self._models[model_id]
        is_chat = model.entry.task == "chat"
        return ModelDescription(
            context_length=self._context_length(model),
            media=model.entry.upstream_media,
            calls_tools=is_chat,
            follows_effort=is_chat and model.abilities.takes_effort,
            has_grammars=is_chat,
            voices=describe_voice(model).voices if model.entry.task == "speech" else (),
            takes_instructions=True,
            takes_seed=model.is_ours,
        )

    def default_sampling(self, model_id: str) -> SamplingParams:
        return self._rules.layered({}, self._models[model_id].entry, {})

    async def watch_load(self, model_id: str) -> AsyncGenerator[ModelStatus, None]:
        """There is nothing to load: it answers, or it does not."""
        model = self._models[model_id]
        await model.pool.probe_now()
        if not model.pool.is_usable:
            raise unreachable().error
        yield model.status

    async def unload(self, model_id: str) -> ModelStatus:
        raise BadRequest("This model is served elsewhere: it cannot be unloaded here.", param="model")

    async def media_kinds(self, model_id: str) -> Collection[MediumKind]:
        self._require_open(is_resumed=False)
        return self._models[model_id].entry.upstream_media

    async def template_variables(self, model_id: str) -> AbstractSet[str]:
        """Its template is not known here, and ignores what it does not use."""
        self._require_open(is_resumed=False)
        return frozenset({"tools", "enable_thinking", "thinking", "thinking_budget", "reasoning_effort"})

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
        self._require_open(is_resumed=is_resumed)
        model = self._model_for(model_id, "chat")
        params, unset = self._sampling(model, sampling)
        body = chat_body(model.model, prompt, params, unset, grammar, model.abilities, cache_salt)
        return await self._prepared(
            *(model, _CHAT, body, params, unset, sampling, cache_salt),
            media=media_of(prompt.messages),
            is_only_counted=prompt.is_only_counted,
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
        self._require_open(is_resumed=False)
        model = self._model_for(model_id, "chat")
        if prompt_logprobs is not None:
            raise lacking("echo")  # with log probabilities: the tokens of the prompt are not known here
        params, unset = self._sampling(model, sampling)
        prepared = []
        for number, prompt in enumerate(prompts):
            body = completion_body(model.model, prompt, params, unset, grammar, model.abilities, cache_salt)
            param = f"prompt.{number}" if len(prompts) > 1 else "prompt"
            prepared.append(
                await self._prepared(
                    *(model, _COMPLETION, body, params, unset, sampling, cache_salt), is_raw=True, param=param
                )
            )
        return prepared

    def _sampling(self, model: UpstreamModel, sampling: Mapping[str, Any]) -> tuple[SamplingParams, tuple[str, ...]]:
        """The parameters, and the names of those that nobody has set."""
        known = {**self._limits.operator_defaults, **model.entry.defaults, **sampling}
        unset = tuple(name for name in SamplingParams.__dataclass_fields__ if known.get(name) is None)
        return self._rules.layered(sampling, model.entry, {}), unset

    async def _prepared(
        self,
        model: UpstreamModel,
        path: str,
        body: dict[str, Any],
        params: SamplingParams,
        unset: tuple[str, ...],
        sampling: Mapping[str, Any],
        cache_salt: str,
        *,
        media: Sequence[Medium] = (),
        is_raw: bool = False,
        is_only_counted: bool = False,
        param: str = "messages",
    ) -> PreparedRequest:
        """Counts the prompt, and cuts `max_tokens` to what has room behind it."""
        counted = None if media else await count_tokens(model, body)
        num_tokens = await estimated_tokens(body) + estimated_media_tokens(media) if counted is None else counted
        context = self._context_length(model)
        if context and counted and not is_only_counted:
            if counted >= context:
                raise ContextLengthExceeded(context, f"you requested {counted} tokens in the {param}.", param=param)
            if "max_tokens" in sampling and params.max_tokens > context:
                raise ContextLengthExceeded(
                    context, f"you requested {params.max_tokens} tokens in the completion alone.", param="max_tokens"
                )
            params = params.with_max_tokens(min(params.max_tokens, context - counted))
            body["max_tokens"] = params.max_tokens
        return PreparedRequest(
            *(model.entry.id, model.model, NO_TOKENIZER, [], params),
            new_seed() if params.seed is None else params.seed,
            cache_salt=cache_salt,
            is_raw=is_raw,
            media=[SavedMedium(one.kind, one.digest, one.detail) for one in media],
            upstream=UpstreamCall(path, body, num_tokens, counted is None, unset),
            upstream_media=files_of(media),
        )

    def submit(self, prepared: PreparedRequest, *, is_resumed: bool = False, ticket: Ticket | None = None) -> Answer:
        self._require_open(is_resumed=is_resumed)
        model = self._models[prepared.model_id]
        assert prepared.upstream
        request = UpstreamRequest(prepared, prepared.upstream, model.cancel, ticket, is_resumed=is_resumed)
        return _submitted(model, request, ticket)

    def submit_list(self, prepared: Sequence[PreparedRequest], *, ticket: Ticket | None = None) -> Answer:
        if len(prepared) == 1:
            return self.submit(prepared[0], ticket=ticket)
        self._require_open(is_resumed=False)
        model = self._models[prepared[0].model_id]
        if ticket:
            ticket.queue(sum(one.num_prompt_tokens for one in prepared))
        return listed_answer(model, prepared, [None] * len(prepared), ticket)

    async def embed(
        self, model_id: str, texts: Sequence[Text], options: EmbeddingOptions, ticket: Ticket | None = None
    ) -> Embeddings:
        self._require_open(is_resumed=False)
        model = self._model_for(model_id, "embedding")
        return await embed_at(model, texts, options, ticket)

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
        model = self._model_for(model_id, "rerank")
        return await score_at(model, pairs, instruction, ticket, truncate=truncate)

    async def describe_speech(self, model_id: str) -> SpeechDescription:
        self._require_open(is_resumed=False)
        self._model_for(model_id, "transcription")
        return DESCRIPTION

    async def detect_language(
        self, model_id: str, samples: Any, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> str | None:
        window = SpeechWindow(samples, HearingOptions())
        return (await self.hear(model_id, window, ticket, is_begun=is_begun)).language

    async def hear(
        self, model_id: str, window: SpeechWindow, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> HeardWindow:
        return await hear_at(self._model_for(model_id, "transcription"), window, ticket, is_begun=is_begun)

    async def describe_voice(self, model_id: str) -> VoiceDescription:
        self._require_open(is_resumed=False)
        return describe_voice(self._model_for(model_id, "speech"))

    async def cut_text(self, model_id: str, text: str, pace: float = 1.0) -> CutText:
        return await cut_text(text, pace)

    async def say(
        self, model_id: str, sentence: SentenceToSay, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> Any:
        """Also while draining: the sentence may be one of many of a text that was accepted before."""
        return await say_at(self._model_for(model_id, "speech"), sentence, ticket, is_begun=is_begun)

    async def resume(
        self,
        saved: ResumableRequest,
        emitted: Sequence[EmittedTokens],
        media: Sequence[Medium] = (),
        ticket: Ticket | None = None,
    ) -> Answer:
        model = await self._model_to_resume(saved)
        [prepared] = prepared_again([saved], media)
        assert prepared.upstream
        request = UpstreamRequest(prepared, prepared.upstream, model.cancel, ticket, emitted=emitted)
        if request.is_over:
            return request.answer
        require_continuable(request, model)
        return _submitted(model, request, ticket)

    async def resume_list(
        self, saved: Sequence[ResumableRequest], emitted: Sequence[EmittedTokens], ticket: Ticket | None = None
    ) -> Answer:
        if len(saved) == 1:
            return await self.resume(saved[0], emitted, ticket=ticket)
        model = await self._model_to_resume(saved[0])
        if ticket:
            ticket.queue(sum(one.num_prompt_tokens for one in saved), is_resumed=True)
        return listed_answer(model, prepared_again(saved), choices_of_prompts(saved, emitted), ticket)

    async def _model_to_resume(self, saved: ResumableRequest) -> UpstreamModel:
        """Raises Unavailable if it may be resumed later."""
        if self.is_draining:
            raise Draining
        model = self._models.get(saved.model_id)
        if model is None or saved.upstream is None or saved.revision != model.model:
            raise GenerationInterrupted(f"The answer cannot be resumed: {saved.model_id} is another model now.")
        await model.pool.probe_now()
        if not model.pool.is_usable:
            raise unreachable().error
        return model

    def _model_for(self, model_id: str, task: str) -> UpstreamModel:
        model = self._models.get(model_id)
        if model is None:
            raise GenerationInterrupted(f"The answer cannot be resumed: {model_id} is not served any more.")
        if model.entry.task != task:
            raise WrongTask(model_id, model.entry.task)
        return model

    def _context_length(self, model: UpstreamModel) -> int | None:
        lengths = [model.pool.context_length, self._rules.context_limit(model.entry)]
        return min((length for length in lengths if length), default=None)

    def _require_open(self, *, is_resumed: bool) -> None:
        if self.is_draining and not is_resumed:
            raise Draining


def _submitted(model: UpstreamModel, request: UpstreamRequest, ticket: Ticket | None) -> Answer:
    if ticket:
        ticket.queue(request.num_prompt_tokens, is_resumed=request.is_resumed)
    model.submit(request)
    return request.answer
