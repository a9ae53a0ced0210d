"""The document of a conversation: items of its own, and responses whose items belong to it.

What a response said is kept with the response. So it need not be added when it ends, which a crash could forget, and
it goes when the response is deleted.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from server.openai_api.responses import ids
from server.openai_api.responses.attached import names_in
from server.openai_api.responses.records import (
    Found,
    Records,
    conversation_locked,
    history_too_long,
    written,
)
from server.openai_api.responses.schema import LONGEST_HISTORY, Item
from server.streaming.session import Session


def new_document(metadata: Mapping[str, str]) -> dict[str, Any]:
    return {"created_at": int(time.time()), "metadata": dict(metadata), "next": 0, "entries": []}


class Conversation:
    """As it was when it was read. Whoever changes it finds out whether it still is."""

    def __init__(self, records: Records, session: Session, version: int, document: dict[str, Any]) -> None:
        self._records = records
        self._session = session
        self._version = version
        self._document = document

    @classmethod
    async def read(cls, records: Records, conversation_id: str, param: str = "conversation_id") -> "Conversation":
        session = records.conversation(conversation_id, param)
        version = session.document_version
        document = await records.document(session)
        return cls(records, session, version, document)

    def shown(self) -> dict[str, Any]:
        told = {name: self._document[name] for name in ("created_at", "metadata")}
        return {"id": self._session.id, "object": "conversation", **told}

    async def items(self) -> list[Found]:
        return await self._records.items(self._session)

    def numbered_from(self) -> int:
        return int(self._document["next"])

    async def require_free(self) -> None:
        """While it is answered, nothing is added to it."""
        await self._records.require_free(self._session)

    def require_unchanged(self) -> None:
        if self._session.document_version != self._version:
            raise conversation_locked()

    def add_response(self, response_id: str) -> None:
        self._document["entries"].append({"response": response_id, "without": []})
        self._keep({})

    def add_items(self, items: Sequence[Item], attachments: Mapping[str, bytes]) -> None:
        self.require_room(len(items))
        self._document["entries"] += [{"item": item} for item in items]
        self._document["next"] += len(items)
        self._keep(attachments)

    def change_metadata(self, metadata: Mapping[str, str]) -> None:
        self._document["metadata"] = dict(metadata)
        self._keep({})

    def remove(self, item_id: str) -> None:
        entries = [entry for entry in self._document["entries"] if entry.get("item", {}).get("id") != item_id]
        for entry in entries:
            if "response" in entry and ids.response_of(item_id) == entry["response"]:
                entry["without"].append(item_id)
        self._document["entries"] = entries
        self._keep({})

    def require_room(self, num_entries: int) -> None:
        if len(self._document["entries"]) + num_entries > LONGEST_HISTORY:
            raise history_too_long("conversation")

    def _keep(self, attachments: Mapping[str, bytes]) -> None:
        self.require_unchanged()
        own = [entry["item"] for entry in self._document["entries"] if "item" in entry]
        self._session.keep_document(written(self._document), attachments, names_in(own))
