"""Computes requests whole and one at a time, by the model's own code: sentences, and windows that no Whisper hears."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from tis.engine.errors import OutOfMemory
from tis.engine.faults import DeviceLost, device_answers, free_memory, is_out_of_memory
from tis.engine.future_request import FutureRequest
from tis.engine.request import Delivery, HandOut
from tis.errors import GenerationFailed, ServiceError
from tis.observability.logs import log_exception

SomeRequest = TypeVar("SomeRequest", bound=FutureRequest[Any])


class Unwanted(Exception):
    """Nobody waits any more for what is computed."""


class ForwardPasses:
    """Counts the forward passes of models, whose own `generate` makes as many as it likes.

    So a pass that hangs is seen, however many there are, and a request that was cancelled ends with the pass.
    """

    def __init__(self, models: Iterable[Any]) -> None:
        import transformers

        self.number = 0
        self._is_unwanted: Callable[[], bool] = lambda: False
        for model in models:
            for module in model.modules():
                if isinstance(module, transformers.PreTrainedModel):
                    module.register_forward_pre_hook(self._begin)

    @contextmanager
    def ending_when(self, is_unwanted: Callable[[], bool]) -> Iterator[None]:
        """Within it a forward pass raises Unwanted if that is so before it begins."""
        before, self._is_unwanted = self._is_unwanted, is_unwanted
        try:
            yield
        finally:
            self._is_unwanted = before

    def _begin(self, module: Any, given: Any) -> None:
        self.number += 1
        if self._is_unwanted():
            raise Unwanted


class OneByOneRunner(ABC, Generic[SomeRequest]):
    has_bounded_steps = True  # a forward pass at a time

    def __init__(self, passes: ForwardPasses, device: Any, *, max_running: int, failure: str) -> None:
        """`max_running`: the next ones are at hand; those behind wait in the queue, which serves owners in turn.

        `failure`: for the log, what it means that a request failed.
        """
        self._passes, self._device = passes, device
        self._max_running, self._failure = max_running, failure
        self._running: list[SomeRequest] = []

    @abstractmethod
    def compute(self, request: SomeRequest) -> Any:
        """What its reader waits for."""

    @property
    def num_passes(self) -> int:
        return self._passes.number

    @property
    def has_room(self) -> bool:
        return len(self._running) < self._max_running

    def owes_place(self, owner: str) -> bool:
        return False

    @property
    def cache_use(self) -> None:
        return None

    @property
    def running(self) -> list[SomeRequest]:
        return self._running

    def admit(self, request: SomeRequest) -> None:
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        """One request."""
        self._running = [request for request in self._running if not request.is_cancelled]
        if not self._running:
            return
        request = self._running[0]
        deliveries: list[Delivery] = []
        try:
            with self._passes.ending_when(lambda: request.is_cancelled):
                deliveries.append((request, self.compute(request)))
        except Unwanted:
            pass
        except Exception as fault:
            if isinstance(fault, DeviceLost) or not self.device_answers():
                raise
            deliveries.append((request, self._error_of(fault, request.label)))
        self._running.remove(request)
        hand_out(deliveries)

    def drop_all(self) -> None:
        self._running = []

    def device_answers(self) -> bool:
        return device_answers(self._device)

    def _error_of(self, fault: Exception, label: str) -> ServiceError:
        if is_out_of_memory(fault):
            fault.__traceback__ = None  # its frames hold tensors
            free_memory()
            return OutOfMemory()
        if isinstance(fault, ServiceError):
            return fault
        log_exception(self._failure, fault, label)
        return GenerationFailed(f"The model failed on this request; the log has the reason under {label}.")
