"""Sessions and turns as fields of a hash. Fields have names, and the hash its version: a later server may add some."""

import json
from collections.abc import Mapping

from tis.streaming.errors import LaterVersion
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, TurnRecord

VERSION = 1
Fields = dict[str, bytes]


def session_fields(session: SessionRecord, default_ttl_seconds: float) -> Fields:
    ttl = default_ttl_seconds if session.ttl_seconds is None else session.ttl_seconds
    fields = {
        "v": VERSION,
        "owner": session.key.owner,
        "id": session.key.id,
        "born": session.born,
        "named": int(session.is_named),
        "used": repr(session.used_at),
        "unheard": _optional(session.no_reader_since),
        "kind": session.kind,
        "own_ttl": _optional(session.ttl_seconds),
        "grace": _optional(session.grace_seconds),
        "ttl": max(1, round(ttl * 1000)),
    }
    return {name: str(value).encode() for name, value in fields.items()}


def turn_field(number: int) -> str:
    return f"t{number}"


def turn_value(turn: TurnRecord) -> bytes:
    head = {
        "fingerprint": turn.fingerprint,
        "first": turn.first_index,
        "last": turn.last_index,
        "status": turn.status,
        "ended": turn.ended_at,
        "repeat": turn.is_worth_repeating,
    }
    return json.dumps(head).encode() + b"\n" + turn.summary


def session_of(fields: Mapping[bytes, bytes]) -> SessionRecord | None:
    """None for one that was deleted."""
    if not fields or b"gone" in fields:
        return None
    if int(fields[b"v"]) > VERSION:
        raise LaterVersion("A later version of the server has recorded this session. Retry later.", retry_after=5)
    session = SessionRecord(
        SessionKey(fields[b"owner"].decode(), fields[b"id"].decode()),
        fields[b"named"] == b"1",
        float(fields[b"used"]),
        _float(fields[b"unheard"]),
        next_index=int(fields[b"next"]),
        kind=fields[b"kind"].decode(),
        ttl_seconds=_float(fields[b"own_ttl"]),
        grace_seconds=_float(fields[b"grace"]),
        is_cut=b"cut" in fields,
        document_version=int(fields.get(b"doc", 0)),
        born=fields[b"born"].decode(),
        epoch=int(fields.get(b"epoch", 0)),
    )
    numbers = sorted(int(name[1:]) for name in fields if name[:1] == b"t" and name[1:].isdigit())
    session.turns = [_turn_of(number, fields[turn_field(number).encode()]) for number in numbers]
    return session


def event_of(entry: tuple[bytes, Mapping[bytes, bytes]]) -> Event:
    name, fields = entry
    return Event(int(name.rpartition(b"-")[2]) - 1, fields[b"d"], fields[b"s"])


def _turn_of(number: int, value: bytes) -> TurnRecord:
    head, _, summary = value.partition(b"\n")
    found = json.loads(head)
    return TurnRecord(
        number,
        found["fingerprint"],
        b"",
        found["first"],
        found["last"],
        found["status"],
        summary,
        found["ended"],
        found["repeat"],
    )


def _optional(value: float | None) -> str:
    return "" if value is None else repr(value)


def _float(value: bytes) -> float | None:
    return float(value) if value else None
