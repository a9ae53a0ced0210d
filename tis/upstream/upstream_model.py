"""One model of the catalogue that engines elsewhere serve: its queue, its places, and the tries of each request."""

import asyncio
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

from tis.engine.answer import Piece
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.model_status import ModelStatus
from tis.engine.request import QueuedRequest, deliver
from tis.engine.request_queue import RequestQueue
from tis.errors import GenerationFailed, ServiceError, Unavailable
from tis.observability.logs import log_exception
from tis.observability.model_metrics import UPSTREAM_CONTINUED, UPSTREAM_TRIES, UpstreamOutcome
from tis.upstream.chunks import ChunkReader
from tis.upstream.endpoints import Endpoint, EndpointPool
from tis.upstream.errors import UpstreamFault, too_slow, unreachable
from tis.upstream.http_client import StreamWatch
from tis.upstream.kinds import ABILITIES
from tis.upstream.media_parts import with_files
from tis.upstream.upstream_request import UpstreamRequest
from tis.upstream.whole_request import WholeRequest

log = logging.getLogger("tis.upstream")
_Request = UpstreamRequest | WholeRequest
_REQUESTS = (UpstreamRequest, WholeRequest)
_PAUSES = (0.5, 1.0, 2.0, 4.0)  # between tries to go on with an answer that has begun, when no upstream answers
_SESSION_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_CANCEL_SECONDS = 2.0
_AFTER_END_SECONDS = 1.0  # for the rest of a stream behind its end, so that its connection can be used again


