"""Sessions of two processes on one store: what one of them does is what the other finds."""

from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from tests.redis_server import RedisServer
from tests.streaming.scripted_source import REQUEST, ScriptedSource, data_of
from tests.streaming.stores.harness import FAST_REDIS, until
from tis.streaming.errors import SessionConflict, SessionExpired, SessionNotFound
from tis.streaming.retention import SessionLimits
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.source import ReadAttachments
from tis.streaming.stores.redis import RedisStore
from tis.streaming.stores.redis_keys import REPLICAS, digest_of, held_by, keys_of
from tis.streaming.stores.store import SessionKey
from tis.streaming.turn import Turn

pytestmark = pytest.mark.anyio
KEY = SessionKey("me", "s")
OTHER = SessionRequest("me", "s", "another request")
Pair = tuple[Sessions, Sessions]


@pytest.fixture
async def pair(redis_server: RedisServer) -> AsyncIterator[Pair]:
    limits = SessionLimits(sweep_seconds=0.02, named_grace_seconds=20)
    both = tuple(Sessions(limits, RedisStore(redis_server.url, timeouts=FAST_REDIS)) for _ in range(2))
    for sessions in both:
        await sessions.open()
    yield both[0], both[1]
    for sessions in both:
        await sessions.close()


async def started(
    sessions: Sessions, *lines: bytes, request: SessionRequest = REQUEST
) -> tuple[ScriptedSource, Session, Turn]:
    script = ScriptedSource(*lines)
    await sessions.refresh(request.owner, request.session_id)
    session, turn = sessions.start(request, lambda: script)
    return script, session, turn


async def found(sessions: Sessions) -> Session:
    await sessions.refresh(*KEY, is_required=True)
    return sessions.find(*KEY)


async def until_stored(sessions: Sessions) -> None:
    """A sweep of the other process looks at nothing that is not stored."""
    assert await sessions.commit()


async def test_one_process_reads_what_another_makes(pair: Pair) -> None:
    a, b = pair
    script, _, _ = await started(a, b"1", b"2")
    await until(lambda: a.num_running)
    await until_stored(a)
    session = await found(b)
    assert session.is_running and session.is_followed and b.num_running == 0
    script.go.set()
    assert await data_of(session, session.latest) == [b"1", b"2", b"end"]
    assert session.latest.status == "finished"


async def test_the_same_request_attaches_and_another_is_refused(pair: Pair) -> None:
    a, b = pair
    script, _, turn = await started(a, b"1")
    await until_stored(a)
    second, _, attached = await started(b, b"never")
    assert attached.fingerprint == turn.fingerprint
    with pytest.raises(SessionConflict):
        await started(b, request=OTHER)
    script.go.set()
    assert await data_of(b.find(*KEY), attached) == [b"1", b"end"]
    assert not second.was_cancelled  # it was not begun at all


async def test_of_two_that_begin_at_once_one_makes_the_events_and_both_show_them(pair: Pair) -> None:
    a, b = pair
    scripts = [ScriptedSource(b"of a"), ScriptedSource(b"of b")]
    for sessions, script in zip(pair, scripts, strict=True):  # neither has seen the other
        sessions.start(REQUEST, _just(script))
    sessions_of_both = [sessions.find(*KEY) for sessions in pair]
    await until(lambda: any(session.is_followed for session in sessions_of_both))
    winner, loser = sorted((0, 1), key=lambda one: sessions_of_both[one].is_followed)
    assert scripts[loser].was_cancelled and not scripts[winner].was_cancelled
    scripts[winner].go.set()
    for session in sessions_of_both:
        assert await data_of(session, session.latest) == [b"of a" if winner == 0 else b"of b", b"end"]


async def test_of_two_that_begin_different_turns_at_once_one_is_refused(pair: Pair) -> None:
    a, b = pair
    first, second = ScriptedSource(b"of a"), ScriptedSource(b"of b")
    session, turn = a.start(REQUEST, lambda: first)
    await until_stored(a)
    late, late_turn = b.start(OTHER, lambda: second)
    with pytest.raises(SessionConflict):
        await data_of(late, late_turn)
    first.go.set()
    assert await data_of(session, turn) == [b"of a", b"end"]
    assert second.was_cancelled


async def test_a_reader_elsewhere_counts_as_a_reader(pair: Pair) -> None:
    a, b = pair
    script, at_a, _ = await started(a, b"1")
    await until_stored(a)
    at_b = await found(b)

    def is_heard() -> bool:
        since = at_a._record.no_reader_since
        return since is not None and since > a.now() + 5

    assert not is_heard()
    with at_b.listening(at_b.latest, -1):
        await until(is_heard)
    script.go.set()


