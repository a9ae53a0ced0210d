"""Decodes image files to upright RGB pixels with Pillow. Every fault is a `BadMedia` that does not quote Pillow."""

import contextlib
import functools
import io
import struct
from typing import TYPE_CHECKING

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from tis.media.errors import BadMedia, media_too_large, undecodable_media, unsupported_format
from tis.media.limits import MediaBudget, MediaLimits

if TYPE_CHECKING:
    from tis.media.media_types import Pixels

_FORMATS = ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"]
_TRANSPOSES = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode_image(data: bytes, limits: MediaLimits, budget: MediaBudget) -> "Pixels":
    try:
        with Image.open(io.BytesIO(data), formats=_supported_formats()) as image:
            width, height = image.size  # from the header: nothing is decoded yet
            if width * height > limits.max_image_pixels:
                raise media_too_large("image", f"the limit is {limits.max_image_pixels:,} pixels")
            budget.take_decoded_bytes("image", width * height * 3)
            image.load()
            return np.array(_to_rgb_on_white(_apply_orientation(image)))  # a writable copy
    except BadMedia:
        raise
    except UnidentifiedImageError:
        raise unsupported_format("image") from None
    except Image.DecompressionBombError:
        raise media_too_large("image", f"the limit is {limits.max_image_pixels:,} pixels") from None
    except Exception:  # boundary to Pillow: damaged files make it raise nearly any class
        raise undecodable_media("image") from None


def num_pixels(data: bytes) -> int:
    """From the header; 0 if Pillow cannot read it."""
    try:
        with Image.open(io.BytesIO(data), formats=_supported_formats()) as image:
            return image.size[0] * image.size[1]
    except Exception:  # boundary to Pillow; `decode_image` says what is wrong
        return 0


@functools.cache
def _supported_formats() -> list[str]:
    with contextlib.suppress(ImportError):
        import pillow_heif

        pillow_heif.register_heif_opener()
        return [*_FORMATS, "HEIF"]
    return _FORMATS


def _apply_orientation(image: Image.Image) -> Image.Image:
    # An image with a damaged Exif block keeps the orientation of its pixels, as in browsers.
    with contextlib.suppress(SyntaxError, ValueError, TypeError, KeyError, OSError, struct.error):
        transpose = _TRANSPOSES.get(image.getexif().get(ExifTags.Base.Orientation, 1))
        if transpose is not None:
            return image.transpose(transpose)
    return image


def _to_rgb_on_white(image: Image.Image) -> Image.Image:
    if image.mode[0] in "IF":  # 16 and 32 bits a pixel: `convert` would clip these at 255
        image = _to_eight_bits(image)
    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    image = image.convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    white.alpha_composite(image)
    return white.convert("RGB")


def _to_eight_bits(image: Image.Image) -> Image.Image:
    values = np.nan_to_num(np.asarray(image).astype(np.float32), posinf=0, neginf=0)
    white = 65535 if image.mode.startswith("I;16") else _guess_white(float(values.max(initial=0)))
    values = np.clip(values * (255 / white), 0, 255)
    transparent = image.info.get("transparency") if image.mode.startswith("I;16") else None
    if isinstance(transparent, int):
        values[np.asarray(image) == transparent] = 255
    return Image.fromarray(values.round().astype(np.uint8), "L")


def _guess_white(maximum: float) -> float:
    """Guesses which value is white in a format that does not define it: 1.0, 8 bits, 16 bits, or the maximum."""
    return next((white for white in (1.0, 255.0, 65535.0) if maximum <= white), maximum)
