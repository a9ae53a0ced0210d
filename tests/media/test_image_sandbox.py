"""Images whose headers do not show how long they take."""

import io
import struct

import pytest
from PIL import Image

from tests.media.images import FORMATS, encoded, make_image
from tests.media.loading import decode, decode_error
from tis.media.loader import needs_sandbox

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]


def jpeg_with_scans(num_scans: int, size: tuple[int, int] = (64, 64)) -> bytes:
    whole = encoded(Image.new("RGB", size, "teal"), "JPEG", progressive=True)
    scan = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:-2] + scan * num_scans + b"\xff\xd9"


def tiff_of_strips(count: int) -> bytes:
    fields = [(256, 4, 1, 100), (257, 4, 1, 100), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    fields += [(273, 4, count, 200), (277, 3, 1, 1), (278, 4, 1, 1), (279, 4, 1, 100)]
    head = b"II*\0" + struct.pack("<IH", 8, len(fields)) + b"".join(struct.pack("<HHII", *field) for field in fields)
    return head.ljust(200, b"\0") + struct.pack("<I", 100) * count


def test_usual_images_need_no_sandbox() -> None:
    usual = [make_image(form, (300, 200)) for form in FORMATS if form not in ("TIFF", "BMP")]
    assert not any(needs_sandbox(data) for data in [*usual, jpeg_with_scans(0), b"", b"no image"])


def test_images_that_may_take_long_need_a_sandbox() -> None:
    unusual = [
        make_image("TIFF"),
        make_image("BMP"),
        tiff_of_strips(1),
        jpeg_with_scans(100),
        b"MM\0+",
        b"\0\0\0\x18ftypheic",
        bytes(3_000_000),
    ]
    assert all(needs_sandbox(data) for data in unusual)


async def test_a_jpeg_with_many_scans_is_decoded_or_killed() -> None:
    assert (await decode(jpeg_with_scans(100))).pixels.shape == (64, 64, 3)
    error = await decode_error(jpeg_with_scans(20_000, (1000, 1000)), decode_seconds=1)
    assert error.code == "image_too_large"


async def test_a_tiff_with_millions_of_strips_is_killed() -> None:
    error = await decode_error(tiff_of_strips(2_000_000), decode_seconds=1)
    assert error.code in ("image_too_large", "invalid_image")


async def test_millions_of_empty_blocks_are_killed() -> None:
    jpeg, gif = make_image("JPEG"), make_image("GIF")
    first = gif.index(b"\x2c", 13 + 768)
    for bomb in (
        jpeg[:2] + b"\xff\xfe\0\2" * 4_000_000 + jpeg[2:],
        gif[:first] + b"\x21\xfe\x01a\0" * 4_000_000 + gif[first:],
    ):
        assert (await decode_error(bomb, decode_seconds=0.6)).code == "image_too_large"


async def test_a_large_photo_is_decoded_in_the_sandbox() -> None:
    data = make_image("PNG", (1200, 900))
    assert needs_sandbox(data) and (await decode(data)).pixels.shape == (900, 1200, 3)


async def test_the_sandbox_decodes_an_image_to_the_same_pixels() -> None:
    data = make_image("TIFF")
    image = await decode(data)
    expected = Image.open(io.BytesIO(data)).convert("RGB")
    assert image.data == data and image.pixels.tobytes() == expected.tobytes() and image.pixels.flags.writeable
    assert (await decode_error(data, max_image_pixels=1199)).code == "image_too_large"
    assert (await decode_error(data, max_decoded_bytes=3599)).code == "image_too_large"
    assert (await decode_error(b"II*\0nothing")).code in ("invalid_image", "invalid_image_format")


def bmp_of_one_run(width: int) -> bytes:
    """Its one line ends after one pixel: Pillow fills up the others in Python."""
    line = bytes([1, 1, 0, 0, 0, 1])
    info = struct.pack("<IiiHHIIiiII", 40, width, 1, 1, 8, 1, len(line), 1, 1, 256, 0)
    return struct.pack("<2sIHHI", b"BM", 1078 + len(line), 0, 0, 1078) + info + bytes(1024) + line


async def test_a_bmp_of_a_kilobyte_that_takes_long_is_killed() -> None:
    assert (await decode(bmp_of_one_run(100))).pixels.shape == (1, 100, 3)
    error = await decode_error(bmp_of_one_run(25_000_000), decode_seconds=1)
    assert error.code == "image_too_large"
