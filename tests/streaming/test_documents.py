"""Sessions with a kind: they live longer than a stream and have a document."""

import math
from dataclasses import replace

import pytest

from tests.streaming.manual_store import ManualStore
from tests.streaming.scripted_source import REQUEST, ScriptedSource, settle, start_turn
from tis.errors import QueueFull
from tis.streaming.errors import SessionConflict, SessionNotFound
from tis.streaming.retention import Retention, SessionLimits
from tis.streaming.sessions import Sessions
from tis.streaming.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio
LETTER = Retention("letter", ttl_seconds=86400, document=b"Dear", attachment_names=frozenset({"photo"}))
AS_LETTER = replace(REQUEST, retention=LETTER)


class SourceWithTwoAttachments(ScriptedSource):
    attachments = {"photo": b"of me", "other": b"of you"}


async def test_a_session_is_found_only_by_its_kind() -> None:
    sessions = Sessions(SessionLimits())
    script, session, _ = start_turn(sessions, AS_LETTER)
    assert sessions.find("me", "s", "letter") is session
    with pytest.raises(SessionNotFound):
        sessions.find("me", "s")
    assert await sessions.cancel("me", "s") == "unknown"
    with pytest.raises(SessionConflict):
        start_turn(sessions)
    script.go.set()
    await settle()


@pytest.mark.parametrize("store", [MemoryStore, ManualStore])
async def test_the_document_and_its_attachments_stay_after_the_turn(store: type[MemoryStore | ManualStore]) -> None:
    sessions = Sessions(SessionLimits(), store())
    source = SourceWithTwoAttachments(b"a")
    session, _ = sessions.start(AS_LETTER, lambda: source)
    source.go.set()
    await settle()
    assert not session.is_running
    assert await session.document() == b"Dear"
    assert dict(await session.attachments(["photo"])) == {"photo": b"of me"}
    if store is MemoryStore:
        assert dict(await session.attachments(["other"])) == {}


async def test_documents_in_a_durable_store_are_freed_from_memory() -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(), store)
    source = SourceWithTwoAttachments(b"a")
    session, turn = sessions.start(replace(AS_LETTER, retention=replace(LETTER, ttl_seconds=600)), lambda: source)
    source.go.set()
    await settle()
    sessions.sweep()
    assert turn.record.document and turn.record.attachments
    store.skew = 60
    sessions.sweep()
    assert not turn.record.document and not turn.record.attachments
    assert await session.document() == b"Dear" and dict(await session.attachments(["photo"])) == {"photo": b"of me"}


async def test_a_document_without_an_answer_is_stored_and_replaced() -> None:
    sessions = Sessions(SessionLimits())
    session = await sessions.save_document("me", "list", Retention("list", 600, document=b"one"))
    assert await session.document() == b"one" and not session.is_running
    assert await session.save_document(b"two", {"photo": b"x"}, frozenset({"photo"}), replaced_version=0)
    assert await session.save_document(b"three", {}, frozenset({"photo"}), replaced_version=1)
    assert (await session.document(), dict(await session.attachments(["photo"]))) == (b"three", {"photo": b"x"})
    assert await session.save_document(b"four", {}, frozenset(), replaced_version=2)
    assert dict(await session.attachments(["photo"])) == {}
    assert sessions.find("me", "list", "list") is session


async def test_each_kind_has_its_own_ttl() -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(ttl_seconds=10), store)
    for name, asked in (("stream", REQUEST), ("letter", AS_LETTER)):
        script, *_ = start_turn(sessions, replace(asked, session_id=name))
        script.go.set()
    await settle()
    store.skew = 60
    for _ in range(40):
        sessions.sweep()
    assert sessions.find("me", "letter", "letter")
    assert [key.id for key in store.forgotten] == ["stream"]
    store.skew = 100_000
    for _ in range(40):
        sessions.sweep()
    assert [key.id for key in store.forgotten] == ["stream", "letter"]


@pytest.mark.parametrize(("grace", "is_left"), [(math.inf, False), (0.0, True), (None, False)])
async def test_each_kind_has_its_own_grace_period(grace: float | None, is_left: bool) -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(named_grace_seconds=1000), store)
    script, *_ = start_turn(sessions, replace(AS_LETTER, retention=replace(LETTER, grace_seconds=grace)))
    store.skew = 60
    sessions.sweep()
    assert script.was_cancelled is is_left
    script.go.set()
    await settle()


async def test_streams_and_retained_sessions_do_not_evict_each_other() -> None:
    sessions = Sessions(SessionLimits(max_sessions=1, max_retained=2))
    for number in range(3):
        for asked in (REQUEST, AS_LETTER):
            script, *_ = start_turn(sessions, replace(asked, session_id=f"{asked.kind}{number}"))
            script.go.set()
            await settle()
    assert sorted(session.id for session in sessions) == ["2", "letter1", "letter2"]
    start_turn(sessions, replace(REQUEST, session_id="running"))
    with pytest.raises(QueueFull):
        start_turn(sessions, replace(REQUEST, session_id="next"))


async def test_deleting_cancels_the_turn_and_leaves_nothing() -> None:
    store = ManualStore()
    sessions = Sessions(SessionLimits(), store)
    script, session, _ = start_turn(sessions, AS_LETTER)
    await sessions.delete(session)
    assert script.was_cancelled and store.forgotten == [session.recording.key]
    with pytest.raises(Exception, match="no longer kept"):
        sessions.find("me", "s", "letter")
