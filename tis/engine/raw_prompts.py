"""Prompts without a chat template, of which one answer has the choices: prepared, submitted and resumed together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.completion import Completion, begin_completions
from tis.engine.grammar.compile_queue import compile_for_resume, compile_grammar
from tis.engine.grammar.grammar import Grammar
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.model_slot import ModelSlot
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import RawPrompt
from tis.engine.prompt_list import listed_requests
from tis.engine.raw_requests import prepare_raw_prompts
from tis.engine.request_rules import RequestRules, adapter_of
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.resume import find_reasoning_limit, replay_completions, restore_request
from tis.engine.threads import Bridge


class RawPrompts:
    """Its methods run on the event loop."""

    def __init__(self, bridge: Bridge, rules: RequestRules) -> None:
        self._bridge = bridge
        self._rules = rules

    async def prepare(
        self,
        entry: CatalogueEntry,
        loaded: LoadedModel,
        prompts: Sequence[RawPrompt],
        sampling: Mapping[str, Any],
        grammar: Grammar | None,
        *,
        prompt_logprobs: int | None,
        prompt_only: bool,
        cache_salt: str,
        ticket: Ticket | None,
    ) -> list[PreparedRequest]:
        def prepare() -> list[PreparedRequest]:
            max_context = self._rules.max_context(entry, loaded)
            params = self._rules.params(entry, loaded, sampling, max_context)
            made = prepare_raw_prompts(
                *(entry.id, adapter_of(entry), loaded, prompts, params, max_context),
                prompt_logprobs=prompt_logprobs,
                prompt_only=prompt_only,
                cache_salt=cache_salt,
            )
            # No share of the tokens is for reasoning: a grammar applies from the first one on.
            return [replace(one, reasoning_limit=find_reasoning_limit(loaded, one, has_grammar=False)) for one in made]

        prepared = await self._bridge.in_pool(prepare)
        if grammar is not None:
            compiled = await compile_grammar(grammar, loaded.grammars, self._bridge, entry.tool_format, ticket)
            prepared = [replace(one, grammar=compiled) for one in prepared]
        if prepared[0].is_constrained:
            await self._bridge.in_pool(lambda: _begin_all_completions(prepared))
        return prepared

    def submit(self, slot: ModelSlot, prepared: Sequence[PreparedRequest], ticket: Ticket | None) -> Answer:
        num_tokens = sum(len(one.prompt_ids) for one in prepared)
        if ticket:
            ticket.queue(num_tokens)
        made = listed_requests(prepared, [None] * len(prepared), slot.submit, slot.drop_if_queued, ticket)
        made.start(is_accepted=False)
        return made.answer

    async def resume(
        self,
        slot: ModelSlot,
        adapter: str,
        loaded: LoadedModel,
        saved: Sequence[ResumableRequest],
        emitted: Sequence[EmittedTokens],
        ticket: Ticket | None,
    ) -> Answer:
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


def _begin_all_completions(prepared: Sequence[PreparedRequest]) -> None:
    for one in prepared:
        begin_completions(one)
