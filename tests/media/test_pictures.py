"""What becomes of pictures of all forms, and of files that only look like one."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageDraw

from tests.media.loading import decode, undecoded
from tests.media.pictures import FORMATS, a_picture, encoded, png_that_claims

pytestmark = pytest.mark.anyio
WHITE, RED = (255, 255, 255), (255, 0, 0)


def red_corner(mode: str = "RGB") -> Image.Image:
    """40 x 20, with red at the top left: it shows which way is up."""
    image = Image.new("RGB", (40, 20), "blue")
    ImageDraw.Draw(image).rectangle((0, 0, 15, 7), "red")
    return image.convert(mode)


@pytest.mark.parametrize("form", FORMATS)
async def test_every_format_becomes_rgb_of_its_size(form: str) -> None:
    picture = await decode(encoded(red_corner(), form))
    assert (picture.pixels.shape, picture.pixels.dtype) == ((20, 40, 3), np.uint8)
    assert np.abs(picture.pixels[2, 2].astype(int) - RED).max() < 40
    assert picture.pixels.flags.writeable


async def test_bytes_are_kept_as_they_came_and_name_the_picture() -> None:
    data, other = a_picture("JPEG"), a_picture("PNG")
    picture = await decode(data)
    assert picture.data == data
    assert picture.digest == (await decode(data)).digest != (await decode(other)).digest


async def test_of_an_animation_the_first_frame_is_taken() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green", "blue")]
    for form in ("GIF", "WEBP", "TIFF", "PNG"):
        data = encoded(frames[0], form, save_all=True, append_images=frames[1:])
        assert np.abs((await decode(data)).pixels[4, 4].astype(int) - RED).max() < 10


@pytest.mark.parametrize(
    ("orientation", "undone"),
    [
        (1, None),
        (2, Image.Transpose.FLIP_LEFT_RIGHT),
        (3, Image.Transpose.ROTATE_180),
        (4, Image.Transpose.FLIP_TOP_BOTTOM),
        (5, Image.Transpose.TRANSPOSE),
        (6, Image.Transpose.ROTATE_90),
        (7, Image.Transpose.TRANSVERSE),
        (8, Image.Transpose.ROTATE_270),
    ],
)
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
async def test_exif_orientation_is_applied_once(form: str, orientation: int, undone: Any) -> None:
    lying = red_corner() if undone is None else red_corner().transpose(undone)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    options = {"lossless": True} if form == "WEBP" else {}
    upright = (await decode(encoded(lying, form, exif=exif, **options))).pixels
    assert np.abs(upright.astype(int) - np.asarray(red_corner())).mean() < 6


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
async def test_a_damaged_exif_block_does_not_cost_the_picture() -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    whole = encoded(red_corner(), "JPEG", exif=exif)
    for broken in (
        whole.replace(b"MM\x00*", b"XX\x00*"),
        whole.replace(b"MM\x00*\x00\x00\x00\x08", b"MM\x00*\xff\xff\xff\xff"),
    ):
        assert broken != whole
        assert (await decode(broken)).pixels.shape == (20, 40, 3)


def half_clear(mode: str) -> Image.Image:
    """Left: see-through. Right: red (or black where there is no colour)."""
    image = Image.new("RGBA", (20, 10), (255, 0, 0, 255))
    image.paste((0, 0, 255, 0), (0, 0, 10, 10))
    if mode == "P":
        palette = Image.new("P", (20, 10), 1)
        palette.putpalette([0, 0, 255, 255, 0, 0])
        palette.paste(0, (0, 0, 10, 10))
        palette.info["transparency"] = 0
        return palette
    return image.convert(mode)


@pytest.mark.parametrize(
    ("mode", "form"), [("RGBA", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("P", "GIF"), ("RGBA", "WEBP")]
)
async def test_what_is_see_through_lies_on_white(mode: str, form: str) -> None:
    options = {"lossless": True} if form == "WEBP" else {"transparency": 0} if mode == "P" else {}
    pixels = (await decode(encoded(half_clear(mode), form, **options))).pixels
    assert tuple(pixels[5, 2]) == WHITE
    assert tuple(pixels[5, 17]) == (RED if mode != "LA" else (76, 76, 76))


async def test_half_of_the_alpha_is_half_of_the_way_to_white() -> None:
    pixels = (await decode(encoded(Image.new("RGBA", (4, 4), (255, 0, 0, 128))))).pixels
    assert np.abs(pixels[0, 0].astype(int) - (255, 127, 127)).max() <= 1


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
async def test_sixteen_bits_keep_their_shades(form: str) -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(1, 256).repeat(4, 0)
    pixels = (await decode(encoded(Image.fromarray(ramp), form))).pixels
    assert np.abs(pixels[0, :, 0].astype(int) - np.arange(256)).max() <= 1


@pytest.mark.parametrize("brightest", [1.0, 255.0, 65535.0])
async def test_floats_keep_their_shades(brightest: float) -> None:
    ramp = np.linspace(0, brightest, 256, dtype=np.float32).reshape(1, 256)
    pixels = (await decode(encoded(Image.fromarray(ramp), "TIFF"))).pixels
    assert np.abs(pixels[0, :, 0].astype(int) - np.arange(256)).max() <= 1


@pytest.mark.parametrize("form", ["JPEG", "TIFF"])
async def test_cmyk_has_its_colours(form: str) -> None:
    pixels = (await decode(encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), form))).pixels
    assert np.abs(pixels[4, 4].astype(int) - RED).max() < 12


@pytest.mark.parametrize("mode", ["1", "L"])
async def test_black_and_white_has_three_channels(mode: str) -> None:
    assert (await decode(encoded(Image.new(mode, (5, 4), 1)))).pixels.shape == (4, 5, 3)


@pytest.mark.parametrize("form", FORMATS)
async def test_half_a_file_is_refused(form: str) -> None:
    data = a_picture(form)
    error = await undecoded(data[: len(data) // 2])
    assert error.code in ("invalid_image", "invalid_image_format")


@pytest.mark.parametrize(
    "data", [b"", b"no picture", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"<svg/>", b"%PDF-1.7"]
)
async def test_what_is_no_picture_is_refused(data: bytes) -> None:
    error = await undecoded(data)
    assert error.code in ("invalid_image", "invalid_image_format")


async def test_formats_that_are_not_taken_are_not_even_tried() -> None:
    for form in ("PPM", "ICO", "PCX", "TGA"):
        assert (await undecoded(a_picture(form))).code == "invalid_image_format"
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n"
    assert (await undecoded(eps)).code == "invalid_image_format"


@pytest.mark.parametrize("size", [(5001, 5000), (100_000, 100_000), (2**31 - 1, 2**31 - 1), (1, 30_000_000)])
async def test_a_size_is_refused_by_its_header(size: tuple[int, int]) -> None:
    assert (await undecoded(png_that_claims(*size))).code in ("image_too_large", "invalid_image")


async def test_a_bomb_is_refused_by_its_header() -> None:
    bomb = encoded(Image.new("1", (6000, 6000)), optimize=True)
    assert len(bomb) < 10_000
    assert (await undecoded(bomb)).code == "image_too_large"


async def test_the_limit_itself_is_taken() -> None:
    assert (await decode(a_picture(), max_image_pixels=1200)).pixels.shape == (30, 40, 3)
    assert (await undecoded(a_picture(), max_image_pixels=1199)).code == "image_too_large"


async def test_no_word_of_the_decoder_comes_out() -> None:
    data = a_picture("JPEG")
    for broken in (data[:200], b"garbage", io.BytesIO(data).read(30) + b"\xff" * 200):
        message = (await undecoded(broken)).message
        assert "0x" not in message and "BytesIO" not in message and "truncated" not in message