async def test_a_holder_out_of_reach_cancels_nothing_for_want_of_readers_as_nobody_can_tell_it_of_one(
    pair: Pair, redis_server: RedisServer
) -> None:
    a, _ = pair
    script, at_a, _ = await started(a, b"1")
    await until_stored(a)
    store = a._store
    assert isinstance(store, RedisStore)
    redis_server.pause()
    try:
        await until(lambda: not store.hears_others)
        at_a._record.no_reader_since = a.now() - 60  # they have not said so for longer than the grace
        await until(lambda: (at_a._record.no_reader_since or 0) > a.now() + 5)
        assert at_a.is_running and not script.was_cancelled
    finally:
        redis_server.go_on()
    await until(lambda: a.durability == "durable")
    assert at_a.is_running and not script.was_cancelled
    script.go.set()
    assert await data_of(at_a, at_a.latest) == [b"1", b"end"]


async def test_the_next_turn_may_be_anywhere(pair: Pair) -> None:
    a, b = pair
    script, _, _ = await started(a, b"first")
    script.go.set()
    at_a = a.find(*KEY)
    await until(lambda: not at_a.is_running)
    await until_stored(a)
    script, session, turn = await started(b, b"second", request=OTHER)
    script.go.set()
    assert await data_of(session, turn) == [b"second", b"end"]
    assert (turn.record.number, turn.first_index) == (1, 2)
    await until_stored(b)
    at_a = await found(a)
    assert await data_of(at_a, at_a.latest) == [b"second", b"end"]
    assert await data_of(at_a, at_a.turns[0]) == [b"first", b"end"]


async def test_what_one_deletes_is_gone_for_the_other(pair: Pair) -> None:
    a, b = pair
    script, at_a, turn = await started(a, b"1")
    await until_stored(a)
    await b.delete(await found(b))
    assert script.was_cancelled
    for sessions in pair:
        await sessions.refresh(*KEY)
        with pytest.raises((SessionNotFound, SessionExpired)):
            sessions.find(*KEY)


async def test_a_name_that_was_deleted_elsewhere_begins_anew(pair: Pair) -> None:
    a, b = pair
    script, at_a, _ = await started(a, b"old")
    script.go.set()
    await until(lambda: not at_a.is_running)
    await until_stored(a)
    await b.delete(await found(b))
    script, session, turn = await started(b, b"new")
    script.go.set()
    await until(lambda: not session.is_running)
    await until_stored(b)
    at_a = await found(a)
    assert await data_of(at_a, at_a.latest) == [b"new", b"end"]
    assert at_a.latest.first_index == 0


async def test_an_answer_goes_on_once_in_the_next_process_or_is_cancelled_there(redis_server: RedisServer) -> None:
    resumed: list[ScriptedSource] = []

    def resume(request: bytes, states: Sequence[bytes], read_attachments: ReadAttachments) -> ScriptedSource:
        resumed.append(ScriptedSource(b"of %d" % len(states)))
        return resumed[-1]

    first = Sessions(SessionLimits(), RedisStore(redis_server.url, timeouts=FAST_REDIS))
    await first.open()
    for name in ("goes on", "is cancelled"):
        first.start(SessionRequest("me", name, "f"), _just(ScriptedSource(b"1", b"2")))
    await until(lambda: all(session.recording.next_index == 2 for session in first))
    await first.commit()
    digest = digest_of(SessionKey("me", "is cancelled"))
    redis_server.ask("HSET", keys_of(digest).meta, "cancel", 1)  # another server has just ordered it
    await first.close()
    second = Sessions(SessionLimits(), RedisStore(redis_server.url, timeouts=FAST_REDIS), resume)
    await second.open()
    await until(lambda: len(resumed) == second.num_kept == 2)
    cancelled = second.find("me", "is cancelled")
    await until(lambda: not cancelled.is_running)
    goes_on = second.find("me", "goes on")
    assert goes_on.is_running and cancelled.latest.status == "cancelled"
    for script in resumed:
        script.go.set()
    assert await data_of(goes_on, goes_on.latest) == [b"1", b"2", b"of 2", b"end"]
    assert len(resumed) == 2
    await second.close()


