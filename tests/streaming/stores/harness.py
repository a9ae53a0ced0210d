"""A store together with the sessions that memory would hold beside it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from tis.observability.metrics import REGISTRY
from tis.streaming.stores.redis import RedisTimeouts
from tis.streaming.stores.shared_store import SharedStore
from tis.streaming.stores.sqlite_writer import Timeouts
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, Store, TurnRecord

KEY = SessionKey("owner", "session")
OTHER = SessionKey("another", "session")
FAST = Timeouts(
    busy_seconds=0.05, min_retry_seconds=0.01, max_retry_seconds=0.05, check_seconds=0.02, close_seconds=2.0
)
FAST_REDIS = RedisTimeouts(
    lease_seconds=1.0, answer_seconds=0.5, wait_seconds=0.2, slow_seconds=0.5, retry_seconds=0.02, close_seconds=2.0
)


class StoreHarness:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.memory: dict[SessionKey, tuple[SessionRecord, list[Event]]] = {}
        self.acks: dict[SessionKey, list[int]] = {}
        self.times_degraded = 0
        self.abandoned: list[SessionKey] = []

    async def open(self) -> dict[SessionKey, SessionRecord]:
        opened = await self.store.open(self._snapshot, self._degraded, self.abandoned.append)
        found = {session.key: session for session in opened}
        if isinstance(self.store, SharedStore):  # it shows those that do not run to those who ask
            for key in {KEY, OTHER} - set(found):
                if session := await self.store.find(key):
                    found[key] = session
        return found

    def begin_turn(
        self, key: SessionKey = KEY, attachments: Mapping[str, bytes] | None = None, max_attached_bytes: int = 2**26
    ) -> TurnRecord:
        session, _ = self.memory.setdefault(key, (SessionRecord(key, True, self.store.now()), []))
        turn = TurnRecord(
            len(session.turns), "fingerprint", b"request", session.next_index, attachments=attachments or {}
        )
        self.store.begin_turn(session, turn, max_attached_bytes)
        session.turns.append(turn)
        return turn

    def append(self, *data: bytes, key: SessionKey = KEY) -> None:
        session, events = self.memory[key]
        new = [Event(index, one, b"state of " + one[:9]) for index, one in enumerate(data, session.next_index)]
        events += new
        session.next_index += len(new)
        self.store.append(key, new, self.acks.setdefault(key, []).append)

    def end_turn(self, turn: TurnRecord, key: SessionKey = KEY) -> None:
        turn.last_index, turn.status = self.memory[key][0].next_index - 1, "finished"
        turn.summary, turn.ended_at, turn.attachments, turn.request = b"summary", self.store.now(), {}, b""
        self.store.end_turn(key, turn)

    def forget(self, key: SessionKey = KEY) -> None:
        del self.memory[key]
        self.store.forget(key)

    async def read_all(self, key: SessionKey = KEY, after: int = -1) -> list[Event]:
        events: list[Event] = []
        while more := await self.store.read(key, after + len(events)):
            events += more
        return events

    async def caught_up(self, key: SessionKey = KEY) -> None:
        await until(lambda: self.store.durability == "durable" and self.is_acknowledged(key))

    def is_acknowledged(self, key: SessionKey = KEY) -> bool:
        acknowledged = self.acks[key]
        return bool(acknowledged) and acknowledged[-1] == self.memory[key][0].next_index - 1

    def _snapshot(self) -> Iterable[tuple[SessionRecord, Sequence[Event]]]:
        return list(self.memory.values())

    def _degraded(self) -> None:
        self.times_degraded += 1


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 -- what is waited for happens in threads and files
            await asyncio.sleep(0.002)


def error_count(error: str) -> float:
    labels = {"store": "sqlite", "error": error}
    return REGISTRY.get_sample_value("tis_session_store_errors_total", labels) or 0.0
