"""Pictures of the sample, drawn while it is added: a shape for each category, colours for each product."""

import colorsys
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

    from tis.media.media_types import Pixels

_WIDTH, _HEIGHT = 640, 480
_SCALE = 2  # drawn larger and shrunk, which smooths the edges
Colour = tuple[int, int, int]
_DARK, _GREY, _WHITE = (38, 42, 51), (150, 156, 168), (250, 250, 252)
_NAMED: dict[str, Colour] = {"hitam": (52, 55, 64), "biru": (58, 110, 190)}


def draw_product(category: str, key: str, colour_name: str | None = None) -> "Pixels":
    """`key` chooses the colours, unless the product has one that is known here."""
    import numpy
    from PIL import Image, ImageDraw

    hue = zlib.crc32((colour_name or key).encode()) % 360 / 360
    image = Image.new("RGB", (_WIDTH * _SCALE, _HEIGHT * _SCALE), _colour(hue, 0.10, 0.97))
    draw = ImageDraw.Draw(image)
    _box(draw, 120, 404, 520, 422, _colour(hue, 0.12, 0.88), radius=9)  # its shadow
    _SHAPES.get(category, _draw_parcel)(draw, _NAMED.get(colour_name or "", _colour(hue, 0.62, 0.80)))
    return numpy.asarray(image.resize((_WIDTH, _HEIGHT), Image.Resampling.LANCZOS))


def _colour(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue


def _box(draw: "ImageDraw", left: int, top: int, right: int, bottom: int, fill: Colour, radius: int = 14) -> None:
    draw.rounded_rectangle([one * _SCALE for one in (left, top, right, bottom)], radius * _SCALE, fill)


def _oval(draw: "ImageDraw", left: int, top: int, right: int, bottom: int, fill: Colour) -> None:
    draw.ellipse([one * _SCALE for one in (left, top, right, bottom)], fill)


def _draw_laptop(draw: "ImageDraw", colour: Colour) -> None:
    _box(draw, 160, 100, 480, 330, _DARK)
    _box(draw, 176, 116, 464, 314, colour, 6)
    _box(draw, 200, 146, 330, 166, _WHITE, 6)
    _box(draw, 200, 182, 290, 196, _WHITE, 6)
    _box(draw, 110, 334, 530, 372, _GREY, 12)
    _box(draw, 270, 338, 370, 350, _DARK, 5)


def _draw_monitor(draw: "ImageDraw", colour: Colour) -> None:
    _box(draw, 120, 70, 520, 310, _DARK)
    _box(draw, 134, 84, 506, 292, colour, 5)
    _oval(draw, 250, 130, 390, 270, _WHITE)
    _box(draw, 300, 310, 340, 372, _GREY, 2)
    _box(draw, 230, 366, 410, 388, _GREY, 8)


def _draw_smartphone(draw: "ImageDraw", colour: Colour) -> None:
    _box(draw, 236, 60, 404, 400, _DARK, 30)
    _box(draw, 248, 74, 392, 386, colour, 20)
    _box(draw, 296, 84, 344, 96, _DARK, 6)
    for row in range(3):
        for column in range(3):
            left, top = 268 + 38 * column, 250 + 38 * row
            _box(draw, left, top, left + 26, top + 26, _WHITE, 7)


def _draw_mouse(draw: "ImageDraw", colour: Colour) -> None:
    _oval(draw, 230, 80, 410, 390, _DARK)
    _oval(draw, 246, 96, 394, 374, colour)
    _box(draw, 317, 96, 323, 230, _DARK, 2)
    _box(draw, 306, 130, 334, 190, _WHITE, 14)


def _draw_keyboard(draw: "ImageDraw", colour: Colour) -> None:
    _box(draw, 90, 160, 550, 370, _DARK, 18)
    for row in range(4):
        for column in range(11):
            left, top = 108 + 39 * column, 178 + 38 * row
            _box(draw, left, top, left + 32, top + 30, colour if (row + column) % 5 else _WHITE, 6)
    _box(draw, 225, 332, 415, 358, colour, 6)


def _draw_headset(draw: "ImageDraw", colour: Colour) -> None:
    bounds = [one * _SCALE for one in (180, 80, 460, 380)]
    draw.arc(bounds, 180, 360, _DARK, 26 * _SCALE)
    _box(draw, 160, 220, 232, 370, colour, 30)
    _box(draw, 408, 220, 480, 370, colour, 30)
    _box(draw, 222, 236, 250, 354, _DARK, 12)
    _box(draw, 390, 236, 418, 354, _DARK, 12)


def _draw_shirt(draw: "ImageDraw", colour: Colour) -> None:
    left_half = [(262, 92), (196, 116), (120, 196), (170, 246), (212, 210), (212, 398)]
    outline = left_half + [(2 * 320 - x, y) for x, y in reversed(left_half)]
    draw.polygon([(x * _SCALE, y * _SCALE) for x, y in outline], colour)
    draw.chord([one * _SCALE for one in (268, 60, 372, 124)], 0, 180, _WHITE)
    _box(draw, 346, 176, 394, 190, _WHITE, 5)


def _draw_parcel(draw: "ImageDraw", colour: Colour) -> None:
    _box(draw, 180, 150, 460, 390, colour, 10)
    _box(draw, 170, 120, 470, 190, _DARK, 10)
    _box(draw, 300, 120, 340, 390, _WHITE, 2)


_SHAPES: dict[str, Callable[["ImageDraw", Colour], None]] = {
    "laptop": _draw_laptop,
    "monitor": _draw_monitor,
    "smartphone": _draw_smartphone,
    "mouse": _draw_mouse,
    "keyboard": _draw_keyboard,
    "headset": _draw_headset,
    "clothing": _draw_shirt,
}
