"""What befalls a card of the second style: folds, laminate, lamps, thumbs, screens, copies, messengers.

All work on float32 pictures of 0 to 255, and draw the same from the same state of `chance` whatever the picture shows.
"""

from io import BytesIO

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float32]
Points = NDArray[np.float64]


def _plane(shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """x and y from 0 to 1."""
    x, y = np.meshgrid(np.linspace(0, 1, shape[1], dtype=np.float32), np.linspace(0, 1, shape[0], dtype=np.float32))
    return x, y


def folded(card: Floats, chance: Generator) -> Floats:
    """A crease across the card: a bright ridge beside a dark one, and what lies behind it is shifted and in shade."""
    x, y = _plane(card.shape)
    steep = chance.uniform(-0.5, 0.5)
    away = (x - chance.uniform(0.3, 0.7) + steep * (y - 0.5)) * card.shape[1] / np.hypot(1, steep)
    soft = chance.uniform(3, 7)
    ridge = np.exp(-((away / soft) ** 2)) * 45 - np.exp(-(((away - soft * 1.6) / soft) ** 2)) * 60
    shift = (chance.uniform(-4, 4) / (1 + np.exp(-away / 6))).astype(np.float32)
    columns, rows = np.meshgrid(np.arange(card.shape[1], dtype=np.float32), np.arange(card.shape[0], dtype=np.float32))
    moved = cv2.remap(card, columns, rows + shift, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    shade = 1 - chance.uniform(0.05, 0.25) / (1 + np.exp(-away / 10))
    return np.asarray(moved * shade[..., None] + ridge[..., None], np.float32)


def laminated(card: Floats, chance: Generator) -> Floats:
    """Haze, bands of reflected light, and bubbles with a bright rim."""
    x, y = _plane(card.shape)
    layer = np.full(x.shape, chance.uniform(6, 22), np.float32)
    for _ in range(chance.integers(1, 4)):
        turn, place, wide = chance.uniform(-1.2, 1.2), chance.uniform(0, 1), chance.uniform(0.02, 0.1)
        across = np.cos(turn) * (x - place) + np.sin(turn) * (y - 0.5)
        layer += chance.uniform(25, 85) * np.clip(1.3 - np.abs(across) / wide, 0, 1)
    for _ in range(chance.integers(3, 14)):
        away = np.hypot((x - chance.uniform(0, 1)) * 1.59, y - chance.uniform(0, 1)) / chance.uniform(0.01, 0.05)
        layer += chance.uniform(20, 70) * (np.exp(-(((away - 1) / 0.18) ** 2)) + 0.25 * (away < 1))
    return np.asarray(card * 0.95 + layer[..., None], np.float32)


def lamp_light(picture: Floats, chance: Generator, strength: float) -> Floats:
    """From one corner, coloured, darker at the rims of the lens, and in half of the pictures the shadow of a phone."""
    x, y = _plane(picture.shape)
    corners = 1 + strength * chance.uniform(-1, 1, 4)
    light = (1 - x) * (1 - y) * corners[0] + x * (1 - y) * corners[1] + x * y * corners[2] + (1 - x) * y * corners[3]
    light *= 1 - strength * 0.5 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)
    turn, place = chance.uniform(0, 2 * np.pi), chance.uniform(-0.3, 0.3)
    if chance.random() < 0.5:
        edge = np.cos(turn) * (x - 0.5) + np.sin(turn) * (y - 0.5) - place
        light *= 1 - strength * 0.7 / (1 + np.exp(-edge / 0.03))
    cast = 1 + strength * chance.uniform(-0.3, 0.3, 3)
    return np.asarray(picture * light[..., None] * cast.astype(np.float32), np.float32)


def glare_spots(picture: Floats, chance: Generator, corners: Points) -> Floats:
    """Bulbs and tubes mirrored in the card; some hide what is below them."""
    rows, columns = np.mgrid[0 : picture.shape[0], 0 : picture.shape[1]].astype(np.float32)
    side = float(np.linalg.norm(corners[1] - corners[0]))
    for _ in range(chance.integers(1, 4)):
        across, down = chance.uniform(0.05, 0.95, 2)
        middle = _inside(corners, across, down)
        turn, size, long = chance.uniform(0, np.pi), side * chance.uniform(0.015, 0.045), chance.uniform(1, 4)
        dx, dy = columns - middle[0], rows - middle[1]
        along, beside = np.cos(turn) * dx + np.sin(turn) * dy, np.cos(turn) * dy - np.sin(turn) * dx
        spot = np.exp(-(((along / (size * long)) ** 2 + (beside / size) ** 2) ** 1.5))
        picture = picture + (chance.uniform(60, 260) * spot)[..., None] * np.array([1, 0.98, 0.93], np.float32)
    return np.asarray(picture, np.float32)


def thumb(picture: Floats, chance: Generator, corners: Points) -> Floats:
    """With a nail and a shaded side; it comes from the right, the left or below."""
    edge = chance.integers(3)
    place = chance.uniform(0.15, 0.85)
    reach = chance.uniform(0.03, 0.14)
    tip = [_inside(corners, 1 - reach, place), _inside(corners, reach * 0.2, place), _inside(corners, place, 1 - reach)]
    outwards = [corners[1] - corners[0], corners[0] - corners[1], corners[3] - corners[0]][edge]
    direction = outwards / np.linalg.norm(outwards)
    wide = 0.085 * float(np.linalg.norm(corners[1] - corners[0])) * chance.uniform(0.8, 1.2)
    skin = np.array([chance.uniform(120, 220), chance.uniform(85, 160), chance.uniform(60, 125)])
    skin = np.sort(skin)[::-1]
    mask: Floats = np.zeros(picture.shape[:2], np.float32)
    begin, end = tip[edge] + direction * wide, tip[edge] + direction * wide * 12
    cv2.line(mask, _at(begin), _at(end), 1.0, round(wide * 2), cv2.LINE_AA)
    mask = cv2.GaussianBlur(mask, (0, 0), 1.2).astype(np.float32)
    depth = cv2.GaussianBlur(mask, (0, 0), wide / 2)[..., None] * 0.5 + 0.55
    nail = np.zeros_like(mask)
    degrees = float(np.degrees(np.arctan2(direction[1], direction[0])))
    centre = _at(tip[edge] + direction * wide * 0.8)
    cv2.ellipse(nail, centre, (round(wide * 0.65), round(wide * 0.5)), degrees, 0, 360, 1.0, -1, cv2.LINE_AA)
    finger = skin.astype(np.float32) * depth + nail[..., None] * 25
    shadow = cv2.GaussianBlur(mask, (0, 0), wide / 3)[..., None] * 0.35
    return np.asarray(picture * (1 - shadow) * (1 - mask[..., None]) + finger * mask[..., None], np.float32)


def shaken(picture: Floats, chance: Generator, corners: Points) -> Floats:
    """A hand that moved along an arc; less where the card is small, so that somebody can still read it."""
    steps = np.linspace(-1, 1, 15)
    turn, long, bend = chance.uniform(0, np.pi), chance.uniform(1.2, 3.2), chance.uniform(-0.5, 0.5)
    long *= min(1.0, float(np.linalg.norm(corners[1] - corners[0])) / 900)
    kernel: Floats = np.zeros((11, 11), np.float32)
    for step in steps:
        x = 5 + long * (np.cos(turn) * step - np.sin(turn) * bend * step * step)
        y = 5 + long * (np.sin(turn) * step + np.cos(turn) * bend * step * step)
        kernel[round(y), round(x)] += 1
    kernel = cv2.GaussianBlur(kernel, (0, 0), 0.6).astype(np.float32)
    return np.asarray(cv2.filter2D(picture, -1, kernel / kernel.sum()), np.float32)


def photographed_screen(picture: Floats, chance: Generator) -> Floats:
    """The stripes of a screen's colours beat with the camera's grid; the backlight is bluish and uneven."""
    rows, columns = np.mgrid[0 : picture.shape[0], 0 : picture.shape[1]].astype(np.float32)
    turn, pitch = chance.uniform(-0.1, 0.1), chance.uniform(1.85, 2.3)
    phase = 2 * np.pi * (columns * np.cos(turn) + rows * np.sin(turn)) / pitch
    stripes = np.stack([np.sin(phase + third * 2 * np.pi / 3) for third in range(3)], axis=2)
    lines = np.sin(2 * np.pi * rows / chance.uniform(2.1, 2.6))[..., None]
    depth = chance.uniform(0.05, 0.16)
    light = np.array([0.95, 1.0, 1.08], np.float32)
    return np.asarray(picture * light * (1 + depth * stripes + depth * 0.5 * lines) + 6, np.float32)


def grey_copy(picture: Floats, chance: Generator, corners: Points) -> Floats:
    """Toner: steep, with specks, a dirty drum's streaks and a pale half; set to the paper of the card."""
    grey = picture @ np.array([0.3, 0.59, 0.11], np.float32)
    x, y = _plane(grey.shape)
    low, high = np.floor(corners.min(axis=0)).astype(int).clip(0), np.ceil(corners.max(axis=0)).astype(int)
    paper = np.percentile(grey[low[1] : high[1] : 4, low[0] : high[0] : 4], 60)
    steep = chance.uniform(1.2, 1.8)
    copy = (grey - paper) * steep + chance.uniform(205, 252)
    copy += chance.uniform(0, 40) * (
        np.cos(chance.uniform(0, 6)) * (x - 0.5) + np.sin(chance.uniform(0, 6)) * (y - 0.5)
    )
    specks = chance.random(grey.shape, np.float32)
    copy[specks < 0.0006] -= 120
    copy[specks > 0.9985] = 255
    for place in chance.uniform(0, 1, chance.integers(0, 3)):
        copy -= 30 * np.exp(-(((x - place) / 0.002) ** 2))
    return np.asarray(np.repeat(copy[..., None], 3, axis=2), np.float32)


def by_messenger(picture: Floats, chance: Generator, times: int) -> NDArray[np.uint8]:
    """Shrunk and compressed, and again when it is forwarded."""
    seen = np.clip(picture, 0, 255).astype(np.uint8)
    for _ in range(times):
        quality = int(chance.integers(40, 75))
        with BytesIO() as file:
            Image.fromarray(seen).save(file, "JPEG", quality=quality, subsampling=2)
            seen = np.asarray(Image.open(file).convert("RGB"))
    return seen


def _inside(corners: Points, across: float, down: float) -> Points:
    above = corners[0] + (corners[1] - corners[0]) * across
    below = corners[3] + (corners[2] - corners[3]) * across
    return np.asarray(above + (below - above) * down, np.float64)


def _at(point: Points) -> tuple[int, int]:
    return round(float(point[0])), round(float(point[1]))
