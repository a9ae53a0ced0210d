"""/v1/conversations: conversations and their items; and the pages of lists of items."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request

from tis.bounds import MaxItems
from tis.errors import BadRequest, NotFound
from tis.http.dependencies import MediaDep, OwnerDep, SessionsDep
from tis.http.scanned_route import ScannedBodyRoute, in_thread_if, is_large_body
from tis.media.loader import MediaLoader, MediaSource
from tis.openai_api.routes.models import OptionsDep
from tis.openai_api.store.conversations import StoredConversation, new_conversation
from tis.openai_api.store.items import (
    Item,
    media_names,
    new_conversation_id,
    placed_media,
    to_client_items,
    with_media_names,
)
from tis.openai_api.store.responses import CONVERSATION, ResponseStore, StoredItem
from tis.openai_api.wire import examples
from tis.openai_api.wire.chat_prompt import medium_placeholder
from tis.openai_api.wire.chat_request import ContentPart
from tis.openai_api.wire.fields import MAX_INCLUDES
from tis.openai_api.wire.input_items import checked_items
from tis.openai_api.wire.response_request import (
    IMAGE_URLS,
    ConversationUpdate,
    Include,
    NewConversation,
    NewItems,
    require_encodable,
)
from tis.streaming.retention import Retention

router = APIRouter(route_class=ScannedBodyRoute)

ConversationId = Annotated[str, Path(max_length=512, examples=["conv_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e"])]
ItemId = Annotated[str, Path(max_length=512, examples=["msg_3f0e9f6ed4d24cbb9f1c1f0a7a9c7f9e_in_0"])]


Limit = Annotated[int, Query(ge=1, le=100, description="items of a page")]
Order = Annotated[Literal["asc", "desc"], Query(description="oldest or newest first")]
After = Annotated[str | None, Query(max_length=512, description="only items after this one, in that order")]
Including = Annotated[
    list[Include] | None,
    Query(alias="include", description=f"`{IMAGE_URLS}`: return also pictures that the client sent as data"),
    MaxItems(MAX_INCLUDES),
]
# OpenAI's clients send lists as `include[]=`.
IncludingInBrackets = Annotated[
    list[Include] | None, Query(alias="include[]", include_in_schema=False), MaxItems(MAX_INCLUDES)
]


@dataclass(frozen=True, slots=True)
class ItemPage:
    """The page that a client asks for."""

    limit: Limit = 20
    order: Order = "desc"
    after: After = None
    include: Including = None
    include_in_brackets: IncludingInBrackets = None

    async def of(self, store: ResponseStore, found: Sequence[StoredItem]) -> dict[str, Any]:
        part, has_more = self._part(found)
        include = [*(self.include or ()), *(self.include_in_brackets or ())]
        data = await store.read_attachments(part) if IMAGE_URLS in include else None
        return to_list_object(to_client_items([item for item, _ in part], data), has_more)

    def _part(self, found: Sequence[StoredItem]) -> tuple[list[StoredItem], bool]:
        """The items of the page, and whether there are more."""
        ordered = list(found) if self.order == "asc" else list(reversed(found))
        if self.after:
            places = [place for place, (item, _) in enumerate(ordered) if item["id"] == self.after]
            if not places:
                raise BadRequest(f"There is no item {self.after[:80]!r} in this list.", param="after")
            ordered = ordered[places[-1] + 1 :]
        return ordered[: self.limit], len(ordered) > self.limit


ItemPageDep = Annotated[ItemPage, Depends()]


def to_list_object(items: Sequence[Item], has_more: bool = False) -> dict[str, Any]:
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return {"object": "list", "data": list(items), "first_id": first, "last_id": last, "has_more": has_more}


@router.post("/conversations", responses=examples.CONVERSATION_RESPONSES)
async def create_conversation(
    body: NewConversation,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    media: MediaDep,
    request: Request,
) -> dict[str, Any]:
    """Create a conversation, empty or with items."""
    conversation_id = new_conversation_id()
    items, attachments = await _checked_items(
        body.items or (), conversation_id, 0, media, is_large=is_large_body(request)
    )
    document = new_conversation(body.metadata or {}, items, attachments, sessions.max_attached_bytes)
    ttl_seconds = options.responses_ttl_seconds
    retention = Retention(CONVERSATION, ttl_seconds, document=document, attachment_names=media_names(items))
    await sessions.save_document(owner, conversation_id, retention, attachments)
    await sessions.flush()
    return (await StoredConversation.read(ResponseStore(sessions, owner), conversation_id)).to_object()


@router.get("/conversations/{conversation_id}", responses=examples.CONVERSATION_RESPONSES)
async def get_conversation(sessions: SessionsDep, owner: OwnerDep, conversation_id: ConversationId) -> dict[str, Any]:
    """Retrieve a conversation, without its items."""
    return (await StoredConversation.read(ResponseStore(sessions, owner), conversation_id)).to_object()


@router.post("/conversations/{conversation_id}", responses=examples.CONVERSATION_RESPONSES)
async def update_conversation(
    body: ConversationUpdate, sessions: SessionsDep, owner: OwnerDep, conversation_id: ConversationId
) -> dict[str, Any]:
    """Replace the metadata of a conversation."""
    conversation = await StoredConversation.read(ResponseStore(sessions, owner), conversation_id)
    await conversation.change_metadata(body.metadata or {})
    await sessions.flush()
    return conversation.to_object()


@router.delete("/conversations/{conversation_id}", responses=examples.CONVERSATION_DELETED_RESPONSES)
async def delete_conversation(
    sessions: SessionsDep, owner: OwnerDep, conversation_id: ConversationId
) -> dict[str, Any]:
    """Delete a conversation. Its responses stay; delete them by their own ids."""
    await sessions.delete(await ResponseStore(sessions, owner).conversation(conversation_id))
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}


@router.get("/conversations/{conversation_id}/items", responses=examples.ITEMS_RESPONSES)
async def list_items(
    sessions: SessionsDep, owner: OwnerDep, conversation_id: ConversationId, page: ItemPageDep
) -> dict[str, Any]:
    """List its items: added items, and the input and output of its responses."""
    store = ResponseStore(sessions, owner)
    return await page.of(store, await store.conversation_items(await store.conversation(conversation_id)))


@router.post("/conversations/{conversation_id}/items", responses=examples.ITEMS_RESPONSES)
async def create_items(
    body: NewItems,
    sessions: SessionsDep,
    owner: OwnerDep,
    media: MediaDep,
    request: Request,
    conversation_id: ConversationId,
) -> dict[str, Any]:
    """Append items to a conversation."""
    store = ResponseStore(sessions, owner)
    conversation = await StoredConversation.read(store, conversation_id)
    await conversation.require_no_running_response()
    number = conversation.next_item_number()
    items, attachments = await _checked_items(
        body.items, conversation_id, number, media, is_large=is_large_body(request)
    )
    await conversation.add_items(items, attachments)
    await sessions.flush()
    return to_list_object(to_client_items(items))


@router.get("/conversations/{conversation_id}/items/{item_id}", responses=examples.ITEM_RESPONSES)
async def get_item(
    sessions: SessionsDep, owner: OwnerDep, conversation_id: ConversationId, item_id: ItemId
) -> dict[str, Any]:
    """Retrieve an item of a conversation."""
    store = ResponseStore(sessions, owner)
    item, _ = _one_of(await store.conversation_items(await store.conversation(conversation_id)), item_id)
    return to_client_items([item])[0]


@router.delete("/conversations/{conversation_id}/items/{item_id}", responses=examples.CONVERSATION_RESPONSES)
async def delete_item(
    sessions: SessionsDep, owner: OwnerDep, conversation_id: ConversationId, item_id: ItemId
) -> dict[str, Any]:
    """Delete an item from a conversation. An item of a response stays with that response."""
    conversation = await StoredConversation.read(ResponseStore(sessions, owner), conversation_id)
    _one_of(await conversation.items(), item_id)
    await conversation.remove(item_id)
    await sessions.flush()
    return conversation.to_object()


async def _checked_items(
    given: Sequence[Item], conversation_id: str, first_number: int, media: MediaLoader, *, is_large: bool
) -> tuple[list[Item], dict[str, bytes]]:
    check = partial(_items_and_media, given, conversation_id, first_number)
    items, sources = await in_thread_if(is_large, check)
    if not sources:
        return items, {}
    loaded = await media.load(sources)
    return with_media_names(items, [one.digest for one in loaded]), {one.digest: one.data for one in loaded}


def _items_and_media(
    given: Sequence[Item], conversation_id: str, first_number: int
) -> tuple[list[Item], list[MediaSource]]:
    require_encodable(given)
    items = checked_items(given, conversation_id, "items", first_number)
    for position, item in enumerate(items):
        if item["type"] == "item_reference":
            raise BadRequest(
                f"items.{position}: a conversation cannot store an item_reference.", param=f"items.{position}.type"
            )
    sources = [
        medium_placeholder(ContentPart.model_validate(part), f"items.{position}.{where}").source
        for position, item in enumerate(items)
        for where, part in placed_media(item)
    ]
    return items, sources


def _one_of(found: Sequence[StoredItem], item_id: str) -> StoredItem:
    for one in found:
        if one[0]["id"] == item_id:
            return one
    raise NotFound(f"Item with id '{item_id[:80]}' not found.", param="item_id")
