"""The `Engine` of models that engines elsewhere serve."""

import asyncio
import json
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
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Medium, MediumKind
from tis.engine.request_rules import RequestRules
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.random_stream import new_seed
from tis.engine.upstream_call import UpstreamCall
from tis.errors import BadRequest, Draining
from tis.upstream.chat_body import chat_body
from tis.upstream.endpoints import Endpoint, EndpointPool
from tis.upstream.errors import UpstreamFault, unreachable
from tis.upstream.http_client import UpstreamHttp
from tis.upstream.no_tokenizer import NO_TOKENIZER
from tis.upstream.refused import RefusedElsewhere
from tis.upstream.upstream_model import UpstreamModel
from tis.upstream.upstream_request import UpstreamRequest

_BYTES_PER_TOKEN = 4  # of an estimate
_MAX_COUNT_SECONDS = 10.0
_CHAT = "/chat/completions"


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
            calls_tools=is_chat,
            follows_effort=is_chat and model.abilities.takes_effort,
            has_grammars=is_chat,
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
        return ()

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
        params = self._rules.layered(sampling, model.entry, {})
        known = {**self._limits.operator_defaults, **model.entry.defaults, **sampling}
        unset = tuple(name for name in SamplingParams.__dataclass_fields__ if known.get(name) is None)
        body = chat_body(model.model, prompt, params, unset, grammar, model.abilities, cache_salt)
        num_tokens = await self._count(model, body)
        is_estimate = num_tokens is None
        if num_tokens is None:
            num_tokens = await _estimated(body)
        context = self._context_length(model)
        if context and not is_estimate and not prompt.is_only_counted:
            if num_tokens >= context:
                raise ContextLengthExceeded(context, f"you requested {num_tokens} tokens in the messages.")
            if "max_tokens" in sampling and params.max_tokens > context:
                raise ContextLengthExceeded(
                    context, f"you requested {params.max_tokens} tokens in the completion alone.", param="max_tokens"
                )
            params = params.with_max_tokens(min(params.max_tokens, context - num_tokens))
            body["max_tokens"] = params.max_tokens
        return PreparedRequest(
            *(model_id, model.model, NO_TOKENIZER, [], params),
            new_seed() if params.seed is None else params.seed,
            cache_salt=cache_salt,
            upstream=UpstreamCall(_CHAT, body, num_tokens, is_estimate, unset),
        )

    def submit(self, prepared: PreparedRequest, *, is_resumed: bool = False, ticket: Ticket | None = None) -> Answer:
        self._require_open(is_resumed=is_resumed)
        model = self._models[prepared.model_id]
        assert prepared.upstream
        request = UpstreamRequest(prepared, prepared.upstream, model.cancel, ticket, is_resumed=is_resumed)
        return _submitted(model, request, ticket)

    async def resume(
        self,
        saved: ResumableRequest,
        emitted: Sequence[EmittedTokens],
        media: Sequence[Medium] = (),
        ticket: Ticket | None = None,
    ) -> Answer:
        if self.is_draining:
            raise Draining
        model = self._models.get(saved.model_id)
        if model is None or saved.upstream is None or saved.revision != model.model:
            raise GenerationInterrupted(f"The answer cannot be resumed: {saved.model_id} is another model now.")
        prepared = PreparedRequest(
            *(saved.model_id, saved.revision, NO_TOKENIZER, [], saved.params, saved.seed),
            cache_salt=saved.cache_salt,
            upstream=saved.upstream,
        )
        request = UpstreamRequest(prepared, saved.upstream, model.cancel, ticket, emitted=emitted)
        if request.is_over:
            return request.answer
        if request.has_begun and (why := request.why_not_continued(model.abilities)):
            raise GenerationInterrupted(f"The server was restarted during this answer, which cannot go on: {why}.")
        await model.pool.probe_now()
        if not model.pool.is_usable:
            raise unreachable().error
        return _submitted(model, request, ticket)

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

    async def _count(self, model: UpstreamModel, body: Mapping[str, Any]) -> int | None:
        """The tokens of a prompt, by the upstream's own tokenizer; None if it cannot tell."""
        endpoint = model.pool.choose((), ()) if model.abilities.counts_chats else None
        if endpoint is None:
            return None
        names = (
            "model",
            "messages",
            "tools",
            "chat_template_kwargs",
            "add_generation_prompt",
            "continue_final_message",
        )
        asked = {name: body[name] for name in names if name in body}
        try:
            counted = await endpoint.http.post("/tokenize", asked, _MAX_COUNT_SECONDS, at_root=True)
        except UpstreamFault as fault:
            if isinstance(fault.error, BadRequest):
                raise fault.error from None
            return None
        count = counted.get("count") if isinstance(counted, dict) else None
        return count if type(count) is int and 0 < count < 2**31 else None

    def _require_open(self, *, is_resumed: bool) -> None:
        if self.is_draining and not is_resumed:
            raise Draining


def _submitted(model: UpstreamModel, request: UpstreamRequest, ticket: Ticket | None) -> Answer:
    if ticket:
        ticket.queue(request.num_prompt_tokens, is_resumed=request.is_resumed)
    model.submit(request)
    return request.answer


async def _estimated(body: Mapping[str, Any]) -> int:
    text = await asyncio.to_thread(json.dumps, [body.get("messages"), body.get("tools")], ensure_ascii=False)
    return 1 + len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN
