"""What only a store that several processes share has to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random

import pytest

from tests.faults.cluster.chaos_proxy import proxied
from tests.redis_server import RedisServer, running_redis
from tests.streaming.stores.harness import FAST_REDIS, KEY, OTHER, StoreHarness, until
from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.stores.redis import RedisStore, RedisTimeouts
from tis.streaming.stores.redis_keys import REPLICAS, digest_of, held_by, keys_of
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, StoreRefused

pytestmark = [pytest.mark.anyio, pytest.mark.long]


class WatcherNotes:
    """What the store tells the sessions of its process."""

    def __init__(self) -> None:
        self.taken: list[tuple[SessionRecord, bool]] = []
        self.lost: list[SessionKey] = []
        self.cancelled: list[SessionKey] = []
        self.heard: list[SessionKey] = []

    def on_taken(self, session: SessionRecord, *, is_cancelled: bool) -> None:
        self.taken.append((session, is_cancelled))

    def on_lost(self, key: SessionKey) -> None:
        self.lost.append(key)

    def on_cancel(self, key: SessionKey) -> None:
        self.cancelled.append(key)

    def on_heard(self, key: SessionKey) -> None:
        self.heard.append(key)


class SharingProcess(StoreHarness):
    store: RedisStore

    def __init__(self, url: str, timeouts: RedisTimeouts = FAST_REDIS, run_version: int = 0) -> None:
        super().__init__(RedisStore(url, timeouts=timeouts, run_version=run_version))
        self.notes = WatcherNotes()
        self.store.watch(self.notes)

    async def learn(self, key: SessionKey = KEY) -> SessionRecord:
        found = await self.store.find(key)
        assert found
        self.memory[key] = (found, [])
        return found


Pair = tuple[SharingProcess, SharingProcess]


@pytest.fixture
async def pair(redis_server: RedisServer) -> AsyncIterator[Pair]:
    both = SharingProcess(redis_server.url), SharingProcess(redis_server.url)
    for process in both:
        await process.open()
    yield both
    for process in both:
        await process.store.close()


async def followed(process: SharingProcess, after: int, at_least: int) -> list[Event]:
    seen: list[Event] = []
    async with asyncio.timeout(20):
        async for events in process.store.follow(KEY, after):
            seen += events
            if len(seen) >= at_least:
                return seen
    raise AssertionError("it ended")


async def test_another_process_reads_what_was_and_what_comes_in_one(
    pair: Pair,
) -> None:
    a, b = pair
    a.begin_turn()
    a.append(b"0", b"1", b"2")
    await a.store.flush()
    following = asyncio.create_task(followed(b, 0, 5))
    await asyncio.sleep(0)
    for number in range(3, 6):
        a.append(b"%d" % number)
        await a.store.flush()
    seen = await following
    assert [event.index for event in seen] == list(range(1, 1 + len(seen)))
    assert seen == a.memory[KEY][1][1 : 1 + len(seen)]


async def test_the_end_of_a_turn_wakes_those_who_wait_for_events(pair: Pair) -> None:
    a, b = pair
    turn = a.begin_turn()
    a.append(b"0")
    await a.store.flush()
    ended = asyncio.Event()

    async def follow() -> None:
        async for events in b.store.follow(KEY, 0):
            found = await b.store.find(KEY)
            if not events and found and found.turns[-1].last_index == 0:
                ended.set()
                return

    following = asyncio.create_task(follow())
    a.end_turn(turn)
    async with asyncio.timeout(20):
        await ended.wait()
        await following


async def test_two_that_begin_the_same_session_do_not_both_have_it(pair: Pair) -> None:
    a, b = pair
    a.begin_turn()
    a.append(b"mine")
    await a.store.flush()
    b.begin_turn()
    b.append(b"also mine")
    await b.store.flush()
    assert (a.notes.lost, b.notes.lost) == ([], [KEY])
    assert b.acks[KEY] == []
    assert [event.data for event in await b.read_all()] == [b"mine"]


async def test_a_turn_is_begun_where_the_one_before_did_not_run(pair: Pair) -> None:
    a, b = pair
    a.end_turn(a.begin_turn())
    await a.store.flush()
    await b.learn()
    b.begin_turn()
    b.append(b"second")
    await b.store.flush()
    a.begin_turn()  # it has not looked since
    a.append(b"lost")
    await a.store.flush()
    assert (a.notes.lost, b.notes.lost) == ([KEY], [])
    assert [event.data for event in await a.read_all()] == [b"second"]


async def test_a_process_that_is_silent_loses_its_sessions_and_cannot_write_them(
    pair: Pair,
) -> None:
    a, b = pair
    turn = a.begin_turn()
    a.append(b"a")
    await a.store.flush()
    a.store._tasks[1].cancel()  # it renews its lease no longer, as if it were paused
    await until(lambda: b.notes.taken)
    [(record, is_cancelled)] = b.notes.taken
    assert (record.key, record.next_index, record.turns[0].request, is_cancelled) == (KEY, 1, b"request", False)
    b.memory[KEY] = (record, [])
    b.append(b"b")
    await b.store.flush()
    a.append(b"late")
    a.end_turn(turn)
    await a.store.flush()
    assert a.notes.lost == [KEY]
    assert a.acks[KEY] == [0]
    found = await a.store.find(KEY)
    assert found and found.turns[0].last_index is None
    assert [event.data for event in await a.read_all()] == [b"a", b"b"]


async def test_an_outage_of_redis_takes_no_session_from_its_process(pair: Pair, redis_server: RedisServer) -> None:
    a, b = pair
    a.begin_turn()
    a.append(b"a")
    await a.store.flush()
    redis_server.pause()
    await until(lambda: not (a.store._replica.is_reached or b.store._replica.is_reached))
    redis_server.go_on()
    for process in pair:  # as if it had lasted: all leases are over
        redis_server.ask("ZADD", REPLICAS, 1, process.store._replica.id)
    await until(lambda: float(redis_server.ask("ZSCORE", REPLICAS, a.store._replica.id)) > 1)
    a.append(b"b")
    await until(lambda: a.is_acknowledged() and a.store.durability == b.store.durability == "durable")
    assert (a.notes.lost, b.notes.taken) == ([], [])


@pytest.mark.parametrize("loses", [False, True], ids=["paused", "lost"])
async def test_a_store_has_caught_up_though_something_new_always_waits(loses: bool) -> None:
    """As under load: before one token is stored, the next one is made."""
    with running_redis() as redis:
        process = SharingProcess(redis.url)
        await process.open()
        process.begin_turn()
        notes = process.acks[KEY] = _AlwaysMore(process)
        process.append(b"first")
        await until(lambda: len(notes) > 5)
        (redis.kill if loses else redis.pause)()
        await until(lambda: process.store.durability == "degraded")
        (redis.start if loses else redis.go_on)()
        await until(lambda: process.store.durability == "durable")
        notes.is_over = True
        await until(process.is_acknowledged)
        assert [event.index for event in await process.read_all()] == list(range(process.memory[KEY][0].next_index))
        await process.store.close()


class _AlwaysMore(list[int]):
    def __init__(self, process: SharingProcess) -> None:
        super().__init__()
        self.is_over = False
        self._process = process

    def append(self, index: int) -> None:
        super().append(index)
        if not self.is_over:
            self._process.append(b"another")


async def test_a_process_that_takes_many_sessions_renews_its_own_lease_meanwhile(redis_server: RedisServer) -> None:
    async with AsyncExitStack() as stack:
        way = await stack.enter_async_context(proxied(redis_server.port, Random(1)))
        dead, slow = SharingProcess(redis_server.url), SharingProcess(f"redis://127.0.0.1:{way.port}/0")
        keys = [SessionKey("owner", f"many-{number}") for number in range(30)]
        for process in (dead, slow):
            await process.open()
            stack.push_async_callback(process.store.close)
        for key in keys:
            dead.begin_turn(key)
        await dead.store.flush()
        way.slow(0.01)  # each takes some five ways there and back
        dead.store._tasks[1].cancel()
        leases = set()
        await until(lambda: slow.notes.taken)
        while len(slow.notes.taken) < len(keys):
            leases.add(redis_server.ask("ZSCORE", REPLICAS, slow.store._replica.id))
            await asyncio.sleep(0.02)
        way.slow(0)
        assert len(leases) > 1


async def test_a_cancel_reaches_the_holder_and_whoever_takes_over_from_him(
    pair: Pair,
) -> None:
    a, b = pair
    a.begin_turn()
    await a.store.flush()
    await b.learn()
    await b.store.order_cancel(KEY)
    await until(lambda: a.notes.cancelled == [KEY])
    b.store.tell_heard(KEY)
    await until(lambda: a.notes.heard == [KEY])
    a.store._tasks[1].cancel()
    await until(lambda: b.notes.taken)
    assert b.notes.taken[0][1]


async def test_nothing_is_left_of_a_process_that_died_but_its_sessions(pair: Pair, redis_server: RedisServer) -> None:
    a, b = pair
    a.begin_turn()
    await a.store.flush()
    await b.learn()
    await b.store.order_cancel(KEY)
    a.store._tasks[1].cancel()
    await until(lambda: redis_server.ask("ZCARD", REPLICAS) == 1)
    assert set(redis_server.ask("KEYS", "*")) == {
        REPLICAS,
        held_by(b.store._replica.id),
        *(name for name in keys_of(digest_of(KEY)).all() if redis_server.ask("EXISTS", name)),
    }


async def test_a_session_of_a_later_version_waits_for_a_server_that_can_read_it(
    pair: Pair, redis_server: RedisServer
) -> None:
    a, b = pair
    a.begin_turn(OTHER)
    a.begin_turn()
    await a.store.flush()
    redis_server.ask("HSET", keys_of(digest_of(KEY)).meta, "v", 2)
    with pytest.raises(StoreUnavailable):
        await b.store.find(KEY)
    a.store._tasks[1].cancel()
    await until(lambda: b.notes.taken)
    await until(lambda: redis_server.ask("SMEMBERS", held_by(a.store._replica.id)) == {digest_of(KEY)})
    assert [session.key for session, _ in b.notes.taken] == [OTHER]


async def test_an_answer_of_a_later_version_is_left_to_a_server_that_can_resume_it_but_not_for_ever(
    redis_server: RedisServer,
) -> None:
    impatient_ones = replace(FAST_REDIS, left_seconds=0.1)
    later, patient = (SharingProcess(redis_server.url, run_version=version) for version in (2, 1))
    impatient = SharingProcess(redis_server.url, impatient_ones, run_version=1)
    async with AsyncExitStack() as stack:
        for process in (later, patient):
            await process.open()
            stack.push_async_callback(process.store.close)
        later.begin_turn()
        await later.store.flush()
        later.store._tasks[1].cancel()
        await until(lambda: later.store._replica.id in patient.store._replica._left_since)
        assert await patient.learn()  # it may be read
        await impatient.open()
        stack.push_async_callback(impatient.store.close)
        await until(lambda: impatient.notes.taken)
        assert patient.notes.taken == []


async def test_nobody_writes_back_what_another_process_has_deleted(pair: Pair) -> None:
    a, b = pair
    a.begin_turn(attachments={"picture": b"a picture"})
    a.append(b"a")
    await a.store.flush()
    await b.learn()
    b.store.forget(KEY)
    await b.store.flush()
    a.append(b"b")
    await a.store.flush()
    assert a.notes.lost == [KEY]
    for process in pair:
        assert await process.store.find(KEY) is None
        assert await process.store.read_attachments(KEY, ["picture"]) == {}
        with pytest.raises(ReplayGap):
            await process.store.read(KEY, -1)


async def test_a_session_lives_as_long_as_it_runs_and_then_for_its_time(pair: Pair, redis_server: RedisServer) -> None:
    a, _ = pair
    turn = a.begin_turn(attachments={"own": b"own"})
    a.append(b"a")
    await a.store.flush()

    def lives() -> list[int]:
        names = [name for name in redis_server.ask("KEYS", "tis:*") if name.count(":") == 2 and "{" in name]
        return [redis_server.ask("PTTL", name) for name in names if redis_server.ask("TYPE", name) != "set"]

    assert set(lives()) == {-1}
    a.end_turn(turn)
    await a.store.flush()
    assert all(0 < milliseconds <= 600_000 for milliseconds in lives())
    a.begin_turn()
    await a.store.flush()
    assert set(lives()) == {-1}


async def test_attachments_and_documents_are_as_in_a_file(pair: Pair) -> None:
    a, b = pair
    for name in ("a", "b", "c", "d"):
        both = {"again": b"." * 100, name: name.encode() * 100}
        a.end_turn(a.begin_turn(attachments=both, max_attached_bytes=300))
    await a.store.flush()
    assert set(await b.store.read_attachments(KEY, ["again", "a", "b", "c", "d"])) == {"again", "c", "d"}
    turn = a.begin_turn()
    turn.document, turn.attachments, turn.attachment_names = b"mine", {"own": b"1"}, frozenset({"own"})
    await a.store.save_document(KEY, turn, 2**20)
    await a.store.flush()
    assert await b.store.read_document(KEY, turn.number) == b"mine"
    assert await b.store.read_document(KEY, turn.number + 1) is None
    assert await b.store.read_attachments(KEY, ["again", "own", "nothing"]) == {"own": b"1"}


async def test_a_session_that_redis_rejects_for_ever_stays_in_memory(pair: Pair, redis_server: RedisServer) -> None:
    a, _ = pair
    a.begin_turn()
    await a.store.flush()
    [events] = [name.replace("meta", "events") for name in redis_server.ask("KEYS", "tis:*:meta")]
    redis_server.ask("SET", events, "no stream")
    a.append(b"a")
    await a.store.flush()
    assert (a.abandoned, a.store.durability) == ([KEY], "durable")


async def test_too_much_that_waits_is_written_from_memory_later(redis_server: RedisServer) -> None:
    with_little = RedisStore(redis_server.url, timeouts=replace(FAST_REDIS, max_queue_bytes=20_000))
    harness = StoreHarness(with_little)
    await harness.open()
    harness.begin_turn()
    await with_little.flush()
    for _ in range(50):
        harness.append(b"x" * 1000)
    assert harness.times_degraded == 1
    await harness.caught_up()
    assert len(await harness.read_all()) == 50
    await with_little.close()


async def test_without_redis_the_server_does_not_start_and_the_password_is_not_shown() -> None:
    store = RedisStore("redis://somebody:secret-word@127.0.0.1:1/0", timeouts=FAST_REDIS)
    with pytest.raises(StoreRefused, match="redis://somebody@127.0.0.1:1/0") as refused:
        await StoreHarness(store).open()
    assert "secret-word" not in str(refused.value)


async def test_a_document_is_replaced_by_whoever_has_read_its_last_version(pair: Pair) -> None:
    a, b = pair
    turn = a.begin_turn()
    a.end_turn(turn)
    await a.store.flush()
    await b.learn()
    turn.document = b"of b"
    assert await b.store.save_document(KEY, turn, 2**20, 0)  # the other holds it
    turn.document = b"of a"
    assert not await a.store.save_document(KEY, turn, 2**20, 0)
    assert await a.store.read_document(KEY, turn.number) == b"of b"
    assert (await a.learn()).document_version == 1
    assert await a.store.save_document(KEY, turn, 2**20, 1)
    assert (await b.store.read_document(KEY, turn.number), (await b.learn()).document_version) == (b"of a", 2)
    a.forget()
    await a.store.flush()
    assert not await b.store.save_document(KEY, turn, 2**20, 2)
    assert await b.store.find(KEY) is None


async def test_no_document_is_taken_while_redis_is_away(pair: Pair, redis_server: RedisServer) -> None:
    a, _ = pair
    turn = a.begin_turn()
    a.end_turn(turn)
    await a.store.flush()
    redis_server.kill()
    turn.document = b"lost?"
    with pytest.raises(StoreUnavailable):
        await a.store.save_document(KEY, turn, 2**20, 0)
    redis_server.start()


async def test_what_lives_on_with_a_replaced_document_is_deleted_with_its_session(
    pair: Pair, redis_server: RedisServer
) -> None:
    a, _ = pair
    turn = a.begin_turn()
    a.end_turn(turn)
    turn.document, turn.attachments, turn.attachment_names = b"mine", {"own": b"1"}, frozenset({"own"})
    assert await a.store.save_document(KEY, turn, 2**20, 0)
    [meta] = redis_server.ask("KEYS", "tis:*:meta")
    names = redis_server.ask("KEYS", f"{meta.removesuffix('meta').replace('{', '[{]')}*")
    assert {name.rpartition(":")[2] for name in names} >= {"meta", "documents", "attachments", "attached"}
    assert all(0 < redis_server.ask("PTTL", name) <= 600_000 for name in names)


async def test_to_wait_for_what_was_written_is_not_to_wait_for_what_others_write_meanwhile(pair: Pair) -> None:
    a, _ = pair
    is_over = asyncio.Event()

    async def keep_writing() -> None:
        while not is_over.is_set():
            a.append(b"more", key=OTHER)
            await asyncio.sleep(0)

    a.begin_turn(OTHER)
    writing = asyncio.create_task(keep_writing())
    a.begin_turn()
    a.append(b"mine")
    await asyncio.wait_for(a.store.flush(), timeout=20)
    assert a.is_acknowledged()
    is_over.set()
    await writing