async def test_what_is_taken_back_begins_when_what_was_running_has_stopped(redis_server: RedisServer) -> None:
    resumed: list[ScriptedSource] = []

    def resume(request: bytes, states: Sequence[bytes], read_attachments: ReadAttachments) -> ScriptedSource:
        resumed.append(ScriptedSource(b"of %d" % len(states)))
        return resumed[-1]

    sessions = Sessions(SessionLimits(), RedisStore(redis_server.url, timeouts=FAST_REDIS), resume)
    await sessions.open()
    script, session, turn = await started(sessions, b"1", b"2")
    await until(lambda: session.recording.next_index == 2)
    await until_stored(sessions)
    # Another process has taken it while this one was paused, and has died.
    digest = digest_of(KEY)
    redis_server.ask("HSET", keys_of(digest).meta, "claim", "dead:1")
    redis_server.ask("SADD", held_by("dead"), digest)
    redis_server.ask("ZADD", REPLICAS, 0, "dead")
    await until(lambda: redis_server.ask("ZSCORE", REPLICAS, "dead") == 0 and lease_was_renewed(redis_server))
    assert not resumed  # two would write at once
    script.go.set()
    await until(lambda: resumed)
    resumed[0].go.set()
    assert await data_of(session, session.latest) == [b"1", b"2", b"of 2", b"end"]
    assert len(resumed) == 1
    await sessions.close()


def lease_was_renewed(redis: RedisServer) -> bool:
    """Since the first time that this was asked, twice."""
    with redis.client() as client:
        [replica] = [name for name, ends_at in client.zrange(REPLICAS, 0, -1, withscores=True) if ends_at]
        seen = client.sadd("seen", client.zscore(REPLICAS, replica))
        return bool(seen) and client.scard("seen") > 3


async def test_an_answer_whose_server_dies_goes_on_at_one_that_had_an_earlier_turn_of_it(
    redis_server: RedisServer,
) -> None:
    resumed: list[ScriptedSource] = []

    def resume(request: bytes, states: Sequence[bytes], read_attachments: ReadAttachments) -> ScriptedSource:
        resumed.append(ScriptedSource(b"of %d" % len(states)))
        return resumed[-1]

    a, b = (Sessions(SessionLimits(), RedisStore(redis_server.url, timeouts=FAST_REDIS), resume) for _ in range(2))
    for sessions in (a, b):
        await sessions.open()
    script, session, _ = await started(a, b"first")
    script.go.set()
    await until(lambda: not session.is_running)
    await until_stored(a)
    await started(b, b"second", request=OTHER)
    await until_stored(b)
    b._store._tasks[1].cancel()  # type: ignore[attr-defined]  # it renews its lease no longer
    await until(lambda: resumed)
    resumed[0].go.set()
    at_a = await found(a)
    assert await data_of(at_a, at_a.latest) == [b"second", b"of 1", b"end"]
    for sessions in (a, b):
        await sessions.close()


async def test_a_process_keeps_only_so_many_and_finds_the_others_again(redis_server: RedisServer) -> None:
    sessions = Sessions(SessionLimits(max_sessions=2), RedisStore(redis_server.url, timeouts=FAST_REDIS))
    await sessions.open()
    for name in ("a", "b", "c", "d"):
        script = ScriptedSource(name.encode())
        script.go.set()
        session, _ = sessions.start(SessionRequest("me", name, "f"), _just(script))
        await until(_is_over(session))
    assert sessions.num_kept == 2
    await sessions.flush()
    await sessions.refresh("me", "a", is_required=True)
    session = sessions.find("me", "a")
    assert await data_of(session, session.latest) == [b"a", b"end"]
    await sessions.close()


def _just(script: ScriptedSource) -> Callable[[], ScriptedSource]:
    return lambda: script


def _is_over(session: Session) -> Callable[[], bool]:
    return lambda: not session.is_running


async def test_a_turn_that_is_begun_with_an_old_view_does_not_take_the_place_of_one_that_has_ended_since(
    pair: Pair,
) -> None:
    a, b = pair
    for request, line in ((REQUEST, b"first"), (OTHER, b"second")):
        script, session, turn = await started(a, line, request=request)
        script.go.set()
        assert await data_of(session, turn) == [line, b"end"]
        await until_stored(a)
        if request is REQUEST:
            await found(b)
    late, late_turn = b.start(SessionRequest("me", "s", "a third request"), _just(ScriptedSource(b"third")))
    with pytest.raises(SessionConflict):
        await data_of(late, late_turn)
    for sessions in pair:
        session = await found(sessions)
        assert [turn.fingerprint for turn in session.turns] == [REQUEST.fingerprint, OTHER.fingerprint]
        assert await data_of(session, session.latest) == [b"second", b"end"]
