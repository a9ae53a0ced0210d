"""The items of a request for a response: checked, found where they only name others, and stored with the answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from tis.errors import BadRequest
from tis.mcp_client.requested_server import RequestedServer
from tis.openai_api.store.conversations import StoredConversation
from tis.openai_api.store.items import Item, media_names, media_parts, with_media_names
from tis.openai_api.store.responses import ResponseStore, StoredItem, encode_document
from tis.openai_api.wire.compacted_context import COMPACTION_TRIGGER, places_in_context, replaces_earlier
from tis.openai_api.wire.input_items import PlacedItem, approved_requests, checked_items, listed_before
from tis.openai_api.wire.response_request import ResponseRequest
from tis.openai_api.wire.tools import forced_mcp_call

_MAX_REFERENCES = 256  # each may be of another response, which has to be read


class RequestItems:
    def __init__(self, body: ResponseRequest, response_id: str) -> None:
        given = [] if body.input is None else body.input
        last = given[-1] if isinstance(given, list) and given else {}
        self.only_compacts = last.get("type") == COMPACTION_TRIGGER  # no answer is wanted
        if self.only_compacts:
            given = given[:-1]
        self.media_names: frozenset[str] = frozenset()
        self.document = b""  # what is stored of them
        self._body = body
        self._response_id = response_id
        self._items = checked_items(given, response_id, "input")
        _require_few_references(self._items)

    async def with_references(self, store: ResponseStore) -> tuple[list[PlacedItem], list[StoredItem]]:
        """All of them, and those among them that an `item_reference` names."""
        items: list[PlacedItem] = []
        references: list[StoredItem] = []
        for position, item in enumerate(self._items):
            where = f"input.{position}" if isinstance(self._body.input, list) else "input"
            if item["type"] == "item_reference":
                references.append(await store.resolve_reference(item, where))
                item = references[-1][0]
            items.append((where, item))
        return items, references

    def in_context(
        self, earlier: Sequence[StoredItem], own: Sequence[PlacedItem]
    ) -> tuple[Sequence[StoredItem], Sequence[PlacedItem]]:
        """Without those whose place a compaction takes."""
        places = places_in_context([*(item for item, _ in earlier), *(item for _, item in own)])
        num_earlier = len(earlier)
        of_own = [at - num_earlier for at in places if at >= num_earlier]
        self._items = [self._items[at] for at in of_own]
        return [earlier[at] for at in places if at < num_earlier], [own[at] for at in of_own]

    def name_media(self, items: Sequence[Item], digests: Sequence[str]) -> None:
        """The pictures and videos of the request itself are the last of the prompt, in this order."""
        named = with_media_names(items, digests[len(digests) - len(list(media_parts(items))) :])
        self._items = [
            item if item["type"] == "item_reference" else own for item, own in zip(self._items, named, strict=True)
        ]
        self.media_names = media_names(self._items)
        body = self._body
        if body.is_stored or body.conversation_id:
            self.document = encode_document(
                {"items": self._items, "previous": body.previous_response_id, "conversation": body.conversation_id}
            )

    def require_room_in(self, conversation: StoredConversation, attachments: Mapping[str, bytes]) -> None:
        """Raises if the conversation has become too large, or if another request changed it."""
        if not self._body.is_stored:
            own = {name: data for name, data in attachments.items() if name in self.media_names}
            conversation.require_room_for_items(self._items, own)
        conversation.require_room_for(self._response_id)
        conversation.require_unchanged()


def _require_few_references(items: Sequence[Item]) -> None:
    if sum(item["type"] == "item_reference" for item in items) > _MAX_REFERENCES:
        raise BadRequest(
            f"input: at most {_MAX_REFERENCES} items may be an item_reference.",
            param="input",
            code="too_many_references",
        )


def mcp_parts(
    body: ResponseRequest, servers: Sequence[RequestedServer], own: Sequence[PlacedItem], items: Sequence[PlacedItem]
) -> dict[str, Any] | None:
    """What an `McpSpec` has beside the prompt; None if no server is called. `own`: the items of this request alone."""
    approved = approved_requests(own, items, {server.label for server in servers})
    if not servers or (body.tool_choice == "none" and not approved):
        return None
    lists = [(server, listed_before(items, server)) for server in servers]
    return {
        "servers": servers,
        "forced_call": forced_mcp_call(servers, body.tool_choice),
        "offers_tools": body.tool_choice != "none",
        "one_call": body.parallel_tool_calls is False,
        "max_calls": body.max_tool_calls,
        "listed": {one.label: tools for one, tools in lists if tools is not None and one.finds_all_in(tools)},
        "approved": approved,
    }


async def read_history(
    store: ResponseStore, body: ResponseRequest
) -> tuple[StoredConversation | None, Sequence[StoredItem]]:
    """The conversation of the request, and the items that come before its own."""
    if body.conversation_id:
        conversation = await StoredConversation.read(store, body.conversation_id, "conversation")
        return conversation, await conversation.items()
    if body.previous_response_id is not None:
        return None, await store.items_until(body.previous_response_id, replaces_earlier)
    return None, []