class UpstreamModel:
    """On the event loop."""

    def __init__(self, entry: CatalogueEntry, pool: EndpointPool, key: str, max_running: int, queue_size: int) -> None:
        self.entry = entry
        self.pool = pool
        self.abilities = ABILITIES[entry.upstream_kind]
        self._key = key
        self._max_running = max_running
        self._queue = RequestQueue(entry.id, queue_size)
        self._running: dict[_Request, asyncio.Task[None]] = {}
        self._cancels: set[asyncio.Task[None]] = set()
        self._used_at = time.monotonic()

    @property
    def model(self) -> str:
        """Its name at the upstream."""
        return self.entry.upstream_model or self.entry.id

    @property
    def is_ours(self) -> bool:
        """It is a server of this software, which has fields of its own."""
        return self.entry.upstream_kind == "tis"

    @property
    def status(self) -> ModelStatus:
        is_usable = self.pool.is_usable
        idle = None if self._running or self._queue else time.monotonic() - self._used_at
        return ModelStatus(
            self.entry.id,
            "ready" if is_usable else "failed",
            error=None if is_usable else "None of its upstreams answers.",
            num_waiting=len(self._queue),
            num_waiting_tokens=self._queue.num_prompt_tokens,
            num_running=len(self._running),
            idle_seconds=idle,
            upstreams=[one.is_usable for one in self.pool],
        )

    def submit(self, request: "_Request") -> None:
        request.timing.submitted(self.entry.id, request.num_prompt_tokens)
        self._queue.put(request)
        self._begin_next()

    def cancel(self, request: QueuedRequest) -> None:
        assert isinstance(request, _REQUESTS)
        if task := self._running.get(request):
            # A task that is cancelled before its first step would never run, and nobody would get the end.
            asyncio.get_running_loop().call_soon(task.cancel)
        elif request in self._queue:
            self._queue.remove(request)
            deliver(request.cancel_completions())

    async def close(self) -> None:
        tasks = list(self._running.values())
        await asyncio.sleep(0)  # those that have just begun take their first step
        for request in self._queue.clear():
            request.receive(_closing(), time.monotonic())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._cancels)
        await self.pool.close()

    def _begin_next(self) -> None:
        while len(self._running) < self._max_running and (request := self._queue.next()):
            assert isinstance(request, _REQUESTS)
            request.timing.admitted_at = time.monotonic()
            self._running[request] = asyncio.create_task(self._run(request))

    async def _run(self, request: "_Request") -> None:
        """Whatever happens, who waits for the answer gets its end, or the reason why there is none."""
        error: ServiceError | None = None
        try:
            async with asyncio.timeout(self.entry.upstream_seconds.answer):
                await (self._ask(request) if isinstance(request, WholeRequest) else self._answer(request))
        except TimeoutError:
            error = too_slow(f"took longer than {self.entry.upstream_seconds.answer:g} s for the answer").error
        except asyncio.CancelledError:
            error = None if request.is_cancelled else _closing()
        except ServiceError as refused:
            error = refused
        except Exception as fault:
            log_exception(f"{self.entry.id} failed", fault, request.label)
            error = GenerationFailed(f"The model failed on this request; the log has the reason under {request.label}.")
        if error:
            request.receive(error, time.monotonic())
        elif request.is_cancelled:
            deliver(request.cancel_completions())
        del self._running[request]
        self._used_at = time.monotonic()
        self._begin_next()

    async def _ask(self, request: WholeRequest) -> None:
        """What belongs to an answer that has begun waits, as chats do, for an upstream that starts again."""
        tried: set[Endpoint] = set()
        pauses = iter(_PAUSES if request.is_begun else ())
        fault = unreachable()
        while True:
            endpoint = self.pool.choose((), tried)
            if endpoint is None:
                pause = next(pauses, None)
                if pause is None:
                    raise fault.error
                await asyncio.sleep(pause)
                tried.clear()
                continue
            begun_at = time.monotonic()
            try:
                with endpoint.running(()):
                    made = await request.ask(endpoint.http)
            except UpstreamFault as failed:
                fault = self._failed(endpoint, failed, begun_at)
                if not fault.may_go_elsewhere:
                    raise fault.error from None
                tried.add(endpoint)
            else:
                self._succeeded(endpoint)
                request.receive(made, time.monotonic())
                return

    async def _answer(self, request: UpstreamRequest) -> None:
        tried: set[Endpoint] = set()
        stale: set[Endpoint] = set()
        pauses = iter(_PAUSES)
        fault = unreachable()
        while not request.is_over:
            if request.has_begun and (why := request.why_not_continued(self.abilities)):
                raise _broken_off(fault, why)
            if request.num_made >= request.prepared.params.max_tokens and request.num_choices == 1:
                request.deliver([Piece(0, "", (), finish="length")], 0)
                return
            endpoint = self.pool.choose(request.blocks, tried)
            if endpoint is None:
                pause = next(pauses, None) if request.has_begun else None
                if pause is None:
                    raise fault.error
                await asyncio.sleep(pause)
                tried.clear()
                continue
            if request.has_begun:
                UPSTREAM_CONTINUED.labels(self.entry.id).inc()
            begun_at = time.monotonic()
            try:
                await self._try(endpoint, request)
            except UpstreamFault as failed:
                fault = self._failed(endpoint, failed, begun_at)
                if not fault.may_go_elsewhere:
                    raise fault.error from None
                (tried if not fault.is_stale or endpoint in stale else stale).add(endpoint)
            else:
                self._succeeded(endpoint)

    def _failed(self, endpoint: Endpoint, fault: UpstreamFault, begun_at: float) -> UpstreamFault:
        outcome: UpstreamOutcome = "failed" if fault.may_go_elsewhere else "refused"
        UPSTREAM_TRIES.labels(self.entry.id, outcome).inc()
        endpoint.failed(fault, begun_at)
        return fault

    def _succeeded(self, endpoint: Endpoint) -> None:
        UPSTREAM_TRIES.labels(self.entry.id, "ok").inc()
        endpoint.succeeded()

    @contextmanager
    def _cancelling(self, endpoint: Endpoint, watch: StreamWatch, reader: ChunkReader) -> Iterator[None]:
        """To close the connection ends an answer everywhere but at ours, which waits for its client to come back."""
        try:
            yield
        finally:
            if self.is_ours and not reader.is_whole and _SESSION_ID.fullmatch(watch.session_id):
                cancelling = asyncio.create_task(_cancel_at(endpoint, watch.session_id))
                self._cancels.add(cancelling)
                cancelling.add_done_callback(self._cancels.discard)

    async def _try(self, endpoint: Endpoint, request: UpstreamRequest) -> None:
        num_before = request.num_continued
        body: Mapping[str, Any]
        body, blanks = request.body_now(self.abilities)
        if request.files:
            body = await asyncio.to_thread(with_files, body, request.files)
        max_tokens = max(1, request.prepared.params.max_tokens - num_before)
        reader = ChunkReader(request.num_choices, max_tokens, self._key, skip=blanks)
        with endpoint.running(request.blocks) as watch, self._cancelling(endpoint, watch, reader):
            async with aclosing(endpoint.http.events(request.path, body, watch)) as events:
                try:
                    async for data in events:
                        if pieces := reader.read(data):
                            request.deliver(pieces, num_before)
                        if reader.is_done:
                            break
                except UpstreamFault:
                    if not reader.is_whole:
                        raise
                request.deliver(reader.last_pieces(), num_before)
                try:
                    async with asyncio.timeout(_AFTER_END_SECONDS):
                        await anext(events, None)
                except (TimeoutError, UpstreamFault):
                    pass  # the answer is whole


async def _cancel_at(endpoint: Endpoint, session_id: str) -> None:
    try:
        await endpoint.http.post(f"/cancel/{session_id}", {}, _CANCEL_SECONDS)
    except UpstreamFault:
        pass  # it is gone, or ends the answer when nobody has come back


def _closing() -> ServiceError:
    return Unavailable("The server is shutting down.", retry_after=5)


def _broken_off(fault: UpstreamFault, why: str) -> ServiceError:
    error = fault.error
    return type(error)(
        f"{error.message} The answer cannot be continued elsewhere: {why}.", retry_after=error.retry_after
    )
