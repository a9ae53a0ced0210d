"""One model of the catalogue: loads it, retries failed loads, and replaces its worker when it dies."""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from tis.engine.errors import LoadFailed, ModelLoading, WorkerDied
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.load_progress import Report
from tis.engine.models.loaded_model import LoadedWeights
from tis.engine.models.model_status import ModelStatus, State
from tis.engine.request import Delivery, QueuedRequest, deliver
from tis.engine.threads import Bridge
from tis.engine.worker import Worker
from tis.errors import ServiceError
from tis.observability.collector import exempt_living_objects
from tis.observability.logs import describe_with_messages

log = logging.getLogger("tis.engine")

Load = Callable[[CatalogueEntry, Report], LoadedWeights]


class LoadObserver(Protocol):
    """Called on the event loop. `reason` may name paths and addresses: never show it to clients."""

    def progress(self, model_id: str, stage: str, share: float | None) -> None: ...

    def loaded(self, model_id: str, seconds: float) -> None: ...

    def failed(self, model_id: str, reason: str, pause_seconds: float) -> None: ...


_MAX_BACKOFF_SECONDS = 60.0


class Backoff:
    """Pauses between attempts: each twice as long as the last, at most a minute. A success resets them."""

    def __init__(self, first_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._failures = 0
        self._ends_at = 0.0

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    def failed(self) -> float:
        pause: float = min(_MAX_BACKOFF_SECONDS, self._first_seconds * 2 ** min(self._failures, 10))
        self._failures += 1
        self._ends_at = time.monotonic() + pause
        return pause

    def succeeded(self) -> None:
        self._failures = 0


class ModelSlot:
    """Its methods run on the event loop, except `close`."""

    def __init__(
        self,
        entry: CatalogueEntry,
        load: Load,
        bridge: Bridge,
        queue_size: int,
        observer: LoadObserver,
        retry_seconds: float = 1.0,
        on_loss: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`retry_seconds` is the first pause after a failed load, and after the death of a worker.

        `on_loss` is called when the device of the model is lost, which ends the process.
        """
        self.entry = entry
        self._observer = observer
        self._load = load
        self._bridge = bridge
        self._queue_size = queue_size
        self._loading: asyncio.Task[LoadedWeights] | None = None
        self._loaded: LoadedWeights | None = None
        self._worker: Worker | None = None
        self._failure: ServiceError | None = None
        self._stage: str | None = None
        self._progress: float | None = None
        self._load_backoff, self._worker_backoff = Backoff(retry_seconds), Backoff(retry_seconds)
        self._closed = False
        self._on_loss = on_loss
        self._worker_started_at = 0.0

    @property
    def loaded(self) -> LoadedWeights | None:
        return self._loaded

    @property
    def status(self) -> ModelStatus:
        worker = self._worker
        num_waiting, num_running = (worker.num_waiting, worker.num_running) if worker else (0, 0)
        cache_use = worker.cache_use if worker else None
        error = self._failure.message if self._failure else None
        footprint = self._loaded.footprint if self._loaded else None
        return ModelStatus(
            self.entry.id,
            self._state,
            self._stage,
            self._progress,
            error,
            num_waiting,
            footprint,
            num_running,
            cache_use,
        )

    @property
    def _state(self) -> State:
        if self._loading:
            return "loading"
        if self._worker:
            return "ready" if self._worker.is_alive else "dead"
        return "failed" if self._failure else "unloaded"

    async def ensure_loaded(self, wait_seconds: float) -> LoadedWeights:
        """Loads the model unless it is loaded; concurrent callers share one load.

        Raises ModelLoading after `wait_seconds`, LoadFailed if the load fails or has just failed.
        """
        if self._loaded:
            return self._loaded
        if self._failure and not self._loading and (left := self._load_backoff.seconds_left):
            raise LoadFailed(self._failure.message, retry_after=left)
        loading = self.start_loading()
        done, _ = await asyncio.wait({loading}, timeout=wait_seconds)
        if not done:
            raise ModelLoading(f"{self.entry.id} is still loading ({self._stage}). Try again soon.", retry_after=10)
        return loading.result()

    def start_loading(self) -> "asyncio.Task[LoadedWeights]":
        if not self._loading:
            self._loading = asyncio.create_task(self._load_once())
            self._loading.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._loading

    async def load_until_ready(self) -> None:
        """Loads without a request, and retries until it succeeds."""
        while not (self._loaded or self._closed):
            try:
                await self.start_loading()
            except ServiceError:  # a load raises nothing else
                await asyncio.sleep(self._load_backoff.seconds_left)

    @property
    def running_step(self) -> Hashable | None:
        """Names the step that its worker computes now; None if there is none, or one that may take long."""
        step = self._worker.running_step if self._worker else None
        return None if step is None else (id(self._worker), step)

    def submit(self, request: QueuedRequest) -> None:
        if not self._worker:
            raise WorkerDied(f"The worker of {self.entry.id} is down.", retry_after=5)
        self._worker.submit(request)

    def drop_if_queued(self, request: QueuedRequest) -> None:
        if self._worker:
            self._worker.drop_if_queued(request)

    def close(self) -> None:
        """Blocks until the current step ends: do not call it on the event loop."""
        self._closed = True
        if self._worker:
            self._worker.close()

    async def _load_once(self) -> LoadedWeights:
        started = time.monotonic()
        self._report("starting", None)
        try:
            loaded = await self._bridge.in_load_thread(f"load:{self.entry.id}", self._load_in_thread)
            self._start_worker(loaded)
        except Exception as fault:
            pause = self._load_backoff.failed()
            self._observer.failed(self.entry.id, describe_with_messages(fault), pause)
            # /health shows this message to everyone; the loader's own may name paths, addresses and tokens.
            message = f"{self.entry.id} could not be loaded. The server's log says why."
            self._failure = LoadFailed(message, retry_after=pause)
            raise self._failure from fault
        else:
            self._loaded, self._failure = loaded, None
            self._load_backoff.succeeded()
            self._loading = None
            self._observer.loaded(self.entry.id, time.monotonic() - started)
            return loaded
        finally:
            self._loading = None
            self._stage = self._progress = None

    def _load_in_thread(self) -> LoadedWeights:
        loaded = self._load(self.entry, self._report_from_thread)
        exempt_living_objects()
        return loaded

    def _start_worker(self, loaded: LoadedWeights) -> None:
        self._worker = Worker(
            self.entry.id,
            loaded.new_runner(),
            self._hand_out,
            self._queue_size,
            on_death=lambda reason: self._bridge.call_on_loop(lambda: self._on_worker_death(reason)),
            on_loss=lambda reason: self._bridge.call_on_loop(lambda: self._on_loss(reason)),
        )
        self._worker.start()
        self._worker_started_at = time.monotonic()

    def _hand_out(self, deliveries: Sequence[Delivery]) -> None:
        """Called by the worker's thread. One wake-up of the loop delivers everything that a step made."""
        if deliveries:
            self._bridge.call_on_loop(lambda: deliver(deliveries))

    def _on_worker_death(self, reason: str) -> None:
        if self._closed or not self._loaded:
            return
        self._failure = WorkerDied(reason)
        if time.monotonic() - self._worker_started_at > _MAX_BACKOFF_SECONDS:
            self._worker_backoff.succeeded()
        pause = self._worker_backoff.failed()
        log.error("%s Next worker in %.0f s.", reason, pause)
        asyncio.get_running_loop().call_later(pause, self._replace_worker)

    def _replace_worker(self) -> None:
        if self._closed or not self._loaded:
            return
        try:
            self._start_worker(self._loaded)
        except Exception as fault:  # such as no memory for its cache: a later try may succeed
            self._on_worker_death(f"A new worker of {self.entry.id} could not be made: {type(fault).__name__}.")
        else:
            self._failure = None

    def _report_from_thread(self, stage: str, progress: float | None) -> None:
        self._bridge.call_on_loop(lambda: self._report(stage, progress) if self._loading else None)

    def _report(self, stage: str, progress: float | None) -> None:
        self._stage, self._progress = stage, progress
        self._observer.progress(self.entry.id, stage, progress)
