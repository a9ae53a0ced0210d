"""Documents in the file survive a kill, are replaced as a whole and leave nothing when deleted."""

from pathlib import Path

import pytest

from tests.streaming.stores.damaged_files import reopened
from tests.streaming.stores.harness import KEY, StoreHarness, until
from tis.streaming.stores.store import SessionRecord

pytestmark = pytest.mark.anyio
PLENTY = 2**20


async def test_the_next_process_reads_documents_on_demand(harness: StoreHarness, path: Path) -> None:
    session, _ = harness.memory[KEY]
    turn = session.turns[0]
    turn.document, turn.attachments, turn.attachment_names = b"first", {"photo": b"x" * 3000}, frozenset({"photo"})
    await harness.store.save_document(KEY, turn, PLENTY)
    turn.document, turn.attachments = b"second", {}
    await harness.store.save_document(KEY, turn, PLENTY)
    await harness.store.flush()
    await harness.store.close()
    again = await reopened(path)
    [kept] = again.memory[KEY][0].turns
    assert kept.document == b"" and not kept.attachments
    assert await again.store.read_document(KEY, 0) == b"second"
    assert await again.store.read_document(KEY, 1) is None
    assert dict(await again.store.read_attachments(KEY, ["photo"])) == {"photo": b"x" * 3000}
    kept.document, kept.attachment_names = b"third", frozenset()
    await again.store.save_document(KEY, kept, PLENTY)
    await again.store.flush()
    assert dict(await again.store.read_attachments(KEY, ["photo"])) == {}
    await again.store.close()


async def test_the_attachments_of_a_document_are_bounded(harness: StoreHarness) -> None:
    turn = harness.memory[KEY][0].turns[0]
    turn.document, turn.attachments, turn.attachment_names = (
        b"mine",
        {"own": b"3", "other": b"12"},
        frozenset({"own", "other"}),
    )
    await harness.store.save_document(KEY, turn, max_attached_bytes=2)
    assert await _attached(harness) == {"other": b"12"}


async def test_the_end_of_a_turn_deletes_attachments_that_its_document_does_not_name(harness: StoreHarness) -> None:
    harness.memory[KEY][0].turns[0].attachment_names = frozenset({"own"})
    turn = harness.memory[KEY][0].turns[0]
    turn.document, turn.attachments = b"mine", {"own": b"1"}
    await harness.store.save_document(KEY, turn, PLENTY)
    turn.attachment_names, turn.attachments = None, {"other": b"2"}
    await harness.store.save_document(KEY, turn, PLENTY)
    assert len(await _attached(harness)) == 2
    turn.attachment_names = frozenset({"own"})
    harness.end_turn(turn)
    assert await _attached(harness) == {"own": b"1"}


async def test_no_byte_of_deleted_attachments_is_left_in_the_file(harness: StoreHarness, path: Path) -> None:
    turn = harness.begin_turn(attachments={"own": b"mine", "other": b"a secret picture" * 500})
    turn.document, turn.attachment_names = b"mine", frozenset({"own"})
    await harness.store.flush()
    assert any(b"secret" in part.read_bytes() for part in _parts(path))
    harness.end_turn(turn)
    await until(lambda: not any(b"secret" in part.read_bytes() for part in _parts(path)))
    assert await _attached(harness) == {"own": b"mine"}


async def test_the_retention_of_a_session_is_stored(harness: StoreHarness, path: Path) -> None:
    key = KEY._replace(id="letter")
    harness.memory[key] = (
        SessionRecord(key, True, harness.store.now(), kind="letter", ttl_seconds=9.5, grace_seconds=float("inf")),
        [],
    )
    harness.begin_turn(key)
    await harness.store.flush()
    await harness.store.close()
    again = await reopened(path)
    session = again.memory[key][0]
    assert (session.kind, session.ttl_seconds, session.grace_seconds) == ("letter", 9.5, float("inf"))
    other = again.memory[KEY][0]
    assert (other.kind, other.ttl_seconds, other.grace_seconds) == ("", None, None)
    await again.store.close()


async def test_a_deleted_session_leaves_no_byte_in_the_file(harness: StoreHarness, path: Path) -> None:
    turn = harness.memory[KEY][0].turns[0]
    turn.document, turn.attachments = b"a secret document", {"photo": b"a secret picture" * 500}
    await harness.store.save_document(KEY, turn, PLENTY)
    harness.append(b"a secret answer")
    await harness.store.flush()
    assert any(b"secret" in part.read_bytes() for part in _parts(path))
    harness.forget()
    await until(lambda: not any(b"secret" in part.read_bytes() for part in _parts(path)))


async def _attached(harness: StoreHarness) -> dict[str, bytes]:
    await harness.store.flush()
    return dict(await harness.store.read_attachments(KEY, ["own", "other"]))


def _parts(path: Path) -> list[Path]:
    return [part for part in path.parent.iterdir() if part.name.startswith(path.name)]
