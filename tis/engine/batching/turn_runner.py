"""Runs models that cannot be batched: requests take turns. A turn is a token of an answer, or a chunk of a prompt.

`Scheduler` plans a round as it plans a step of the batch; each chunk of it is computed alone, in a step of its own, so
that nobody waits longer than for a turn to get in, and not longer than a round for the next token.
"""

import logging
import time
from collections import deque
from collections.abc import Sequence as Listing
from dataclasses import replace
from typing import Any

from tis.engine.batching.picked_row import PickedRow, pick_first
from tis.engine.batching.prompt_scores import score_prompt
from tis.engine.batching.scheduled_runner import ScheduledRunner
from tis.engine.batching.scheduler import ScheduledChunk, Scheduler
from tis.engine.batching.sequence import Sequence
from tis.engine.batching.state_pool import StatePool
from tis.engine.batching.step_budget import StepBudget
from tis.engine.batching.stepped_model import OwnCache, SteppedModel
from tis.engine.batching.towers import inputs_for
from tis.engine.faults import free_memory, is_out_of_memory
from tis.engine.request import Delivery, HandOut, Request
from tis.engine.text.tokenizer import Tokenizer
from tis.engine.weights.adapted_linear import AdapterRows, adapting

log = logging.getLogger("tis.engine")


class TurnRunner(ScheduledRunner):
    def __init__(
        self,
        stepped: SteppedModel,
        tokenizer: Tokenizer,
        cache_bytes: int,
        *,
        tokens_per_step: int = 512,
        step_seconds: float = 0,
        max_running: int = 32,
        adapters: Listing[str] = (),
    ) -> None:
        """`cache_bytes`: of the caches of all sequences together. `adapters`: as of `BatchRunner`."""
        self._adapters = {name: number for number, name in enumerate(adapters)}
        self._stepped = stepped
        self._tokens_per_step = tokens_per_step
        self._cache_bytes = cache_bytes
        # Some families compute a few tokens in the time of hundreds: a part may take twice as long as it must.
        self._budget = StepBudget(step_seconds and max(step_seconds, 2 * stepped.piece_seconds), tokens_per_step, 0)
        self._budget.computed(0, stepped.piece_seconds)
        self._computes_whole = False
        super().__init__(stepped.model, tokenizer, max_running)

    @property
    def has_bounded_steps(self) -> bool:
        return not self._computes_whole

    def step(self, hand_out: HandOut) -> None:
        try:
            super().step(hand_out)
        finally:
            self._drop_caches()

    def drop_all(self) -> None:
        super().drop_all()
        self._drop_caches()

    def _new_scheduler(self) -> Scheduler:
        self._caches: dict[Sequence, OwnCache] = {}
        self._turns: deque[ScheduledChunk] = deque()
        self._pool = StatePool(self._stepped.costs, self._cache_bytes)
        return Scheduler(self._pool, self._tokens_per_step)

    def _new_sequences(self, request: Request) -> list[Sequence]:
        # The pictures of a prompt are put into it by the first forward pass.
        starts_whole = request.prepared.vision is not None or not self._stepped.splits_prompts
        return [
            Sequence(request, choice, next(self._arrivals), starts_whole=starts_whole) for choice in request.unfinished
        ]

    def _compute_step(self, deliveries: list[Delivery]) -> list[PickedRow]:
        chunk = self._next_turn()
        if chunk is None:
            return []
        has_pictures = chunk.sequence.request.prepared.vision is not None and not chunk.start
        self._computes_whole = has_pictures or chunk.num_tokens > self._tokens_per_step
        try:
            with adapting(self._adapted(chunk.sequence.request)):
                logits = self._compute(chunk)
        except Exception as error:
            self._require_device()
            if is_out_of_memory(error) and self._make_room(chunk.sequence, error):
                return []
            return [PickedRow(chunk.sequence, error)]
        finally:
            self._computes_whole = False
        self.scheduler.mark_computed(chunk)
        deliveries += self._scores([chunk])
        return pick_first(logits[None], [chunk]) if chunk.samples_token else []

    def _next_turn(self) -> ScheduledChunk | None:
        while self._turns:
            chunk = self._turns.popleft()
            # Others may have taken its memory or its place since the round was planned.
            if chunk.sequence.block_run and chunk.start == chunk.sequence.num_computed:
                return chunk
        # A plan shares its budget between two prompts, but each is computed alone.
        num_prompts = sum(not sequence.is_decoding for sequence in self.scheduler.sequences)
        chunks = self.scheduler.plan(self._budget.next.num_prompt_tokens * min(2, max(1, num_prompts))).chunks
        self._drop_caches()
        if not self._stepped.takes_turns:
            chunks = [chunk for chunk in chunks if chunk.sequence is self.scheduler.running[0]]
        self._turns.extend(map(self._turn_of, chunks))
        return self._turns.popleft() if self._turns else None

    def _turn_of(self, chunk: ScheduledChunk) -> ScheduledChunk:
        """What a grammar forced takes a turn per token, if the model takes nothing but single tokens after a prompt."""
        if chunk.start and not self._stepped.splits_prompts:
            return replace(chunk, stop=chunk.start + 1)
        return chunk

    def _compute(self, chunk: ScheduledChunk) -> Any:
        sequence, began = chunk.sequence, time.monotonic()
        cache = self._caches.get(sequence)
        if cache is None or not chunk.start:  # it begins again, after others had its place
            request = sequence.request
            cache = self._stepped.new_cache(request.prompt_ids, self._pictures_of(request))
            self._caches[sequence] = cache
        if sequence.scores_prompt:
            rows = cache.compute_all(chunk.token_ids)
            score_prompt(sequence, chunk.start, rows, self._tokenizer)
            logits = rows[-1]
        else:
            logits = cache.compute(chunk.token_ids)
        if not chunk.start or chunk.num_tokens > 1:
            self._budget.computed(chunk.num_tokens, time.monotonic() - began)
        return logits

    def _adapted(self, request: Request) -> list[AdapterRows]:
        adapter = request.prepared.adapter
        return [AdapterRows(self._adapters[adapter], None)] if adapter else []

    def _pictures_of(self, request: Request) -> dict[str, Any]:
        vision = request.prepared.vision
        return inputs_for(self._model, vision.generate_kwargs()) if vision else {}

    def _make_room(self, sequence: Sequence, error: Exception) -> bool:
        """There was less memory than the caches were measured to take: fewer sequences run from now on.

        The youngest other one and this one, whose cache is half computed, are computed again. False if it is alone.
        """
        others = [one for one in self.scheduler.running if one is not sequence]
        if not others:
            return False
        log.warning("no memory for %d caches, so fewer requests run at once: %s", len(others) + 1, error)
        error.__traceback__ = None  # its frames hold the tensors that did not fit
        self.scheduler.take_out(others[-1])
        self._pool.shrink()
        self.scheduler.take_out(sequence)
        for one in (others[-1], sequence):
            self.scheduler.add(one)
        self._drop_caches()
        free_memory()
        return True

    def _drop_caches(self) -> None:
        """Those of sequences that have ended, or have left their memory to others."""
        for sequence in [one for one in self._caches if not one.block_run]:
            del self._caches[sequence]
