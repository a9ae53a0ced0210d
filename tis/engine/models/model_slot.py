"""One model of the catalogue: loads it, unloads it when nobody uses it, and replaces its worker when it dies."""

import asyncio
import logging
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tis.engine.errors import LoadFailed, ModelLoading, ModelMemoryFull, ModelTooLarge, WorkerDied
from tis.engine.faults import free_memory_of_model
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import ModelDescription, describe_loaded
from tis.engine.models.load_observer import MAX_BACKOFF_SECONDS, Backoff, LoadObserver
from tis.engine.models.load_progress import Report
from tis.engine.models.loaded_model import LoadedWeights
from tis.engine.models.model_memory import MemoryNeed, ModelMemory
from tis.engine.models.model_status import ModelStatus, State
from tis.engine.models.model_use import ModelUse
from tis.engine.request import Delivery, QueuedRequest, deliver
from tis.engine.threads import Bridge
from tis.engine.worker import Worker
from tis.errors import ServiceError
from tis.observability.collector import exempt_living_objects
from tis.observability.logs import describe_with_messages, log_exception
from tis.observability.metrics import WORKER_DEATHS
from tis.observability.request_facts import current_facts
from tis.observability.spans import child_span

log = logging.getLogger("tis.engine")

Load = Callable[[CatalogueEntry, Report], LoadedWeights]
Fetch = Callable[[CatalogueEntry, Report], MemoryNeed]  # downloads its files, if need be, and weighs them


@dataclass(frozen=True, slots=True)
class SlotRules:
    queue_size: int = 64
    retry_seconds: float = 1.0  # the first pause after a failed load, and after the death of a worker
    warms_up: bool = False


