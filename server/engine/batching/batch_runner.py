"""Runs many requests at once: plan a step, compute it, choose a token for each, hand them out.

A request that fails fails alone; it is told, and the others never notice.
"""

from collections.abc import Sequence as Listing
from functools import partial
from itertools import count
from typing import Any

import torch

from server.engine.batching.attention import NAME, Batch, Stretch
from server.engine.batching.block_pool import BlockPool
from server.engine.batching.paged_cache import PagedCache
from server.engine.batching.scheduler import Plan, Row, Scheduler
from server.engine.batching.sequence import Sequence
from server.engine.described import logprob_of
from server.engine.request import Delivery, HandOut, Request
from server.engine.sampling import NoCandidates, Picked, pick_all
from server.engine.tokenizer import Tokenizer
from server.errors import ContextLengthExceeded, GenerationFailed
from server.observability.logs import log_fault


class BatchRunner:
    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        cache: PagedCache,
        *,
        tokens_per_step: int = 512,
        max_running: int = 32,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._max_running = max_running
        self._tokens_per_step = tokens_per_step
        self._cache = cache
        self._arrivals = count()
        self._running: list[Request] = []
        self.scheduler = self._new_scheduler()
        model.set_attn_implementation({"text_config": NAME} if "text_config" in model.config.sub_configs else NAME)

    @property
    def has_room(self) -> bool:
        return len(self.scheduler.sequences) < self._max_running

    @property
    def running(self) -> list[Request]:
        return self._running

    def admit(self, request: Request) -> None:
        leader: Sequence | None = None
        capacity = self._cache.num_blocks * self._cache.block_size
        if len(request.prompt_ids) + request.prepared.params.max_tokens > capacity:
            raise ContextLengthExceeded(capacity, "prompt and answer are longer than the cache (CACHE_TOKENS).")
        for choice in request.unfinished:
            sequence = Sequence(request, choice, next(self._arrivals), leader)
            leader = leader or sequence
            self.scheduler.add(sequence)
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        self._drop_cancelled(hand_out)
        plan = self.scheduler.plan()
        if plan.rows:
            self._note_cached(plan)
            with torch.inference_mode():
                picked = self._compute(plan)
            hand_out(self._accept(picked))

    def drop_all(self) -> None:
        # A step that failed may have left blocks that are not what their hashes promise.
        for sequence in self.scheduler.sequences:
            sequence.is_gone = True
        self.scheduler = self._new_scheduler()
        self._running = []

    def _new_scheduler(self) -> Scheduler:
        return Scheduler(BlockPool(self._cache.num_blocks, self._cache.block_size), self._tokens_per_step)

    def _drop_cancelled(self, hand_out: HandOut) -> None:
        for request in [request for request in self._running if request.is_cancelled]:
            self._forget(request)
            hand_out(request.cancel_choices())

    def _forget(self, request: Request) -> None:
        self._running.remove(request)
        for sequence in self.scheduler.sequences:
            if sequence.request is request:
                self.scheduler.drop(sequence)

    @staticmethod
    def _note_cached(plan: Plan) -> None:
        for row in plan.rows:
            first_choice = row.sequence.leader is None
            if first_choice and not row.sequence.was_started:
                request = row.sequence.request
                # Of a resumed answer, the cache may hold tokens too.
                request.answer.cached_tokens = min(row.start, len(request.prompt_ids))
            row.sequence.was_started = True

    def _compute(self, plan: Plan) -> list[tuple[Sequence, Picked | Exception]]:
        """The next token of every sequence whose known tokens are computed now."""
        self._cache.copy(plan.copies)
        # Single tokens first: the attention treats them together.
        plan.rows.sort(key=lambda row: row.stop - row.start > 1)
        giving = [row.sequence for row in plan.rows if row.gives_token]
        logits = self._forward(plan.rows)
        for row in plan.rows:
            self.scheduler.computed(row)
        if not giving:
            return []
        return list(zip(giving, pick_all(logits, [sequence.choice for sequence in giving]), strict=True))

    def _forward(self, rows: Listing[Row]) -> Any:
        """A row of logits for each row that gives a token."""
        stretches: list[Stretch] = []
        ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        for row in rows:
            assert row.sequence.span
            first_slot = row.sequence.span.start * self._cache.block_size
            stretches.append(Stretch(len(ids), row.stop - row.start, first_slot, row.start))
            ids += row.sequence.tokens(row.start, row.stop)
            positions += range(row.start, row.stop)
            slots += range(first_slot + row.start, first_slot + row.stop)
        last = [stretch.end - 1 for stretch, row in zip(stretches, rows, strict=True) if row.gives_token]
        out = self._model(
            input_ids=self._numbers(ids)[None],
            # Given always: else some models make them up from what they saw of other requests.
            position_ids=self._numbers(positions)[None],
            use_cache=False,
            logits_to_keep=self._numbers(last),
            batch=Batch(self._cache, stretches, self._numbers(slots)),
        )
        return out.logits[0].float()

    def _numbers(self, values: list[int]) -> Any:
        return torch.tensor(values, dtype=torch.long, device=self._model.device)

    def _accept(self, picked: Listing[tuple[Sequence, Picked | Exception]]) -> list[Delivery]:
        deliveries: list[Delivery] = []
        for sequence, one in picked:
            if not sequence.is_gone:
                deliveries += self._accept_one(sequence, one)
        return deliveries

    def _accept_one(self, sequence: Sequence, picked: Picked | Exception) -> list[Delivery]:
        request = sequence.request
        try:
            if isinstance(picked, Exception):
                raise picked
            describe = None if picked.logprob is None else partial(logprob_of, picked, self._tokenizer)
            piece = sequence.choice.accept(picked.token_id, describe)
        except Exception as fault:  # its reader is told, and the log has the reason
            return [self._failed(request, fault)]
        if sequence.choice.is_finished:
            self.scheduler.drop(sequence)
            if not request.unfinished:
                self._running.remove(request)
        return [(request, piece)] if piece else []

    def _failed(self, request: Request, fault: Exception) -> Delivery:
        self._forget(request)
        if isinstance(fault, NoCandidates):
            return request, GenerationFailed("The model gave no number to choose a token by (NaN or infinity).")
        log_fault("a request failed in its batch", fault, request.label)
        return request, GenerationFailed(
            f"The model failed on this request; the log has the reason under {request.label}."
        )
