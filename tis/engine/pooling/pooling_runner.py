"""Computes the rows of many requests at once. A step takes rows of all owners in turn, up to a number of tokens.

A step that fails is computed again by halves, until the rows that are to blame are alone; their requests fail.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy
import torch

from tis.engine.errors import OutOfMemory
from tis.engine.faults import DeviceLost, device_answers, free_memory, is_out_of_memory
from tis.engine.pooling.pooling_head import PoolingHead
from tis.engine.pooling.pooling_request import PoolingRequest
from tis.engine.pooling.token_row import TokenRow
from tis.engine.request import Delivery, HandOut
from tis.errors import GenerationFailed, ServiceError
from tis.observability.logs import log_exception

_MAX_RUNNING = 256  # requests; those behind wait in the queue


class RowEncoder(Protocol):
    device: Any

    def hidden_states(self, rows: Sequence[TokenRow]) -> Sequence[Any]: ...


_Taken = tuple[PoolingRequest, int]  # a request, and the number of its row


class PoolingRunner:
    num_passes = 0

    def __init__(self, encoder: RowEncoder, head: PoolingHead, tokens_per_step: int) -> None:
        self._encoder = encoder
        self._head = head
        self._tokens_per_step = tokens_per_step
        self._running: list[PoolingRequest] = []
        self._computes_long = False

    @property
    def has_room(self) -> bool:
        return len(self._running) < _MAX_RUNNING

    def owes_place(self, owner: str) -> bool:
        return False

    @property
    def cache_use(self) -> None:
        return None

    @property
    def has_bounded_steps(self) -> bool:
        """A row is never cut: one that is longer than a step may take minutes."""
        return not self._computes_long

    @property
    def running(self) -> list[PoolingRequest]:
        return self._running

    def admit(self, request: PoolingRequest) -> None:
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        deliveries: list[Delivery] = []
        try:
            self._running = [request for request in self._running if not request.is_cancelled]
            if taken := self._take():
                self._computes_long = any(len(one.rows[number]) > self._tokens_per_step for one, number in taken)
                with torch.inference_mode():
                    self._compute(taken, deliveries)
            for request in [one for one in self._running if not one.num_left]:
                self._running.remove(request)
                deliveries.append((request, request.results))
        finally:
            self._computes_long = False
            hand_out(deliveries)

    def drop_all(self) -> None:
        self._running = []

    def device_answers(self) -> bool:
        return device_answers(self._encoder.device)

    def _take(self) -> list[_Taken]:
        """The owner with the fewest tokens in this step is next, and of its requests each in turn.

        A row that is too long for a step has one alone.
        """
        taken: list[_Taken] = []
        tokens: Counter[str] = Counter()
        waiting: dict[str, list[PoolingRequest]] = {}
        for request in self._running:
            if request.num_taken < len(request.rows):
                waiting.setdefault(request.owner, []).append(request)
        while waiting:
            owner = min(waiting, key=lambda name: tokens[name])
            request = waiting[owner][0]
            length = len(request.rows[request.num_taken])
            if taken and sum(tokens.values()) + length > self._tokens_per_step:
                break
            taken.append((request, request.num_taken))
            tokens[owner] += length
            request.num_taken += 1
            waiting[owner].pop(0)
            if request.num_taken < len(request.rows):
                waiting[owner].append(request)
            if not waiting[owner]:
                del waiting[owner]
        return taken

    def _compute(self, taken: Sequence[_Taken], deliveries: list[Delivery]) -> None:
        try:
            rows = [request.rows[number] for request, number in taken]
            results = self._head(self._encoder.hidden_states(rows), rows).float().cpu().numpy()
        except Exception as fault:
            if isinstance(fault, DeviceLost) or not self.device_answers():
                raise
            if is_out_of_memory(fault):
                fault.__traceback__ = None  # its frames hold the tensors of the step
                free_memory()
            if len(taken) > 1:
                middle = len(taken) // 2
                self._compute(taken[:middle], deliveries)
                self._compute(taken[middle:], deliveries)
            else:
                self._fail(taken[0][0], fault, deliveries)
            return
        for (request, number), result in zip(taken, results, strict=True):
            if numpy.isfinite(result).all():
                request.results[number] = result.copy()  # a view would keep those of the whole step
                request.num_left -= 1
            else:
                self._fail(request, GenerationFailed("The model computed no usable numbers (NaN)."), deliveries)

    def _fail(self, request: PoolingRequest, fault: Exception, deliveries: list[Delivery]) -> None:
        if request not in self._running:
            return  # another of its rows has failed
        error: ServiceError = OutOfMemory()
        if isinstance(fault, GenerationFailed):
            error = fault
        elif not is_out_of_memory(fault):
            log_exception("a text could not be computed", fault, request.label)
            error = GenerationFailed(f"The model failed on this request; the log has the reason under {request.label}.")
        self._running.remove(request)
        deliveries.append((request, error))
