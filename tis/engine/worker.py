"""One daemon thread per model: admits queued requests, runs a step, hands out its results, and repeats.

A request that cannot be admitted fails alone. A failed step fails the requests that were running in it, and the worker
continues. If the thread itself ends, every request fails with WorkerDied, and `on_death` is called to replace it.

If the device is lost, the thread ends too, and calls `on_loss`. No request fails then: the process ends, and the next
one resumes those that are durable.
"""

import logging
import threading
import time
from collections.abc import Callable

from tis.engine.errors import OutOfMemory, WorkerDied
from tis.engine.faults import DeviceLost, free_memory, is_out_of_memory
from tis.engine.request import HandOut, QueuedRequest
from tis.engine.request_queue import RequestQueue
from tis.engine.runner import Runner
from tis.errors import GenerationFailed, ServiceError
from tis.observability.logs import log_exception

log = logging.getLogger("tis.engine")


class Worker:
    def __init__(
        self,
        name: str,
        runner: Runner,
        hand_out: HandOut,
        queue_size: int,
        on_death: Callable[[str], None],
        on_loss: Callable[[str], None] = lambda reason: None,
        warm_up: Callable[[Runner], None] | None = None,
        on_warm: Callable[[], None] = lambda: None,
    ) -> None:
        """`warm_up` runs before the first request, and then `on_warm`, both in the thread."""
        self.name = name
        self._runner = runner
        self._hand_out = hand_out
        self._on_death = on_death
        self._on_loss = on_loss
        self._warm_up = warm_up
        self._on_warm = on_warm
        self._num_steps = 0
        self._is_stepping = False
        self._queue = RequestQueue(name, queue_size)
        self._admitting: QueuedRequest | None = None
        self._change = threading.Condition()
        self._closing = False
        self._dead = False
        self._thread = threading.Thread(target=self._run, name=f"model:{name}", daemon=True)

    @property
    def is_alive(self) -> bool:
        return not self._dead and not self._closing

    @property
    def num_waiting(self) -> int:
        return len(self._queue)

    @property
    def num_waiting_tokens(self) -> int:
        """Of the prompts of requests that wait."""
        return self._queue.num_prompt_tokens

    @property
    def num_running(self) -> int:
        return len(self._runner.running)

    @property
    def cache_use(self) -> float | None:
        return self._runner.cache_use

    @property
    def running_step(self) -> tuple[int, int] | None:
        """The numbers of the step that is computed now, and of its part; None if there is none, or it may take long.

        The first step of a worker may: it compiles kernels and touches memory for the first time.
        """
        number = self._num_steps
        is_watched = self._is_stepping and number > 1 and self._runner.has_bounded_steps
        return (number, self._runner.num_passes) if is_watched else None

    def start(self) -> None:
        self._thread.start()

    def submit(self, request: QueuedRequest) -> None:
        with self._change:
            if not self.is_alive:
                raise WorkerDied(f"The worker of {self.name} is down and being restarted.", retry_after=5)
            self._queue.put(request)
            self._change.notify()

    def drop_if_queued(self, request: QueuedRequest) -> None:
        """Ends a cancelled request at once if it is still in the queue."""
        with self._change:
            if request not in self._queue:
                return
            cancelled = request.cancel_completions()  # first: if this raises, the request stays in the queue
            self._queue.remove(request)
        self._hand_out(cancelled)

    def close_if_idle(self) -> bool:
        """Ends the thread, unless a request waits or runs. Requests that come later are refused."""
        with self._change:
            if self._queue or self._admitting or self._runner.running:
                return False
            self._closing = True
            self._change.notify()
        return True

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """Ends the thread after the current step; every request that is left fails."""
        with self._change:
            self._closing = True
            self._change.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        reason = "The server is shutting down."
        try:
            self._make_warm()
            while not self._closing:
                self._wait_for_work()
                self._admit()
                self._step()
        except DeviceLost as fault:
            log_exception(f"{self.name} lost its device", fault, "-")
            self._dead = True
            self._on_warm()
            self._on_loss(f"The device of {self.name} is lost.")
            return
        except BaseException as fault:  # whatever ends this thread, its readers must not wait for ever
            log_exception(f"the worker of {self.name} died", fault, "-")
            reason = f"The worker of {self.name} died ({type(fault).__name__}); it is being restarted."
        self._dead = True
        self._on_warm()  # who waits for it sees that the thread is dead
        self._fail_all(WorkerDied(reason, retry_after=5))
        if not self._closing:
            self._on_death(reason)

    def _make_warm(self) -> None:
        try:
            if self._warm_up:
                self._warm_up(self._runner)
        except DeviceLost:
            raise
        except Exception as fault:  # requests will say what is wrong, each for itself
            self._runner.drop_all()
            log_exception(f"{self.name} could not be warmed up", fault, "-")
        self._on_warm()

    def _wait_for_work(self) -> None:
        with self._change:
            while not (self._queue or self._runner.running or self._closing):
                self._change.wait()

    def _admit(self) -> None:
        while request := self._next():
            request.timing.admitted_at = time.monotonic()
            try:
                self._runner.admit(request)
            except Exception as fault:
                self._fail([request], fault)
            self._admitting = None

    def _next(self) -> QueuedRequest | None:
        with self._change:
            if self._runner.has_room:
                self._admitting = self._queue.next()
            else:
                self._admitting = self._queue.next_of(self._runner.owes_place)
            return self._admitting

    def _step(self) -> None:
        if not self._runner.running:
            return
        self._num_steps += 1
        self._is_stepping = True
        try:
            self._runner.step(self._hand_out)
        except DeviceLost:
            raise
        except Exception as fault:
            if not self._runner.device_answers():
                raise DeviceLost from fault
            failed = list(self._runner.running)
            self._runner.drop_all()
            self._fail(failed, fault)
        finally:
            self._is_stepping = False

    def _fail(self, requests: list[QueuedRequest], fault: Exception) -> None:
        labels = ", ".join(request.label for request in requests)
        error: ServiceError
        if is_out_of_memory(fault):
            log.warning("%s ran out of memory: %s", self.name, labels)
            fault.__traceback__ = None  # its frames hold the tensors of the step
            free_memory()
            error = OutOfMemory()
        elif isinstance(fault, ServiceError):
            error = fault
            if isinstance(fault, GenerationFailed):
                log_exception(f"{self.name} failed", fault, labels)
        else:
            log_exception(f"{self.name} failed", fault, labels)
            error = GenerationFailed(f"The model failed on this request; the log has the reason under {labels[:200]}.")
        self._hand_out([(request, error) for request in requests])

    def _fail_all(self, error: ServiceError) -> None:
        with self._change:
            admitting = [self._admitting] if self._admitting and self._admitting not in self._runner.running else []
            requests = [*self._queue.clear(), *admitting, *self._runner.running]
        self._hand_out([(request, error) for request in requests])
