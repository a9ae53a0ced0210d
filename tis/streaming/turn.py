"""One answer of a session, from its first event to its last."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress

from tis.errors import Draining, GenerationFailed, ServiceError, Unavailable
from tis.observability.logs import log_exception
from tis.streaming.recording import Recording
from tis.streaming.source import Block, Source
from tis.streaming.stores.store import Status, Store, TurnRecord

KeepEnd = Callable[[Sequence[Block], Status], Awaitable[Sequence[Block]]]


class Turn:
    def __init__(self, recording: Recording, store: Store, record: TurnRecord, source: Source | None) -> None:
        self._recording = recording
        self._store = store
        self.record = record
        self._source = source
        self.unrecorded_error: ServiceError | None = None  # why it failed, if no event says so
        self._is_suspended = False
        self._cancel_requested = asyncio.Event()

    @property
    def fingerprint(self) -> str:
        return self.record.fingerprint

    @property
    def first_index(self) -> int:
        return self.record.first_index

    @property
    def last_index(self) -> int | None:
        return self.record.last_index

    @property
    def status(self) -> Status:
        return self.record.status

    @property
    def summary(self) -> bytes:
        return self._source.summary if self._source else self.record.summary

    @property
    def is_running(self) -> bool:
        return self.record.last_index is None

    @property
    def was_abandoned(self) -> bool:
        """Its process showed it to its end, and could store only a part."""
        return self.status == "failed" and not self.record.ended_at

    @property
    def is_worth_repeating(self) -> bool:
        """It failed: the same request starts a new turn."""
        return self.record.is_worth_repeating

    @property
    def may_be_repeated(self) -> bool:
        if self._source:
            return self._source.may_be_repeated
        return self.status != "failed" or self.is_worth_repeating

    @property
    def traceparent(self) -> str:
        """Of what makes its events now."""
        return self._source.traceparent if self._source else ""

    @property
    def is_durable(self) -> bool:
        return self._store.durability == "durable"

    @property
    def request(self) -> bytes:
        return self._source.request if self._source else self.record.request

    @property
    def attachments(self) -> Mapping[str, bytes]:
        return self._source.attachments if self._source else {}

    def own_indexes(self, start: int, end: int) -> range:
        """Returns the indexes from `start` to before `end` that belong to this turn."""
        own_end = end if self.last_index is None else self.last_index + 1
        return range(max(start, self.first_index), min(end, own_end))

    def resume_with(self, source: Source) -> None:
        """Sets the source that resumes the turn after a restart."""
        self._source = source

    def move_to(self, store: Store) -> None:
        self._store = store

    def cancel(self) -> None:
        if self._source:
            self._source.cancel()
            self._cancel_requested.set()

    def suspend(self) -> None:
        """Call before cancelling its task: the turn does not end, another process will resume it."""
        self._is_suspended = True

    def learn(self, record: TurnRecord) -> None:
        """Takes over what another process says of the turn."""
        was_running = self.is_running
        self._source, self.record = None, record
        if was_running and record.last_index is not None:  # else they are readers of a later turn
            for reader in self._recording.readers:
                reader.stop_at(record.last_index)

    async def run(self, keep_end: KeepEnd | None = None) -> None:
        """Records the turn to its end, with or without readers. If its task is cancelled, the turn fails.

        `keep_end` stores it for good: it gets the last blocks before readers do, and returns what they are to get.
        """
        source = self._source
        assert source
        try:
            await self._record_all(source, keep_end)
            outcome = source.outcome
        except asyncio.CancelledError:
            if self._is_suspended:
                source.cancel()
            else:
                await self._fail(Draining(), source, keep_end)
        except Exception as error:  # whatever went wrong, the readers need an end
            await self._fail(error, source, keep_end)
        else:
            self._end(outcome, source)

    async def _record_all(self, source: Source, keep_end: KeepEnd | None) -> None:
        is_kept = keep_end is None
        while True:
            try:
                async with aclosing(source.events()) as events:  # what it holds goes back at once, also after an error
                    async for blocks in events:
                        if keep_end and blocks and blocks[-1].is_last:
                            blocks, is_kept = await keep_end(blocks, source.outcome), True
                        self._recording.append(blocks)
                if keep_end and not is_kept:  # another process was killed behind the last event
                    await keep_end([], source.outcome)
                return
            except Unavailable as not_yet:
                if not source.is_waiting_to_resume:
                    raise
                self._recording.fail_readers(not_yet)
                await self._pause(not_yet.retry_after or 1)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._cancel_requested.wait()
        except TimeoutError:
            pass

    async def _fail(self, error: Exception, source: Source, keep_end: KeepEnd | None) -> None:
        with self._log_any_failure("an answer that failed could not be cancelled"):
            source.cancel()
        first = self._recording.next_index
        with self._log_any_failure("the failure of an answer could not be recorded"):
            blocks: Sequence[Block] = [source.failure(error)]
            with suppress(asyncio.CancelledError):  # the process ends: without having been stored, but with an end
                blocks = await keep_end(blocks, "failed") if keep_end else blocks
            self._recording.append(blocks)
        if self._recording.next_index == first:
            unnamed = GenerationFailed("The answer broke off. The log of the server has more.")
            self.unrecorded_error = error if isinstance(error, ServiceError) else unnamed
        self._end("failed", source)

    def _end(self, status: Status, source: Source) -> None:
        record = self.record
        record.status, record.last_index = status, self._recording.next_index - 1
        record.request = b""  # the prompt: a turn that is over needs no resume
        record.attachments = {
            name: data for name, data in record.attachments.items() if name in (record.attachment_names or ())
        }
        self._source = None
        with self._log_any_failure("the summary of an answer could not be made"):
            record.summary = source.summary
            record.is_worth_repeating = status == "failed" and source.may_be_repeated
        with self._log_any_failure("the end of an answer could not be recorded"):
            record.ended_at = self._store.now()
            self._store.end_turn(self._recording.key, record)
        for reader in self._recording.readers:
            reader.stop_at(record.last_index, self.unrecorded_error)

    @contextmanager
    def _log_any_failure(self, what: str) -> Iterator[None]:
        """Logs any error and goes on: readers wait for the end of the turn and for the events before it."""
        try:
            yield
        except Exception as fault:
            log_exception(what, fault, self._recording.key.id)
            self._recording.make_all_visible()