class ModelSlot:
    """Its methods run on the event loop, except `close`."""

    def __init__(
        self,
        entry: CatalogueEntry,
        load: Load,
        fetch: Fetch | None,
        memory: ModelMemory,
        bridge: Bridge,
        observer: LoadObserver,
        rules: SlotRules,
        on_loss: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`on_loss` is called when the device of the model is lost, which ends the process."""
        self.entry = entry
        self.use = ModelUse()
        self.description: ModelDescription | None = None  # of the last load
        self._observer = observer
        self._load, self._fetch = load, fetch
        self._memory = memory
        self._bridge = bridge
        self._rules = rules
        self._loading: asyncio.Task[LoadedWeights] | None = None
        self._unloading: asyncio.Task[None] | None = None
        self._loaded: LoadedWeights | None = None
        self._worker: Worker | None = None
        self._failure: ServiceError | None = None
        self._stage: str | None = None
        self._progress: float | None = None
        WORKER_DEATHS.labels(entry.id)  # from 0 on
        self._load_backoff, self._worker_backoff = Backoff(rules.retry_seconds), Backoff(rules.retry_seconds)
        self._closed = False
        self._on_loss = on_loss
        self._worker_started_at = 0.0
        self._held_bytes = 0
        self._weight_bytes = 0  # as the last load measured them
        self._change = asyncio.Event()

    @property
    def name(self) -> str:
        return self.entry.id

    @property
    def loaded(self) -> LoadedWeights | None:
        return self._loaded

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    @property
    def idle_seconds(self) -> float | None:
        worker = self._worker
        is_busy = self._loaded is None or self.use.is_used or (worker and (worker.num_waiting or worker.num_running))
        return None if is_busy else self.use.idle_seconds

    @property
    def status(self) -> ModelStatus:
        worker = self._worker
        return ModelStatus(
            self.entry.id,
            self._state,
            self._stage,
            self._progress,
            self._failure.message if self._failure else None,
            worker.num_waiting if worker else 0,
            self._loaded.footprint if self._loaded else None,
            worker.num_running if worker else 0,
            worker.cache_use if worker else None,
            self._held_bytes,
            self.idle_seconds,
            num_waiting_tokens=worker.num_waiting_tokens if worker else 0,
        )

    @property
    def _state(self) -> State:
        if self._loading:
            return "loading"
        if self._unloading:
            return "unloading"
        if self._worker:
            return "ready" if self._worker.is_alive else "dead"
        return "failed" if self._failure else "unloaded"

    async def wait_for_change(self) -> None:
        """Until the state, the stage or the progress of the load is another one."""
        await self._change.wait()

    async def ensure_loaded(self, wait_seconds: float) -> LoadedWeights:
        """Loads the model unless it is loaded; concurrent callers share one load.

        Raises ModelLoading after `wait_seconds`, LoadFailed if the load fails or has just failed.
        """
        if self._loaded:
            return self._loaded
        if self._failure and not self._loading and (left := self._load_backoff.seconds_left):
            raise type(self._failure)(self._failure.message, retry_after=left)
        loading = self.start_loading()
        with child_span("load", {"tis.model": self.entry.id}):
            began = time.monotonic()
            done, _ = await asyncio.wait({loading}, timeout=wait_seconds)
            current_facts().loading_seconds += time.monotonic() - began
            if not done:
                raise ModelLoading(f"{self.entry.id} is still loading ({self._stage}). Try again soon.", retry_after=10)
            return loading.result()

    def start_loading(self, *, may_unload_others: bool = True) -> "asyncio.Task[LoadedWeights]":
        if not self._loading:
            self._loading = asyncio.create_task(self._load_once(may_unload_others))
            self._loading.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._loading

    async def try_to_load(self) -> bool:
        """Without a request, and beside what is loaded. Returns False if another attempt may succeed."""
        try:
            await self.start_loading(may_unload_others=False)
        except ModelMemoryFull as error:
            self._observer.postponed(self.entry.id, error.message)
        except ServiceError:  # a load raises nothing else
            return False
        return True

    async def load_until_ready(self) -> None:
        """Retries until it succeeds."""
        while not (self._loaded or self._closed):
            await asyncio.sleep(self._load_backoff.seconds_left)
            if await self.try_to_load():
                return

    async def unload(self) -> bool:
        """Waits until the memory is free. Returns False if somebody uses the model, or waits for it."""
        if self._loading:
            return False
        if self._loaded and not self._begin_unload():
            return False
        if self._unloading:
            await asyncio.shield(self._unloading)
        return True

    def _begin_unload(self) -> bool:
        if self.use.is_used or (self._worker and not self._worker.close_if_idle()):
            return False
        loaded, worker = self._loaded, self._worker
        self._loaded = self._worker = self._failure = None
        if loaded:
            self._unloading = asyncio.create_task(self._finish_unload(worker, loaded.close, loaded.weights))
        self._tell()
        return True

    async def _finish_unload(
        self, worker: Worker | None, close: Callable[[], None] | None, weights: "weakref.ref[Any] | None"
    ) -> None:
        try:
            if worker:
                await self._bridge.in_pool(worker.join)
            if close:
                await self._bridge.in_pool(partial(self._close_model, close))
            worker = close = None  # the last references to the weights
            await self._bridge.in_pool(partial(free_memory_of_model, weights))
            log.info("%s is unloaded", self.entry.id)
        finally:
            self._unloading, self._held_bytes = None, 0
            self._tell()

    def _close_model(self, close: Callable[[], None]) -> None:
        try:
            close()
        except Exception as fault:  # it is gone all the same
            log_exception(f"{self.entry.id} could not be closed", fault, "-")

    @property
    def running_step(self) -> Hashable | None:
        """Names the step that its worker computes now; None if there is none, or one that may take long."""
        step = self._worker.running_step if self._worker else None
        return None if step is None else (id(self._worker), step)

    def submit(self, request: QueuedRequest) -> None:
        if not self._worker:
            raise WorkerDied(f"The worker of {self.entry.id} is down.", retry_after=5)
        request.timing.submitted(request.model_name or self.name, request.num_prompt_tokens)
        self._worker.submit(request)

    def drop_if_queued(self, request: QueuedRequest) -> None:
        if self._worker:
            self._worker.drop_if_queued(request)

    def close(self) -> None:
        """Blocks until the current step ends: do not call it on the event loop."""
        self._closed = True
        if self._worker:
            self._worker.close()
        if self._loaded and self._loaded.close:
            self._close_model(self._loaded.close)

    async def _load_once(self, may_unload_others: bool) -> LoadedWeights:
        started = time.monotonic()
        self._report("starting", None)
        try:
            if self._unloading:
                await asyncio.shield(self._unloading)
            await self._take_memory(may_unload_others)
            loaded = await self._bridge.in_load_thread(f"load:{self.entry.id}", self._load_in_thread)
            await self._start_worker(loaded)
        except ModelMemoryFull:
            raise  # not a fault of the model: the next request tries again
        except Exception as fault:
            self._held_bytes, self._worker = 0, None
            pause = self._load_backoff.failed()
            self._observer.failed(self.entry.id, describe_with_messages(fault), pause)
            if isinstance(fault, ModelTooLarge):
                self._failure = ModelTooLarge(fault.message, retry_after=pause)
            else:
                # /health shows this message to everyone; the loader's own may name paths, addresses and tokens.
                message = f"{self.entry.id} could not be loaded. The server's log says why."
                self._failure = LoadFailed(message, retry_after=pause)
            fault.__traceback__ = None  # its frames hold the weights
            raise self._failure from fault
        else:
            self._loaded, self._failure = loaded, None
            self.description = describe_loaded(loaded)
            if loaded.footprint:
                self._weight_bytes = loaded.footprint.weight_bytes
                self._held_bytes = max(self.entry.memory_mb * 2**20, loaded.footprint.num_bytes)
            self._load_backoff.succeeded()
            self._loading = None
            self.use.touch()
            self._observer.loaded(self.entry.id, time.monotonic() - started)
            return loaded
        finally:
            self._loading = None
            self._stage = self._progress = None
            self._tell()

    async def _take_memory(self, may_unload_others: bool) -> None:
        if not self._fetch:
            return
        fetch = partial(self._fetch, self.entry, self._report_from_thread)
        need = await self._bridge.in_load_thread(f"fetch:{self.entry.id}", fetch, alone=False)
        need = replace(need, num_bytes=max(need.num_bytes, self._weight_bytes))
        await self._memory.make_room(self, need, may_unload=may_unload_others)
        self._held_bytes = need.num_bytes

    def _load_in_thread(self) -> LoadedWeights:
        loaded = self._load(self.entry, self._report_from_thread)
        exempt_living_objects()
        return loaded

    async def _start_worker(self, loaded: LoadedWeights) -> None:
        """Returns when it is warm."""
        warm_up = loaded.warm_up if self._rules.warms_up else None
        warm = asyncio.Event()
        self._make_worker(loaded, warm_up, lambda: self._bridge.call_on_loop(warm.set))
        if warm_up:
            self._report("warming up", None)
        await warm.wait()
        if not self._worker or not self._worker.is_alive:
            raise WorkerDied(f"The worker of {self.entry.id} died while it was warmed up.")

    def _make_worker(
        self,
        loaded: LoadedWeights,
        warm_up: Callable[..., None] | None = None,
        on_warm: Callable[[], None] = lambda: None,
    ) -> None:
        self._worker = Worker(
            self.entry.id,
            loaded.new_runner(),
            self._hand_out,
            self._rules.queue_size,
            on_death=lambda reason: self._bridge.call_on_loop(lambda: self._on_worker_death(reason)),
            on_loss=lambda reason: self._bridge.call_on_loop(lambda: self._on_loss(reason)),
            warm_up=warm_up,
            on_warm=on_warm,
        )
        self._worker.start()
        self._worker_started_at = time.monotonic()

    def _hand_out(self, deliveries: Sequence[Delivery]) -> None:
        """Called by the worker's thread. One wake-up of the loop delivers everything that a step made."""
        if deliveries:
            self._bridge.call_on_loop(lambda: self._deliver(deliveries))

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.use.touch()
        deliver(deliveries)

    def _on_worker_death(self, reason: str) -> None:
        if self._closed or not self._loaded:
            return
        self._failure = WorkerDied(reason)
        if time.monotonic() - self._worker_started_at > MAX_BACKOFF_SECONDS:
            self._worker_backoff.succeeded()
        pause = self._worker_backoff.failed()
        WORKER_DEATHS.labels(self.name).inc()
        log.error("%s Next worker in %.0f s.", reason, pause)
        asyncio.get_running_loop().call_later(pause, self._replace_worker)

    def _replace_worker(self) -> None:
        # While it waited, the model may have been unloaded, and loaded again with a worker of its own.
        if self._closed or not self._loaded or (self._worker and self._worker.is_alive):
            return
        try:
            self._make_worker(self._loaded)
        except Exception as fault:  # such as no memory for its cache: a later try may succeed
            self._on_worker_death(f"A new worker of {self.entry.id} could not be made: {type(fault).__name__}.")
        else:
            self._failure = None

    def _report_from_thread(self, stage: str, progress: float | None) -> None:
        self._bridge.call_on_loop(lambda: self._report(stage, progress) if self._loading else None)

    def _report(self, stage: str, progress: float | None) -> None:
        self._stage, self._progress = stage, progress
        self._observer.progress(self.entry.id, stage, progress)
        self._tell()

    def _tell(self) -> None:
        """Wakes those who wait for a change now; others wait for the next one."""
        change, self._change = self._change, asyncio.Event()
        change.set()
