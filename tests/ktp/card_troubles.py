"""What befalls a picture of a card without moving it: light, glare, fingers, blur, copies, grain, JPEG."""

from io import BytesIO
from random import Random
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Corners = NDArray[np.float64]  # of the card in the picture, from the upper left of its print, clockwise


def pixels(values: NDArray[Any]) -> Pixels:
    clipped: Pixels = np.clip(values, 0, 255).astype(np.uint8)
    return clipped


def lit(picture: Pixels, random: Random, strength: float) -> Pixels:
    """Brighter on one side, in the colour of some lamp."""
    height, width = picture.shape[:2]
    angle = random.uniform(0, 2 * np.pi)
    x, y = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    light = 1 + strength * (np.cos(angle) * x + np.sin(angle) * y) / 2
    warmth = np.array([1 + random.uniform(-0.06, 0.08), 1.0, 1 + random.uniform(-0.1, 0.06)])
    return pixels(picture * light[..., None] * warmth)


def glare(picture: Pixels, random: Random, corners: Corners) -> Pixels:
    """A lamp mirrored somewhere in the card; one in four is so bright that it hides text."""
    across, down = random.uniform(0.15, 0.75), random.uniform(0.15, 0.85)
    middle = _on_card(corners, across, down)
    size = random.uniform(0.05, 0.13) * float(np.linalg.norm(corners[1] - corners[0]))
    height, width = picture.shape[:2]
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    spot = np.exp(-(((x - middle[0]) / (1.8 * size)) ** 2 + ((y - middle[1]) / size) ** 2))
    strength = random.uniform(260, 420) if random.random() < 0.25 else random.uniform(110, 200)
    return pixels(picture + strength * spot[..., None])


def finger(picture: Pixels, random: Random, corners: Corners) -> Pixels:
    """It holds the card at its lower or right edge and may cover the end of a line or the last rows."""
    below = random.random() < 0.6
    tip = _on_card(corners, random.uniform(0.1, 0.9), random.uniform(0.86, 0.97)) if below else _on_card(
        corners, random.uniform(0.7, 0.9), random.uniform(0.3, 0.9)
    )  # fmt: skip
    outwards = corners[3] - corners[0] if below else corners[1] - corners[0]
    direction = outwards / np.linalg.norm(outwards)
    wide = 0.09 * float(np.linalg.norm(corners[1] - corners[0]))
    end = tip + direction * wide * 9
    skin = [random.randrange(150, 215), random.randrange(105, 150), random.randrange(80, 115)]
    layer = picture.copy()
    begin = tip + direction * wide
    cv2.line(layer, _point(begin), _point(end), skin, round(wide * 2), cv2.LINE_AA)
    return cv2.GaussianBlur(layer, (0, 0), 0.8).astype(np.uint8)


def motion(picture: Pixels, random: Random, corners: Corners) -> Pixels:
    length = random.randrange(3, 8)
    kernel = np.zeros((length, length), np.float32)
    cv2.line(kernel, (0, random.randrange(length)), (length - 1, random.randrange(length)), 1.0)
    return pixels(cv2.filter2D(picture, -1, kernel / kernel.sum()))


def photocopied(picture: Pixels, random: Random, corners: Corners) -> Pixels:
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    steep = pixels((grey - 128) * random.uniform(1.3, 1.9) + random.uniform(110, 150))
    return np.repeat(steep[..., None], 3, axis=2)


def dimmed(picture: Pixels, random: Random, corners: Corners) -> Pixels:
    return pixels(picture * random.uniform(0.2, 0.5))


def on_a_screen(picture: Pixels, random: Random) -> Pixels:
    """The rows and columns of a screen that was photographed."""
    height, width = picture.shape[:2]
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    pitch, angle = random.uniform(2.6, 4.2), random.uniform(-0.2, 0.2)
    wave = np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / pitch) + np.sin(2 * np.pi * y / (pitch * 1.1))
    return pixels(picture * (1 + random.uniform(0.02, 0.07) * wave[..., None]))


def blurred(picture: Pixels, sigma: float) -> Pixels:
    return cv2.GaussianBlur(picture, (0, 0), sigma).astype(np.uint8)


def grainy(picture: Pixels, strength: float, random: Random) -> Pixels:
    grain = np.random.default_rng(random.randrange(2**31)).normal(0, strength, picture.shape)
    return pixels(picture + grain)


def as_jpeg(picture: Pixels, quality: int) -> Pixels:
    with BytesIO() as file:
        Image.fromarray(picture).save(file, "JPEG", quality=quality)
        return np.asarray(Image.open(file).convert("RGB"))


def _on_card(corners: Corners, across: float, down: float) -> NDArray[np.float64]:
    above = corners[0] + (corners[1] - corners[0]) * across
    below = corners[3] + (corners[2] - corners[3]) * across
    where: NDArray[np.float64] = above + (below - above) * down
    return where


def _point(where: NDArray[np.float64]) -> tuple[int, int]:
    return round(float(where[0])), round(float(where[1]))
