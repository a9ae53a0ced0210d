"""Makes WebP files of decoded pixels, in three sizes. The pixels are all that is left of what a client sent."""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tis.marketplace.kit.picture_links import PictureSize

if TYPE_CHECKING:
    from PIL.Image import Image

    from tis.media.media_types import Pixels

_MAX_SIDES: Mapping[PictureSize, int] = {"small": 160, "medium": 480, "large": 1280}
_QUALITY = 80
_METHOD = 4  # 0 is fast, 6 is small
# Change it with anything above: an address must not show other bytes than before.
_RECIPE = 1


@dataclass(frozen=True)
class RenderedPicture:
    """`width` and `height` are those of the largest size."""

    hash: str
    width: int
    height: int
    files: Mapping[PictureSize, bytes]


def render_picture(pixels: "Pixels") -> RenderedPicture:
    """Height x width x 3. Takes 0.2 s for a photo, so call it in a thread."""
    from PIL import Image

    height, width = pixels.shape[:2]
    digest = hashlib.sha256(f"{_RECIPE} {width} {height}\n".encode())
    digest.update(pixels.data if pixels.flags.c_contiguous else pixels.tobytes())
    image = Image.fromarray(pixels)
    files: dict[PictureSize, bytes] = {}
    largest = (0, 0)
    for size, max_side in sorted(_MAX_SIDES.items(), key=lambda one: -one[1]):
        image = _shrunk(image, max_side)  # of the next larger size, which is faster and looks the same
        largest = max(largest, image.size)
        file = io.BytesIO()
        image.save(file, "WEBP", quality=_QUALITY, method=_METHOD)
        files[size] = file.getvalue()
    return RenderedPicture(digest.hexdigest(), *largest, files)


def _shrunk(image: "Image", max_side: int) -> "Image":
    """Never larger than it is."""
    from PIL import Image

    width, height = image.size
    scale = max_side / max(width, height)
    if scale >= 1:
        return image
    sides = max(1, round(width * scale)), max(1, round(height * scale))
    return image.resize(sides, Image.Resampling.LANCZOS, reducing_gap=3.0)
