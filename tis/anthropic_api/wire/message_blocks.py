"""Blocks of content as parts of chat messages: texts, images, documents, search results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tis.anthropic_api.wire.messages_request import BlockSource, MessageBlock
from tis.errors import BadRequest

ChatPart = dict[str, Any]
BlockContent = str | Sequence[MessageBlock] | Mapping[str, Any] | None
_BETWEEN_TEXTS = "\n\n"
OF_USERS = ("text", "image", "document", "search_result", "tool_reference")


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part of a chat message, and where it stands in the request."""

    place: str
    part: ChatPart

    @property
    def text(self) -> str | None:
        return self.part["text"] if self.part["type"] == "text" else None


def parts_of(content: BlockContent, where: str) -> list[PlacedPart]:
    """Of a user, a tool or a document."""
    if content is None:
        return []
    if isinstance(content, str):
        return [_text(where, content)]
    if isinstance(content, Mapping):
        raise _no_list(where)
    return [part for number, block in enumerate(content) for part in parts_of_block(block, f"{where}.{number}")]


def text_of_blocks(content: BlockContent, where: str) -> str:
    """Of a system prompt, which is text only."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Mapping):
        raise _no_list(where)
    for number, block in enumerate(content):
        if block.type != "text":
            raise refused(f"{where}.{number}.type", f"blocks of type {block.type[:40]!r} are not supported here.")
    return _BETWEEN_TEXTS.join(
        filter(None, (required_text(block.text, f"{where}.{number}.text") for number, block in enumerate(content)))
    )


def chat_content(parts: Sequence[PlacedPart]) -> tuple[str | list[ChatPart], list[str]]:
    """The content of a chat message, and the place of each of its parts. Texts side by side are one."""
    joined: list[ChatPart] = []
    places: list[str] = []
    for is_text, run in groupby((one for one in parts if one.text != ""), lambda one: one.text is not None):
        some = list(run)
        if is_text:
            joined.append({"type": "text", "text": _BETWEEN_TEXTS.join(one.text or "" for one in some)})
            places.append(some[0].place)
        else:
            joined += [one.part for one in some]
            places += [one.place for one in some]
    if all(part["type"] == "text" for part in joined):
        return "".join(part["text"] for part in joined), places
    return joined, places


def required_text(given: str | None, place: str) -> str:
    if given is None:
        raise BadRequest(f"{place}: Field required", param=place, code="missing_required_parameter")
    return given


def refused(place: str, message: str) -> BadRequest:
    return BadRequest(f"{place}: {message}", param=place, code="unsupported_content")


def parts_of_block(block: MessageBlock, where: str) -> Iterator[PlacedPart]:
    match block.type:
        case "text":
            yield _text(where, required_text(block.text, f"{where}.text"))
        case "image":
            yield PlacedPart(where, _image(_source_of(block, where), f"{where}.source"))
        case "document":
            yield from _document(block, _source_of(block, where), where)
        case "search_result":
            yield _text(where, _search_result(block, where))
        case "tool_reference":
            yield _text(where, f"The tool {required_text(block.tool_name, f'{where}.tool_name')} can be called.")
        case other:
            known = ", ".join(OF_USERS)
            raise refused(f"{where}.type", f"blocks of type {other[:40]!r} are not supported here: use {known}.")


def _no_list(place: str) -> BadRequest:
    return BadRequest(f"{place}: a text or a list of blocks is required.", param=place)


def _text(place: str, text: str) -> PlacedPart:
    return PlacedPart(place, {"type": "text", "text": text})


def _source_of(block: MessageBlock, where: str) -> BlockSource:
    if not isinstance(block.source, BlockSource):
        place = f"{where}.source"
        raise BadRequest(f"{place}: an object is required.", param=place, code="missing_required_parameter")
    return block.source


def _image(source: BlockSource, where: str) -> ChatPart:
    if source.type == "base64":
        return {"type": "image", "b64_json": required_text(source.data, f"{where}.data")}
    if source.type == "url":
        return {"type": "image_url", "image_url": required_text(source.url, f"{where}.url")}
    raise refused(f"{where}.type", f"an image of type {source.type[:40]!r} is not supported: use base64 or url.")


def _document(block: MessageBlock, source: BlockSource, where: str) -> Iterator[PlacedPart]:
    """Between tags, so that the model sees where it ends. A document may have images."""
    if source.type == "text":
        inside = [_text(where, required_text(source.data, f"{where}.source.data"))]
    elif source.type == "content":
        inside = parts_of(source.content, f"{where}.source.content")
    else:
        kind = source.media_type or ("application/pdf" if source.type in ("base64", "url") else "a file")
        raise refused(
            f"{where}.source.type",
            f"documents of type {source.type[:40]!r} ({kind[:40]}) are not supported: send the text of the document.",
        )
    head = {"title": block.title, "context": block.context}
    named = "".join(f"<{name}>{value}</{name}>\n" for name, value in head.items() if value)
    if all(part.text is not None for part in inside):
        text = _BETWEEN_TEXTS.join(part.text or "" for part in inside)
        yield _text(where, f"<document>\n{named}{text}\n</document>")
        return
    yield _text(where, f"<document>\n{named}".rstrip("\n"))
    yield from inside
    yield _text(where, "</document>")


def _search_result(block: MessageBlock, where: str) -> str:
    source = block.source if isinstance(block.source, str) else None
    fields: Mapping[str, str | None] = {"title": block.title, "source": source}
    named = "".join(f"<{name}>{required_text(value, f'{where}.{name}')}</{name}>\n" for name, value in fields.items())
    return f"<search_result>\n{named}{text_of_blocks(block.content, f'{where}.content')}\n</search_result>"
