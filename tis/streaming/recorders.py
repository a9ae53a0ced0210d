"""The tasks that record turns: one for each turn that runs in this process, also after its begin in another."""

import asyncio
from collections.abc import Mapping
from functools import partial

from tis.errors import ServiceError
from tis.observability.logs import log_exception
from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.kept_begins import KeptBegins
from tis.streaming.kept_ends import KeptEnds
from tis.streaming.session import Session
from tis.streaming.source import ResumeSource
from tis.streaming.stores.shared_store import SharedStore
from tis.streaming.stores.store import Store
from tis.streaming.turn import Turn

_RETRY_SECONDS = 0.5  # until a shared store can be read again


class Recorders:
    def __init__(
        self,
        store: Store,
        resume_source: ResumeSource | None,
        kept_begins: KeptBegins | None,
        kept_ends: KeptEnds | None,
    ) -> None:
        self._store = store
        self._resume_source = resume_source
        self._kept_begins = kept_begins
        self._kept_ends = kept_ends
        self._tasks: dict[asyncio.Task[None], Turn] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def running(self) -> Mapping[asyncio.Task[None], Turn]:
        return dict(self._tasks)

    def start(self, session: Session, turn: Turn) -> None:
        ends = self._kept_ends if session.kind and session.is_resumable else None
        task = asyncio.create_task(turn.run(partial(ends.keep, session) if ends else None))
        self._tasks[task] = turn
        begins = self._kept_begins if session.kind and session.is_in_background else None
        if begins:
            begins.note_running(session)

        def is_over(task: asyncio.Task[None]) -> None:
            self._tasks.pop(task, None)
            if begins:
                begins.note_over(session)
            session.on_use()

        task.add_done_callback(is_over)

    async def resume(self, session: Session) -> None:
        """The latest turn, which another process began and did not end."""
        assert self._resume_source
        turn = session.latest
        request: bytes = turn.record.request
        try:
            states = await self._resume_states(session, turn.first_index)
        except ServiceError as error:
            log_exception("the events of an interrupted answer could not be read", error, session.id)
            request, states = b"", []
        read_attachments = partial(self._store.read_attachments, session.recording.key)
        turn.resume_with(self._resume_source(request, states, read_attachments))
        session.count_grace_after_restart()
        self.start(session, turn)

    async def stop(self, turn: Turn) -> None:
        """Ends what makes the events of a turn, not the turn."""
        await asyncio.sleep(0)  # a task cancelled before its first step would not end its source
        for task, recorded in list(self._tasks.items()):
            if recorded is turn:
                turn.suspend()
                task.cancel()
                await asyncio.wait([task])

    async def end_all(self) -> None:
        """Durable turns resume after a restart; the others end with the error `Draining`."""
        if self._kept_ends:
            self._kept_ends.is_hurried = True
        await asyncio.sleep(0)  # a task cancelled before its first step would end no turn
        for task, turn in list(self._tasks.items()):
            if turn.is_durable:
                turn.suspend()
            task.cancel()
        await self.wait_until_idle(timeout=5)

    async def wait_until_idle(self, timeout: float) -> None:
        """Returns once no turn runs, or when the time is up."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    async def wait_for(self, turn: Turn) -> None:
        if tasks := [task for task, recorded in self._tasks.items() if recorded is turn]:
            await asyncio.wait(tasks)

    async def _resume_states(self, session: Session, first_index: int) -> list[bytes]:
        states: list[bytes] = []
        while first_index + len(states) < session.recording.next_index:
            try:
                events = await self._store.read(session.recording.key, first_index + len(states) - 1)
            except StoreUnavailable:
                if not (isinstance(self._store, SharedStore) and self._store.is_remote):
                    raise
                await asyncio.sleep(_RETRY_SECONDS)  # it will be there again; a file may never be
                continue
            if not events:
                raise ReplayGap("Some events of the interrupted answer are missing in the store.")
            states += [event.resume_state for event in events]
        return states
