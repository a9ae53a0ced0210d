"""Files with a few changed bytes decode or raise `BadMedia`; no other error escapes."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.media.images import FORMATS, make_image
from tests.media.loading import decode
from tests.media.videos import make_video
from tis.media.errors import BadMedia
from tis.media.images import decode_image
from tis.media.limits import MediaBudget, MediaLimits
from tis.media.media_types import LoadedVideo

pytestmark = pytest.mark.long

LIMITS = MediaLimits(max_image_pixels=1_000_000, decode_seconds=10)
IMAGES = {form: make_image(form) for form in FORMATS}
VIDEOS = [
    make_video("mp4", "mpeg4", frames=8),
    make_video("mp4", "libx264", frames=8),
    make_video("webm", "libvpx", frames=8),
]
_HEADER = 300


@st.composite
def corrupted(draw: Callable[[st.SearchStrategy[int]], int], whole: bytes) -> bytes:
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, min(_HEADER, len(data) - 1)))
        data[place] = draw(st.integers(0, 255))
    return bytes(data[: len(data) // 2] if draw(st.integers(0, 3)) == 0 else data)


# In a server, warnings are not errors.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMATS)
@given(st.data())
@settings(max_examples=60, derandomize=True)
def test_a_corrupted_image_decodes_or_raises_bad_media(form: str, data: st.DataObject) -> None:
    try:
        pixels = decode_image(data.draw(corrupted(IMAGES[form])), LIMITS, MediaBudget(LIMITS))
    except BadMedia as error:
        assert error.code in ("invalid_image", "invalid_image_format", "image_too_large")
    else:
        assert pixels.ndim == 3 and pixels.nbytes <= 3_000_000


@pytest.mark.slow
@given(st.sampled_from(VIDEOS).flatmap(corrupted))
@settings(max_examples=40, derandomize=True)
def test_a_corrupted_video_decodes_or_raises_bad_media(video: bytes) -> None:
    try:
        video = asyncio.run(decode(video, "video", decode_seconds=10))
    except BadMedia as error:
        assert error.code in ("invalid_video", "invalid_video_format", "video_too_large")
    else:
        assert isinstance(video, LoadedVideo) and len(video.times) == len(video.frames) <= 16
