"""What the runners share whose requests run side by side: places, cancelling, the tokens that are picked, failures.

When one request fails, its reader gets the error, and the others go on.
"""

import logging
from collections.abc import Sequence as Listing
from functools import partial
from itertools import count
from typing import Any

import torch

from tis.engine.batching.picked_row import PickedRow, pick_behind_drafts
from tis.engine.batching.places import Places
from tis.engine.batching.scheduler import ScheduledChunk, Scheduler
from tis.engine.batching.sequence import Sequence
from tis.engine.errors import ContextLengthExceeded, OutOfMemory
from tis.engine.faults import DeviceLost, device_answers, is_out_of_memory
from tis.engine.request import Delivery, HandOut, Request
from tis.engine.sampling.pick import NoCandidates, PickedToken, logprob_of
from tis.engine.text.tokenizer import Tokenizer
from tis.errors import GenerationFailed
from tis.observability.logs import log_exception
from tis.observability.metrics import DRAFT_TOKENS

log = logging.getLogger("tis.engine")


class ScheduledRunner:
    num_passes = 0

    def __init__(self, model: Any, tokenizer: Tokenizer, max_running: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._max_running = max_running
        self._arrivals = count()
        self._running: list[Request] = []
        self.scheduler = self._new_scheduler()
        self._places = Places(self.scheduler, max_running)

    @property
    def has_bounded_steps(self) -> bool:
        return True

    @property
    def has_room(self) -> bool:
        return self._places.has_room

    def owes_place(self, owner: str) -> bool:
        return self._places.owes(owner)

    @property
    def cache_use(self) -> float:
        return self.scheduler.cache_use

    @property
    def running(self) -> list[Request]:
        return self._running

    def admit(self, request: Request) -> None:
        num_cached = len(request.prompt_ids) + request.prepared.params.max_tokens - 1  # nothing comes behind the last
        if num_cached > self.scheduler.max_tokens:
            raise ContextLengthExceeded(
                self.scheduler.max_tokens, "prompt and answer are longer than the cache (CACHE_TOKENS)."
            )
        sequences = self._new_sequences(request)
        self._places.make_room(request.owner)
        for sequence in sequences:
            self.scheduler.add(sequence)
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        deliveries: list[Delivery] = []
        try:
            self._drop_cancelled(deliveries)
            self._places.bring_back()
            with torch.inference_mode():
                self._accept(self._compute_step(deliveries), deliveries)
        finally:  # a request that has left `running` gets its error here, even if the step fails later
            hand_out(deliveries)

    def drop_all(self) -> None:
        # A failed step may have left blocks whose content does not match their hashes.
        for sequence in self._places.sequences:
            sequence.is_dropped = True
        self.scheduler = self._new_scheduler()
        self._places = Places(self.scheduler, self._max_running)
        self._running = []

    def device_answers(self) -> bool:
        return device_answers(self._model.device)

    def _new_scheduler(self) -> Scheduler:
        raise NotImplementedError

    def _new_sequences(self, request: Request) -> list[Sequence]:
        """One for each choice that is not finished."""
        raise NotImplementedError

    def _compute_step(self, deliveries: list[Delivery]) -> list[PickedRow]:
        """Computes what a step does, and picks the next token of every sequence whose tokens are all computed."""
        raise NotImplementedError

    def _drop_cancelled(self, deliveries: list[Delivery]) -> None:
        for request in [request for request in self._running if request.is_cancelled]:
            cancelled = request.cancel_completions()
            self._remove(request)
            deliveries += cancelled

    def _remove(self, request: Request) -> None:
        for sequence in self._places.sequences:
            if sequence.request is request:
                self._places.drop(sequence)
        self._running.remove(request)

    def _require_device(self) -> None:
        if not self.device_answers():
            raise DeviceLost("The device answers no more after a failed step; the log has the reason.")

    @staticmethod
    def _scores(chunks: Listing[ScheduledChunk]) -> list[Delivery]:
        """The log probabilities of prompts that these chunks completed."""
        return [(chunk.sequence.request, piece) for chunk in chunks for piece in chunk.sequence.choice.take_scores()]

    def _accept(self, rows: Listing[PickedRow], deliveries: list[Delivery]) -> None:
        for row in rows:
            if row.draft:
                DRAFT_TOKENS.labels(row.drafted_by).inc(len(row.draft))
        while rows:
            for row in rows:
                if not row.sequence.is_dropped:
                    deliveries += self._accept_one(row.sequence, row.picked)
            rows = pick_behind_drafts(rows, self.scheduler)

    def _accept_one(self, sequence: Sequence, picked: PickedToken | Exception) -> list[Delivery]:
        request = sequence.request
        try:
            if isinstance(picked, Exception):
                raise picked
            describe = None if picked.logprob is None else partial(logprob_of, picked, self._tokenizer)
            piece = sequence.choice.accept(picked.token_id, describe)
        except Exception as error:  # its reader gets it, and the log has the details
            return [self._fail(request, error)]
        if sequence.choice.is_finished:
            self.scheduler.drop(sequence)
            if not request.unfinished:
                self._running.remove(request)
        return [(request, piece)] if piece else []

    def _fail(self, request: Request, error: Exception) -> Delivery:
        self._remove(request)
        if isinstance(error, NoCandidates):
            return request, GenerationFailed("The model computed no usable logits (NaN or infinity).")
        if is_out_of_memory(error):
            log.warning("no memory for request %s: %s", request.label, error)
            return request, OutOfMemory()
        log_exception("a request failed in its batch", error, request.label)
        if isinstance(error, GenerationFailed):
            return request, error
        return request, GenerationFailed(
            f"The model failed on this request; the log has the details under {request.label}."
        )
