"""Items of responses and conversations: their ids, and their pictures, videos and sounds.

Ids are made from the id of the response or conversation, so that a resumed answer has the same ids. The session stores
their bytes as attachments, the items store their digests.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tis.engine.prompt import MediumKind

Item = dict[str, Any]
# The parts of content that are pictures, videos or sounds, by the names that clients use.
MEDIA_KINDS: Mapping[str, MediumKind] = {
    "image_url": "image", "input_image": "image", "image": "image",
    "video_url": "video", "input_video": "video", "video": "video",
    "audio_url": "audio", "input_audio": "audio", "audio": "audio",
}  # fmt: skip
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "local_shell_call": "lsh",
    "local_shell_call_output": "lsho",
    "shell_call": "sh",
    "shell_call_output": "sho",
    "apply_patch_call": "apc",
    "apply_patch_call_output": "apco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "compaction": "cmp",
    "mcp_list_tools": "mcpl",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
}
_ITEM = re.compile(r"^[a-z]+_([0-9a-f]{32})_(?:in_)?\d+(?:_[0-9a-f]{16})?$")
_DATA_URI = re.compile(r"^data:([\w.+/-]+)[;,]")


def new_response_id() -> str:
    return f"resp_{secrets.token_hex(16)}"


def is_response_id(session_id: str) -> bool:
    """As this server makes them; a stream may have such a name, too."""
    return session_id.startswith("resp_")


def new_conversation_id() -> str:
    return f"conv_{secrets.token_hex(16)}"


def output_id(response_id: str, kind: str, number: int) -> str:
    return f"{_PREFIXES[kind]}_{_hex(response_id)}_{number}"


def tool_list_id(response_id: str, number: int, server_url: str) -> str:
    """A list of tools belongs to its URL, which no item shows: the end of the id tells whether they match."""
    return f"{output_id(response_id, 'mcp_list_tools', number)}_{_url_digest(_hex(response_id), server_url)}"


def lists_tools_of(item_id: str, server_url: str) -> bool:
    found = _ITEM.match(item_id)
    return found is not None and item_id.endswith(f"_{_url_digest(found[1], server_url)}")


def input_id(owner_id: str, kind: str, number: int) -> str:
    return f"{_PREFIXES.get(kind, 'item')}_{_hex(owner_id)}_in_{number}"


def response_of(item_id: str) -> str | None:
    """The id of the response that an item belongs to, if the server made the item's id."""
    found = _ITEM.match(item_id)
    return f"resp_{found[1]}" if found else None


def _url_digest(salt: str, server_url: str) -> str:
    return hashlib.sha256(f"{salt} {server_url}".encode()).hexdigest()[:16]


def _hex(owner_id: str) -> str:
    return owner_id.partition("_")[2]


def placed_media(item: Item) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pictures and videos of an item, each with its place in the item."""
    for name in ("content", "output"):
        parts = item.get(name)
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            if part.get("type") in MEDIA_KINDS:
                yield f"{name}.{number}", part


def media_parts(items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    for item in items:
        yield from (part for _, part in placed_media(item))


def with_media_names(items: Sequence[Item], names: Iterable[str]) -> list[Item]:
    """The items, with the digests of pictures and videos in the place of their data."""
    digests = iter(names)
    return [_changed(item, lambda part: _named(part, digests)) for item in items]


def media_names(items: Sequence[Item]) -> frozenset[str]:
    return frozenset(part["attached"] for part in media_parts(items))


def to_client_items(items: Sequence[Item], data: Mapping[str, bytes] | None = None) -> list[Item]:
    """The items as clients get them. Pictures that were sent as data are included only if `data` has them."""
    return [_changed(item, lambda part: _listed(part, data)) for item in items]


def _changed(item: Item, change: Callable[[Item], Item]) -> Item:
    for name in ("content", "output"):
        if isinstance(item.get(name), list):
            parts = [change(part) if part.get("type") in MEDIA_KINDS else part for part in item[name]]
            item = {**item, name: parts}
    return item


def _named(part: Item, digests: Iterator[str]) -> Item:
    if "attached" in part:
        next(digests)
        return part
    given = _given(part)[0] or ""
    data = _DATA_URI.match(given[:200])
    more = {"detail": part["detail"]} if part.get("detail") else {}
    if form := _sound_of(part).get("format"):
        more["format"] = form
    return {
        "type": part["type"],
        **more,
        "attached": next(digests),
        "media_type": data[1] if data else "application/octet-stream",
        "source": given if given.startswith(("http://", "https://")) else None,
    }


def _listed(part: Item, data: Mapping[str, bytes] | None) -> Item:
    kind = MEDIA_KINDS[part["type"]]
    url: str | None = part.get("source")
    is_base64 = False
    if url is None and "attached" not in part:
        url, is_base64 = _given(part)
    if url and is_base64 and not url.startswith("data:"):
        url = f"data:application/octet-stream;base64,{url}"
    if url is None and data and part.get("attached") in data:
        url = f"data:{part['media_type']};base64,{base64.b64encode(data[part['attached']]).decode()}"
    if kind == "audio":
        return _listed_sound(part, url)
    return {"type": f"input_{kind}", "detail": part.get("detail", "auto"), "file_id": None, f"{kind}_url": url}


def _listed_sound(part: Item, url: str | None) -> Item:
    """OpenAI's items have no URL of a sound, and no path."""
    if url and not url.startswith("data:"):
        return {"type": "input_audio", "audio_url": url}
    form = part.get("format") or _sound_of(part).get("format") or "wav"
    return {"type": "input_audio", "input_audio": {"data": (url or "").rpartition(",")[2], "format": form}}


def _sound_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return part.get("input_audio") or {}


def _given(part: Mapping[str, Any]) -> tuple[str | None, bool]:
    """What a client has sent in one of many spellings, and whether it can only be base64: as chats read it."""
    kind = MEDIA_KINDS[part["type"]]
    for value in (part.get(f"{kind}_url"), part.get(kind), part.get("url")):
        if url := value.get("url") if isinstance(value, dict) else value:
            return str(url), False
    refs = (part.get(f"{one}{end}") for one in ("image", "video", "audio") for end in ("_url", ""))
    for holder in (part, _sound_of(part), *(ref for ref in refs if isinstance(ref, dict))):
        if data := holder.get("b64_json") or holder.get("data"):
            return str(data), True
    return None, False
