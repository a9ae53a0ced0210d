"""Helpers that load or decode with a loader of their own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tis.media.errors import BadMedia
from tis.media.loader import MediaLimits, MediaLoader, MediaSource
from tis.media.media_types import LoadedMedium, MediaKind

TEST_DOUBLES = {"resolve", "dial", "certificates", "decoder_command"}


@asynccontextmanager
async def media_loader(**options: Any) -> AsyncIterator[MediaLoader]:
    doubles = {name: options.pop(name) for name in TEST_DOUBLES & set(options)}
    loader = MediaLoader(MediaLimits(**options), **doubles)
    try:
        yield loader
    finally:
        await loader.close()


async def load(value: str, kind: MediaKind = "image", encoding: Any = "url", **options: Any) -> Any:
    async with media_loader(**options) as loader:
        [loaded] = await loader.load([MediaSource(kind, value, "messages.0.content.1", encoding)])
        return loaded


async def decode(data: bytes, kind: MediaKind = "image", **options: Any) -> Any:
    async with media_loader(**options) as loader:
        return await loader.decode(kind, data)


async def load_all(values: Sequence[str], **options: Any) -> list[LoadedMedium]:
    async with media_loader(**options) as loader:
        return await loader.load([MediaSource("image", value, f"input.{n}") for n, value in enumerate(values)])


async def load_error(value: str, kind: MediaKind = "image", encoding: Any = "url", **options: Any) -> BadMedia:
    with pytest.raises(BadMedia) as raised:
        await load(value, kind, encoding, **options)
    assert raised.value.status == 400
    assert raised.value.param == "messages.0.content.1"
    return raised.value


async def decode_error(data: bytes, kind: MediaKind = "image", **options: Any) -> BadMedia:
    with pytest.raises(BadMedia) as raised:
        await decode(data, kind, **options)
    return raised.value
