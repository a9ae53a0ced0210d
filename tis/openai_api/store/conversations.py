"""The stored document of a conversation: its own items, and the ids of the responses that belong to it.

The output of a response is stored with the response only. So the conversation needs no update when the response ends,
which a crash could prevent. The items of a deleted response, and of one with `store: false`, become items of the
conversation itself.
"""

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
    history_too_long,
)
from tis.streaming.errors import SessionConflict
from tis.streaming.session import Session

# The event loop encodes the whole document in about 10 ms; a thread would hold the interpreter's lock as long.
# A document of this size has about 250,000 tokens of text.
_MAX_BYTES = 2**20
Document = dict[str, Any]


def new_document(metadata: Mapping[str, str]) -> Document:
    """`attached` maps each picture of its own items to its size in bytes."""
    return {"created_at": int(time.time()), "metadata": dict(metadata), "next": 0, "entries": [], "attached": {}}


def add_items(
    document: Document,
    items: Sequence[Item],
    attachments: Mapping[str, bytes],
    max_attached_bytes: int,
    num_bytes: int | None = None,  # size of the stored document, if it is known
) -> None:
    """Adds all items, or raises BadRequest and adds none if the document would become too large."""
    entries = [{"item": item} for item in items]
    _require_room(document, len(encode_document(document)) if num_bytes is None else num_bytes, entries)
    document["attached"] = _with_attached(document, attachments, max_attached_bytes)
    document["entries"] += entries
    document["next"] += len(items)


def _require_room(document: Document, num_bytes: int, entries: Sequence[Any]) -> None:
    if len(document["entries"]) + len(entries) > MAX_HISTORY_ITEMS:
        raise history_too_long("conversation")
    _require_bytes(num_bytes, entries)


def _require_bytes(num_bytes: int, entries: Sequence[Any]) -> None:
    if num_bytes + len(encode_document({"entries": entries})) > _MAX_BYTES:
        raise BadRequest(
            f"A conversation has at most {_MAX_BYTES // 2**20} MiB of items of its own, without pictures."
            " Start a new one, or delete this one.",
            param="conversation",
            code="conversation_too_large",
        )


def _with_attached(document: Document, attachments: Mapping[str, bytes], max_attached_bytes: int) -> dict[str, int]:
    attached: dict[str, int] = document.get("attached", {}) | {name: len(data) for name, data in attachments.items()}
    if attachments and sum(attached.values()) > max_attached_bytes:
        raise BadRequest(
            f"The pictures and videos of a conversation exceed {max_attached_bytes} bytes (MAX_SESSION_MEDIA_MB).",
            param="items",
            code="media_too_large",
        )
    return attached


class StoredConversation:
    """A conversation as it was read. A change raises SessionConflict if another request changed it meanwhile."""

    def __init__(
        self, store: ResponseStore, session: Session, version: int, document: Document, num_bytes: int
    ) -> None:
        self._store = store
        self._session = session
        self._version = version
        self._document = document
        self._num_bytes = num_bytes

    @classmethod
    async def read(
        cls, store: ResponseStore, conversation_id: str, param: str = "conversation_id"
    ) -> "StoredConversation":
        session = store.conversation(conversation_id, param)
        version = session.document_version
        return cls(store, session, version, *await store.document_and_size(session))

    def to_object(self) -> dict[str, Any]:
        fields = {name: self._document[name] for name in ("created_at", "metadata")}
        return {"id": self._session.id, "object": "conversation", **fields}

    async def items(self) -> list[StoredItem]:
        return await self._store.items_of_entries(self._document["entries"], self._session)

    def next_item_number(self) -> int:
        return int(self._document["next"])

    def require_no_running_response(self) -> None:
        """Items cannot be added while a response of the conversation is running."""
        self._store.require_no_running_response(self._document["entries"])

    def require_unchanged(self) -> None:
        if self._session.document_version != self._version:
            raise conversation_locked()

    def require_room_for(self, response_id: str) -> None:
        _require_room(self._document, self._num_bytes, [_entry_of(response_id)])

    def add_response(self, response_id: str) -> None:
        self._document["entries"].append(_entry_of(response_id))
        self._save({})

    def add_items(self, items: Sequence[Item], attachments: Mapping[str, bytes]) -> None:
        max_attached_bytes = self._store.max_attached_bytes
        add_items(self._document, items, attachments, max_attached_bytes, self._num_bytes)
        self._save(attachments)

    def require_room_for_items(self, items: Sequence[Item], attachments: Mapping[str, bytes]) -> None:
        _require_bytes(self._num_bytes, [{"item": item} for item in items])
        _with_attached(self._document, attachments, self._store.max_attached_bytes)

    def replace_response(self, response_id: str, items: Sequence[Item], attachments: Mapping[str, bytes]) -> None:
        """Puts items in the place of the response that they are of."""
        entries: list[dict[str, Any]] = []
        for entry in self._document["entries"]:
            if entry.get("response") == response_id:
                entries += [{"item": item} for item in items if item["id"] not in entry["without"]]
            else:
                entries.append(entry)
        sizes = {name: len(data) for name, data in attachments.items()}
        self._document |= {"entries": entries, "attached": self._document.get("attached", {}) | sizes}
        self._save(attachments)

    def change_metadata(self, metadata: Mapping[str, str]) -> None:
        self._document["metadata"] = dict(metadata)
        self._save({})

    def remove(self, item_id: str) -> None:
        entries = [entry for entry in self._document["entries"] if entry.get("item", {}).get("id") != item_id]
        for entry in entries:
            if "response" in entry and response_of(item_id) == entry["response"]:
                entry["without"].append(item_id)
        self._document["entries"] = entries
        self._save({})

    def _save(self, attachments: Mapping[str, bytes]) -> None:
        self.require_unchanged()
        named = media_names([entry["item"] for entry in self._document["entries"] if "item" in entry])
        sizes = self._document.get("attached", {})
        self._document["attached"] = {name: sizes[name] for name in sizes if name in named}
        document = encode_document(self._document)
        self._num_bytes = len(document)
        self._session.save_document(document, attachments, named)


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
            conversation.replace_response(session.id, items, attached)
        except SessionConflict:
            continue  # another request changed it while it was read
        except NotFound:
            pass  # it was deleted
        return


async def join_conversation(store: ResponseStore, response_id: str, last_event: bytes) -> None:
    """Before a response of `store: false` ends: its conversation has its items when clients see the end."""
    session = store.any_response(response_id)
    assert session
    try:
        output = json.loads(last_event)["response"]["output"]
        await move_items_to_conversation(store, session, output, is_bounded=False)
        await store.flush()
    except ServiceError as error:
        log_exception("the items of a response could not be added to its conversation", error, current_request_id())


def _entry_of(response_id: str) -> dict[str, Any]:
    return {"response": response_id, "without": []}
