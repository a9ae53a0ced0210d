"""The stored document of a conversation: its own items, and the ids of the responses that belong to it.

The output of a response is stored with the response only. So the conversation needs no update when the response ends,
which a crash could prevent. The items of a deleted response, and of one with `store: false`, become items of the
conversation itself.

It is stored as lines of JSON, the head first and then an entry a line: to append, the entries need not be read.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tis.errors import BadRequest, NotFound, ServiceError
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id
from tis.openai_api.store.items import Item, media_names, response_of
from tis.openai_api.store.responses import (
    MAX_HISTORY_ITEMS,
    ResponseStore,
    StoredItem,
    conversation_locked,
    encode_document,
    entries_of,
    history_too_long,
)
from tis.streaming.errors import SessionConflict, StoreUnavailable
from tis.streaming.session import Session

# The event loop encodes the whole document in about 10 ms; a thread would hold the interpreter's lock as long.
# A document of this size has about 250,000 tokens of text.
_MAX_BYTES = 2**20
_RETRY_SECONDS = 0.5  # while the database of conversations is away
Document = dict[str, Any]


def new_document(metadata: Mapping[str, str]) -> Document:
    """`attached` maps each picture of its own items to its size in bytes."""
    return {"created_at": int(time.time()), "metadata": dict(metadata), "next": 0, "num_entries": 0, "attached": {}}


def new_conversation(
    metadata: Mapping[str, str], items: Sequence[Item], attachments: Mapping[str, bytes], max_attached_bytes: int
) -> bytes:
    """Raises BadRequest if it would be too large."""
    pages = _Pages(new_document(metadata), b"")
    pages.add_items(items, attachments, max_attached_bytes)
    return pages.encoded()


class _Pages:
    """The head, and the lines of the entries as they are stored."""

    def __init__(self, head: Document, lines: bytes) -> None:
        self.head, self.lines = head, lines

    @classmethod
    def of(cls, stored: bytes) -> "_Pages":
        head, _, lines = stored.partition(b"\n")
        return cls(json.loads(head), lines)

    def encoded(self) -> bytes:
        return encode_document(self.head) + b"\n" + self.lines

    @property
    def num_bytes(self) -> int:
        return len(self.lines)

    def entries(self) -> list[dict[str, Any]]:
        return entries_of(self.lines)

    def last_entry(self) -> list[dict[str, Any]]:
        return entries_of(self.lines.rpartition(b"\n")[2])

    def add_items(self, items: Sequence[Item], attachments: Mapping[str, bytes], max_attached_bytes: int) -> None:
        """Adds all items, or raises BadRequest and adds none if the document would become too large."""
        entries = [{"item": item} for item in items]
        self.require_room(entries)
        self.head["attached"] = _with_attached(self.head, attachments, max_attached_bytes)
        self.append(entries)
        self.head["next"] += len(items)

    def require_room(self, entries: Sequence[Any]) -> None:
        if self.head["num_entries"] + len(entries) > MAX_HISTORY_ITEMS:
            raise history_too_long("conversation")
        _require_bytes(self.num_bytes, entries)

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        self.lines = b"\n".join([*([self.lines] if self.lines else []), *map(encode_document, entries)])
        self.head["num_entries"] += len(entries)

    def replace(self, entries: Sequence[dict[str, Any]]) -> None:
        """Pictures that no entry names any more go."""
        self.lines, self.head["num_entries"] = b"", 0
        self.append(entries)
        named = media_names([entry["item"] for entry in entries if "item" in entry])
        self.head["attached"] = {name: size for name, size in self.head["attached"].items() if name in named}


def _require_bytes(num_bytes: int, entries: Sequence[Any]) -> None:
    if num_bytes + len(encode_document({"entries": entries})) > _MAX_BYTES:
        raise BadRequest(
            f"A conversation has at most {_MAX_BYTES // 2**20} MiB of items of its own, without pictures."
            " Start a new one, or delete this one.",
            param="conversation",
            code="conversation_too_large",
        )


def _with_attached(document: Document, attachments: Mapping[str, bytes], max_attached_bytes: int) -> dict[str, int]:
    attached: dict[str, int] = document["attached"] | {name: len(data) for name, data in attachments.items()}
    if attachments and sum(attached.values()) > max_attached_bytes:
        raise BadRequest(
            f"The pictures and videos of a conversation exceed {max_attached_bytes} bytes (MAX_SESSION_MEDIA_MB).",
            param="items",
            code="media_too_large",
        )
    return attached


class StoredConversation:
    """A conversation as it was read. A change raises SessionConflict if another request changed it meanwhile."""

    def __init__(self, store: ResponseStore, session: Session, version: int, pages: _Pages) -> None:
        self._store = store
        self._session = session
        self._version = version
        self._pages = pages

    @classmethod
    async def read(
        cls, store: ResponseStore, conversation_id: str, param: str = "conversation_id"
    ) -> "StoredConversation":
        session = await store.conversation(conversation_id, param)
        version = session.document_version
        return cls(store, session, version, _Pages.of(await store.stored_document(session)))

    def to_object(self) -> dict[str, Any]:
        fields = {name: self._pages.head[name] for name in ("created_at", "metadata")}
        return {"id": self._session.id, "object": "conversation", **fields}

    async def items(self) -> list[StoredItem]:
        return await self._store.items_of_entries(self._pages.entries(), self._session)

    def next_item_number(self) -> int:
        return int(self._pages.head["next"])

    async def require_no_running_response(self) -> None:
        """Items cannot be added while a response of the conversation is running."""
        await self._store.require_no_running_response(self._pages.last_entry())

    def require_unchanged(self) -> None:
        if self._session.document_version != self._version:
            raise conversation_locked()

    def require_room_for(self, response_id: str) -> None:
        self._pages.require_room([_entry_of(response_id)])

    async def add_response(self, response_id: str) -> None:
        self._pages.append([_entry_of(response_id)])
        await self._save({})

    async def add_items(self, items: Sequence[Item], attachments: Mapping[str, bytes]) -> None:
        self._pages.add_items(items, attachments, self._store.max_attached_bytes)
        await self._save(attachments)

    def require_room_for_items(self, items: Sequence[Item], attachments: Mapping[str, bytes]) -> None:
        _require_bytes(self._pages.num_bytes, [{"item": item} for item in items])
        _with_attached(self._pages.head, attachments, self._store.max_attached_bytes)

    async def replace_response(self, response_id: str, items: Sequence[Item], attachments: Mapping[str, bytes]) -> None:
        """Puts items in the place of the response that they are of."""
        entries: list[dict[str, Any]] = []
        for entry in self._pages.entries():
            if entry.get("response") == response_id:
                entries += [{"item": item} for item in items if item["id"] not in entry["without"]]
            else:
                entries.append(entry)
        sizes = {name: len(data) for name, data in attachments.items()}
        self._pages.head["attached"] |= sizes
        self._pages.replace(entries)
        await self._save(attachments)

    async def change_metadata(self, metadata: Mapping[str, str]) -> None:
        self._pages.head["metadata"] = dict(metadata)
        await self._save({})

    async def remove(self, item_id: str) -> None:
        entries = [entry for entry in self._pages.entries() if entry.get("item", {}).get("id") != item_id]
        for entry in entries:
            if "response" in entry and response_of(item_id) == entry["response"]:
                entry["without"].append(item_id)
        self._pages.replace(entries)
        await self._save({})

    async def _save(self, attachments: Mapping[str, bytes]) -> None:
        names = frozenset(self._pages.head["attached"])
        if not await self._session.save_document(
            self._pages.encoded(), attachments, names, replaced_version=self._version
        ):
            raise conversation_locked()


async def move_items_to_conversation(
    store: ResponseStore, session: Session, output: Sequence[Item], *, is_bounded: bool
) -> None:
    """The items of a response become items of its conversation, if it has one."""
    document = await store.document(session)
    own = await store.resolve_references(document["items"], session)
    found: list[StoredItem] = [*own, *((item, session) for item in output)]
    attached: dict[str, bytes] = {}
    for item, holder in found:
        attached |= await holder.attachments(media_names([item]) - attached.keys())
    items = [item for item, _ in found]
    while document["conversation"]:
        try:
            conversation = await StoredConversation.read(store, document["conversation"])
            if is_bounded:
                conversation.require_room_for_items(items, attached)
            await conversation.replace_response(session.id, items, attached)
        except SessionConflict:
            continue  # another request changed it while it was read
        except NotFound:
            pass  # it was deleted
        return


async def join_conversation(
    store: ResponseStore, response_id: str, is_listed: asyncio.Event, last_event: bytes
) -> bytes:
    """Before a response of `store: false` ends: its conversation has its items when clients see the end.

    Returns the last event; it names no conversation if that could not be changed.
    """
    await is_listed.wait()
    session = await store.any_response(response_id)
    assert session
    ends_at = time.monotonic() + store.max_wait_seconds
    event = json.loads(last_event)
    while True:
        try:
            await move_items_to_conversation(store, session, event["response"]["output"], is_bounded=False)
            await store.flush()
            return last_event
        except ServiceError as error:
            if isinstance(error, StoreUnavailable) and time.monotonic() < ends_at:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            log_exception("the items of a response could not be added to its conversation", error, current_request_id())
            event["response"]["conversation"] = None
            return encode_document(event)


def _entry_of(response_id: str) -> dict[str, Any]:
    return {"response": response_id, "without": []}
