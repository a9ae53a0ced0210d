"""Reads sessions in Redis, and waits for their news."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.stores.redis_clients import FAULTS, RedisClients
from tis.streaming.stores.redis_keys import digest_of, keys_of
from tis.streaming.stores.redis_records import event_of
from tis.streaming.stores.store import Durability, Event, SessionKey


class RedisReader:
    def __init__(self, clients: RedisClients, is_reached: Callable[[], bool], wait_seconds: float) -> None:
        """Without reaching Redis nothing is asked: whoever asks need not wait for that."""
        self._clients = clients
        self._is_reached = is_reached
        self._wait_seconds = wait_seconds

    async def events(self, key: SessionKey, after: int, limit: int, durability: Durability) -> Sequence[Event]:
        keys = keys_of(digest_of(key))
        with self.reaching():
            pipeline = self._clients.commands.pipeline(transaction=False)
            pipeline.hmget(keys.meta, "gone", "next")
            pipeline.xrange(keys.events, min=f"0-{after + 2}", count=limit)
            [gone, known], entries = await pipeline.execute()
        events = [event_of(entry) for entry in entries]
        if not events and durability == "degraded":
            raise StoreUnavailable(f"Event {after + 1} is not stored yet. Retry later.", retry_after=5)
        if gone or known is None or (not events and int(known) > after + 1) or (events and events[0].index > after + 1):
            raise ReplayGap(f"Event {after + 1} is no longer kept.", param="last_event_id")
        return events

    async def document(self, key: SessionKey, number: int, durability: Durability) -> bytes | None:
        with self.reaching():
            found = await cast(Any, self._clients.commands.hget(keys_of(digest_of(key)).documents, str(number)))
        if found is None and durability == "degraded":
            raise StoreUnavailable("The document of the session is not stored yet. Retry later.", retry_after=5)
        return cast(bytes | None, found)

    async def attachments(self, key: SessionKey, names: Collection[str], durability: Durability) -> Mapping[str, bytes]:
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        with self.reaching():
            found = await cast(Any, self._clients.commands.hmget(keys_of(digest_of(key)).attachments, wanted))
        if None in found and durability == "degraded":
            raise StoreUnavailable("The attachments of the session are not stored yet. Retry later.", retry_after=5)
        return {name: data for name, data in zip(wanted, found, strict=True) if data is not None}

    async def fields(self, key: SessionKey) -> Mapping[bytes, bytes]:
        with self.reaching():
            return cast(
                Mapping[bytes, bytes], await cast(Any, self._clients.commands.hgetall(keys_of(digest_of(key)).meta))
            )

    async def follow(self, key: SessionKey, after: int) -> AsyncGenerator[Sequence[Event], None]:
        keys, news = keys_of(digest_of(key)), "0"
        while True:
            places = {keys.events: f"0-{after + 1}", keys.news: news}
            with self.reaching():
                block = round(self._wait_seconds * 1000)
                found = cast(Any, await self._clients.waits.xread(cast(Any, places), count=256, block=block))
            streams = {name.decode(): entries for name, entries in found or ()}
            if keys.news in streams:
                news = streams[keys.news][-1][0].decode()
            events = [event_of(entry) for entry in streams.get(keys.events, ())]
            if events and events[0].index != after + 1:
                raise ReplayGap(f"Event {after + 1} is no longer kept.", param="last_event_id")
            if events:
                after = events[-1].index
                yield events
            if not events or keys.news in streams:
                yield []

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Every fault of Redis is a `StoreUnavailable`."""
        unavailable = StoreUnavailable("The store of sessions cannot be reached now. Retry later.", retry_after=5)
        if not self._is_reached():
            raise unavailable
        try:
            yield
        except FAULTS as error:
            raise unavailable from error
