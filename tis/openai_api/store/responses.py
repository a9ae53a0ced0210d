"""The stored responses and conversations of one owner, and the history that a new response continues.

A response follows `previous_response_id` back to the first response, or lists the items of its conversation.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tis.errors import BadRequest, Draining, NotFound
from tis.openai_api.store.items import Item, media_names, media_parts, response_of
from tis.streaming.errors import SessionConflict, SessionExpired, SessionNotFound
from tis.streaming.session import Session
from tis.streaming.sessions import Sessions
from tis.streaming.stores.store import Durability

# The kinds of sessions.
RESPONSE = "response"
CONVERSATION = "conversation"
MAX_HISTORY_ITEMS = 1000  # responses of a chain, or entries of a conversation
MAX_HISTORY_BYTES = 16 * 2**20  # of stored text that a new response may follow
# JSON of this size is parsed in a thread; smaller ones, of a long chain, let others have their turn in between.
_LARGE_BYTES = 256 * 1024
_EVENTS_WHILE_QUEUED = 2  # `response.created` and `response.queued`
Response = dict[str, Any]
StoredItem = tuple[Item, Session]  # an item, and the session that stores its attachments


class ResponseStore:
    """Made for one request: it parses each response once."""

    def __init__(self, sessions: Sessions, owner: str, *, max_read_bytes: int | None = None) -> None:
        self.num_bytes_read = 0
        self._sessions = sessions
        self.owner = owner
        self._max_read_bytes = max_read_bytes
        self._num_bytes_since_pause = 0
        self._documents: dict[str, dict[str, Any]] = {}
        self._outputs: dict[str, list[StoredItem]] = {}
        self._items_by_id: dict[str, dict[str, StoredItem]] = {}

    @property
    def durability(self) -> Durability:
        return self._sessions.durability

    @property
    def lasts(self) -> bool:
        """What is stored is in a database, and not only where streams are."""
        return self._sessions.archive is not None

    @property
    def max_attached_bytes(self) -> int:
        return self._sessions.max_attached_bytes

    async def response(self, response_id: str, param: str = "response_id") -> Session:
        if session := await self._find(response_id, RESPONSE):
            return session
        raise NotFound(f"Response with id '{response_id[:80]}' not found.", param=param)

    async def any_response(self, response_id: str) -> Session | None:
        """Also one of `store: false`, which does not exist for clients."""
        return await self._find(response_id, RESPONSE, also_unstored=True)

    def require_room(self) -> None:
        """Raises `StoreUnavailable` while a response that is begun now could not be stored at its end."""
        self._sessions.require_archive()

    @property
    def max_wait_seconds(self) -> float:
        """How long the end of a response waits for the database that it is to be stored in."""
        return self._sessions.archive.limits.store_seconds if self._sessions.archive else 0.0

    async def flush(self) -> None:
        await self._sessions.flush()

    async def conversation(self, conversation_id: str, param: str = "conversation_id") -> Session:
        if session := await self._find(conversation_id, CONVERSATION):
            return session
        raise NotFound(f"Conversation with id '{conversation_id[:80]}' not found.", param=param)

    async def current(self, session: Session) -> Response:
        """The response object in its current state."""
        turn = session.latest
        if turn.is_running:
            summary = turn.summary
            if not summary:  # its end waits until it is stored
                first = await session.recording.event(turn.first_index)
                return _response_in(await self._read(first.data), session.id) | {"status": "in_progress"}
            response = await self._read(summary)
            if session.is_followed and session.recording.next_index - turn.first_index > _EVENTS_WHILE_QUEUED:
                response["status"] = "in_progress"  # else as it was when the other server began it
            return response
        assert turn.last_index is not None
        if turn.last_index <= session.recording.last_visible:
            data = (await session.recording.event(turn.last_index)).data
            return _response_in(await self._read(data), session.id)
        with session.listening(turn, turn.last_index - 1) as reader:
            async for events in reader.batches():
                for event in events:
                    return _response_in(await self._read(event.data), session.id)
        raise Draining

    async def document(self, session: Session) -> dict[str, Any]:
        """Of a response."""
        if session.id not in self._documents:
            self._documents[session.id] = await self._read(await self.stored_document(session))
        return self._documents[session.id]

    async def stored_document(self, session: Session) -> bytes:
        found = await session.document()
        if found is None:
            raise NotFound(
                f"The input items of {session.id!r} are not stored, only its output is.", code="items_not_kept"
            )
        return found

    async def items_until(
        self, previous_id: str, is_beginning: Callable[[Item], bool] | None = None
    ) -> list[StoredItem]:
        """All items up to the end of a response, oldest first.

        `is_beginning`: whether an item takes the place of all before it. Responses before that are not read.
        """
        chain: list[list[StoredItem]] = []
        next_id: str | None = previous_id
        while next_id is not None:
            if len(chain) > MAX_HISTORY_ITEMS:
                raise history_too_long("previous_response_id")
            session = await self._find(next_id, RESPONSE)
            if session is None:
                raise previous_response_not_found(next_id)
            if session.is_running:
                raise BadRequest(
                    f"Response '{next_id}' is still running. Wait for its end, or cancel it.",
                    param="previous_response_id",
                    code="response_in_progress",
                )
            document = await self.document(session)
            chain.append([*await self.resolve_references(document["items"], session), *await self._output(session)])
            if is_beginning and any(is_beginning(item) for item, _ in chain[-1]):
                break
            next_id = document["previous"]
            if document["conversation"]:
                chain.append(await self._conversation_items_before(document["conversation"], session.id))
        return [found for items in reversed(chain) for found in items]

    async def all_input_items(self, session: Session) -> list[StoredItem]:
        """All input items of a response: earlier turns, then its own."""
        document = await self.document(session)
        earlier: Sequence[StoredItem] = ()
        if document["previous"]:
            earlier = await self.items_until(document["previous"])
        elif document["conversation"]:
            earlier = await self._conversation_items_before(document["conversation"], session.id)
        return [*earlier, *await self.resolve_references(document["items"], session)]

    async def conversation_items(self, conversation: Session, until: str | None = None) -> list[StoredItem]:
        """The items of a conversation, up to the response `until`."""
        lines = (await self.stored_document(conversation)).partition(b"\n")[2]
        entries = (await self._read(b'{"entries":[%s]}' % lines.replace(b"\n", b",")))["entries"]
        return await self.items_of_entries(entries, conversation, until)

    async def items_of_entries(
        self, entries: Sequence[dict[str, Any]], conversation: Session, until: str | None = None
    ) -> list[StoredItem]:
        items: list[StoredItem] = []
        for entry in entries:
            if "item" in entry:
                items.append((entry["item"], conversation))
            elif entry["response"] == until:
                break
            elif session := await self._find(entry["response"], RESPONSE):
                own = await self.resolve_references((await self.document(session))["items"], session)
                output = [] if session.is_running else await self._output(session)
                items += [found for found in (*own, *output) if found[0]["id"] not in entry["without"]]
        return items

    async def require_no_running_response(self, entries: Sequence[dict[str, Any]]) -> None:
        """Raises SessionConflict while a response of the conversation is running."""
        for entry in entries[-1:]:
            session = await self.any_response(entry["response"]) if "response" in entry else None
            if session and session.is_running:
                raise conversation_locked()

    async def resolve_references(self, items: Sequence[Item], session: Session) -> list[StoredItem]:
        """Replaces item references by their items. A reference to a deleted item is left out."""
        found: list[StoredItem] = []
        for item in items:
            if item["type"] != "item_reference":
                found.append((item, session))
                continue
            with suppress(NotFound):
                found.append(await self.resolve_reference(item, "input"))
        return found

    async def resolve_reference(self, item: Item, param: str) -> StoredItem:
        """The item that an `item_reference` names."""
        response_id = response_of(item["id"])
        if response_id and (session := await self._find(response_id, RESPONSE)):
            if found := (await self._own_items_by_id(session)).get(item["id"]):
                return found
        raise NotFound(f"Item with id '{item['id'][:80]}' not found.", param=param)

    async def read_attachments(
        self, found: Sequence[StoredItem], *, max_items: int | None = None, max_bytes: int | None = None
    ) -> dict[str, bytes]:
        """The bytes of all pictures and videos in the items, by their digest. Counts them before it reads any."""
        attached: dict[str, bytes] = {}
        named: dict[Session, set[str]] = {}
        num_items = 0
        for item, session in found:
            of_item = [part["attached"] for part in media_parts([item]) if "attached" in part]
            num_items += len(of_item)
            if of_item:
                named.setdefault(session, set()).update(of_item)
            if max_items is not None and num_items > max_items:
                raise _too_many_media(session, f"at most {max_items} images and videos (MAX_MEDIA_ITEMS)")
        for session, names in named.items():
            attached |= await session.attachments(names - attached.keys())
            if max_bytes is not None and sum(map(len, attached.values())) > max_bytes:
                raise _too_many_media(session, f"at most {max_bytes:,} bytes of images and videos")
            if missing := names - attached.keys():
                raise BadRequest(
                    f"{len(missing)} pictures or videos of '{session.id}' are not stored (MAX_SESSION_MEDIA_MB).",
                    param=_param_of(session),
                    code="media_not_kept",
                )
        return attached

    async def _conversation_items_before(self, conversation_id: str, response_id: str) -> list[StoredItem]:
        conversation = await self._find(conversation_id, CONVERSATION)
        return await self.conversation_items(conversation, until=response_id) if conversation else []

    async def _output(self, session: Session) -> list[StoredItem]:
        if session.id not in self._outputs:
            self._outputs[session.id] = [(item, session) for item in (await self.current(session))["output"]]
        return self._outputs[session.id]

    async def _own_items_by_id(self, session: Session) -> dict[str, StoredItem]:
        if session.id not in self._items_by_id:
            own = [(item, session) for item in (await self.document(session))["items"]]
            output = [] if session.is_running else await self._output(session)
            # Of two items with one id, the first counts.
            self._items_by_id[session.id] = {found[0]["id"]: found for found in reversed([*own, *output])}
        return self._items_by_id[session.id]

    async def _read(self, data: bytes) -> dict[str, Any]:
        self.num_bytes_read += len(data)
        if self._max_read_bytes is not None and self.num_bytes_read > self._max_read_bytes:
            raise BadRequest(
                f"A history has at most {self._max_read_bytes // 2**20} MiB of text. Start a new conversation.",
                param="previous_response_id",
                code="history_too_long",
            )
        if len(data) > _LARGE_BYTES:
            return await asyncio.to_thread(_parsed, data)
        self._num_bytes_since_pause += len(data)
        if self._num_bytes_since_pause > _LARGE_BYTES:
            self._num_bytes_since_pause = 0
            await asyncio.sleep(0)
        return _parsed(data)

    async def _find(self, session_id: str, kind: str, *, also_unstored: bool = False) -> Session | None:
        if session_id not in self._documents:  # a response that was read does not change
            await self._sessions.refresh(self.owner, session_id, kind, is_required=True)
        try:
            session = self._sessions.find(self.owner, session_id, kind)
        except (SessionNotFound, SessionExpired):
            return None
        return session if session.is_resumable or also_unstored else None


def previous_response_not_found(response_id: str) -> BadRequest:
    """OpenAI's own words and code: gateways recognise it and send the whole conversation again."""
    return BadRequest(
        f"Previous response with id '{response_id[:80]}' not found.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def history_too_long(param: str) -> BadRequest:
    return BadRequest(
        f"A history has at most {MAX_HISTORY_ITEMS} responses or items. Start a new conversation.",
        param=param,
        code="history_too_long",
    )


def conversation_locked() -> SessionConflict:
    return SessionConflict(
        "Another response of this conversation is running. Wait for its end, or cancel it.",
        param="conversation",
        code="conversation_locked",
    )


def _param_of(session: Session) -> str:
    return "previous_response_id" if session.kind == RESPONSE else "conversation"


def _too_many_media(session: Session, limit: str) -> BadRequest:
    return BadRequest(f"A history may have {limit}.", param=_param_of(session), code="too_many_media")


def entries_of(lines: bytes) -> list[dict[str, Any]]:
    """The entries of a conversation, of which each is a line."""
    found: list[dict[str, Any]] = json.loads(b"[%s]" % lines.replace(b"\n", b","))
    return found


def encode_document(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def attachment_names_of(document: bytes) -> frozenset[str]:
    """That the items of a response name."""
    return media_names(_parsed(document)["items"]) if document else frozenset()


def not_stored(last_event: bytes) -> bytes:
    """The last event of a response that should have been stored, and is not."""
    payload = _parsed(last_event)
    if "response" in payload:
        payload["response"]["store"] = False
    return encode_document(payload)


def _parsed(data: bytes) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(data)
    return read


def _response_in(payload: dict[str, Any], response_id: str) -> Response:
    if "response" in payload:
        response: Response = payload["response"]
        return response
    # The server could not read the stored response after a restart; its last event has only the error.
    error = {"code": "server_error", "message": payload["error"]["message"]}
    return {"id": response_id, "object": "response", "status": "failed", "output": [], "error": error}
