"""Specimen cards in another style than `tests.ktp`'s: other people, faces, paper, light and cameras.

The reader is tuned on the cards of `tests.ktp` alone; these show whether it reads cards or one program's drawings.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tests.ktp.card_photos import LEVELS, Photograph
from tests.ktp.second_style.second_card import Pixels, SecondCardDrawing
from tests.ktp.second_style.second_effects import (
    Floats,
    Points,
    by_messenger,
    folded,
    glare_spots,
    grey_copy,
    laminated,
    lamp_light,
    photographed_screen,
    shaken,
    thumb,
)
from tests.ktp.second_style.second_people import make_second_card

_ON_CARD = {"folded": folded, "laminated": laminated}
_IN_PICTURE = {"glare": glare_spots, "thumb": thumb}
_TROUBLES = ("folded", "laminated", "glare", "glare", "thumb", "shaken", "screen", "copy", "dim", "small")
# As in the first style: a character is hidden where this is left of the usual contrast, and few grey levels.
_HIDDEN_SHARE, _HIDDEN_LEVELS = 0.12, 14.0
_OF_SHORT_LISTS = {"jenis_kelamin", "agama", "status_perkawinan", "kewarganegaraan", "berlaku_hingga"}


@dataclass(frozen=True)
class _Camera:
    """Places on a card, in shares of its sides, to pixels of a picture whose lens bends straight lines."""

    view: NDArray[np.float64]
    size: tuple[int, int]
    bend: float

    def _bent(self, points: Points, bend: float) -> Points:
        middle = np.array(self.size) / 2
        away = (points - middle) / middle[0]
        return np.asarray(middle + away * (1 + bend * (away**2).sum(axis=-1, keepdims=True)) * middle[0], np.float64)

    def seen(self, points: Points) -> Points:
        flat = cv2.perspectiveTransform(points.reshape(1, -1, 2), self.view)[0]
        found = flat
        for _ in range(6):  # `_bent` leads from the picture to the flat plane
            found = found + flat - self._bent(found, self.bend)
        return np.asarray(found, np.float64)

    def takes(self, card: Floats, table: Floats) -> Floats:
        width, height = self.size
        rows, columns = np.mgrid[0:height, 0:width]
        flat = self._bent(np.stack([columns, rows], axis=2).reshape(-1, 2).astype(np.float64), self.bend)
        on_card = cv2.perspectiveTransform(flat[None], np.linalg.inv(self.view))[0]
        place = (on_card * np.array(card.shape[1::-1]) - 0.5).reshape(height, width, 2).astype(np.float32)
        wide = float(np.linalg.norm(np.diff(self.seen(np.array([[0.0, 0.5], [1.0, 0.5]])), axis=0)))
        soft = cv2.GaussianBlur(card, (0, 0), max(0.3, 0.38 * card.shape[1] / wide))
        taken = cv2.remap(soft, place[..., 0], place[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        beside = np.maximum(np.abs(on_card[:, 0] - 0.5) * 1.59, np.abs(on_card[:, 1] - 0.5) + 0.295) - 0.795
        cover = np.clip(0.5 - beside.reshape(height, width, 1) * wide / 1.59, 0, 1).astype(np.float32)
        return np.asarray(taken * cover + table * (1 - cover), np.float32)


def take_second_photograph(seed: int, level: str) -> Photograph:
    card = make_second_card(seed)
    drawing = SecondCardDrawing(card)
    picture, camera = _taken(drawing, seed, level)
    corners = camera.seen(np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]))
    if level != "hard":
        return Photograph(picture, corners, frozenset())
    empty, _ = _taken(SecondCardDrawing(card, with_values=False), seed, level)
    ink = np.abs(picture.astype(np.float32) - empty).max(axis=2)
    return Photograph(picture, corners, _hidden(drawing, ink, camera))


def _hidden(drawing: SecondCardDrawing, ink: Floats, camera: _Camera) -> frozenset[str]:
    contrasts: dict[str, list[float]] = {}
    for field, boxes in drawing.characters.items():
        for left, top, right, bottom in boxes:
            box = np.array([(left, top), (right, top), (right, bottom), (left, bottom)]) / drawing.image.size
            seen = camera.seen(box)
            low, high = np.floor(seen.min(axis=0)).astype(int).clip(0), np.ceil(seen.max(axis=0)).astype(int)
            part = ink[low[1] : high[1], low[0] : high[0]]
            contrasts.setdefault(field, []).append(float(np.percentile(part, 98)) if part.size else 0.0)
    usual = float(np.median([one for found in contrasts.values() for one in found]))
    limit = min(_HIDDEN_LEVELS, usual * _HIDDEN_SHARE)
    shares = {field: float(np.mean(np.array(found) < limit)) for field, found in contrasts.items()}
    return frozenset(field for field, share in shares.items() if share >= (0.5 if field in _OF_SHORT_LISTS else 1e-6))


def _taken(drawing: SecondCardDrawing, seed: int, level: str) -> tuple[Pixels, _Camera]:
    chance = np.random.default_rng([seed, LEVELS.index(level), 22])
    card = drawing.pixels.astype(np.float32)
    if level == "clean":
        camera = _camera(chance, (1150, 800), 0.85, 1.0, 0.0, 0.0)
        picture = camera.takes(card, np.full((800, 1150, 3), 238, np.float32))
        grain = chance.normal(0, 1.5, picture.shape).astype(np.float32)
        return by_messenger(picture + grain, chance, 1), camera
    troubles = _chosen(chance) if level == "hard" else frozenset()
    for name in sorted(_ON_CARD.keys() & troubles):
        card = _ON_CARD[name](card, chance)
    size = [(1280, 960), (960, 1280), (1280, 720), (1600, 1200)][chance.integers(4)]
    share = chance.uniform(0.45, 0.6) if "small" in troubles else chance.uniform(0.66, 0.9)
    degrees, tilt, bend = (24.0, 0.08, 0.05) if level == "hard" else (7.0, 0.04, 0.03)
    camera = _camera(chance, size, share, degrees, tilt, bend)
    corners = camera.seen(np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]))
    picture = camera.takes(card, _table(chance, size))
    for name in sorted(_IN_PICTURE.keys() & troubles):
        picture = _IN_PICTURE[name](picture, chance, corners)
    picture = lamp_light(picture, chance, 0.45 if level == "hard" else 0.2)
    picture = picture * np.float32(chance.uniform(0.25, 0.5)) if "dim" in troubles else picture
    picture = shaken(picture, chance, corners) if "shaken" in troubles else picture
    picture = cv2.GaussianBlur(picture, (0, 0), chance.uniform(0.5, 1.1)).astype(np.float32)
    picture = photographed_screen(picture, chance) if "screen" in troubles else picture
    picture = grey_copy(picture, chance, corners) if "copy" in troubles else picture
    strength = chance.uniform(3, 8) if level == "hard" else chance.uniform(1, 4)
    picture = picture + chance.normal(0, strength, picture.shape).astype(np.float32)
    return by_messenger(picture, chance, 2 if level == "hard" else 1), camera


def _chosen(chance: Generator) -> frozenset[str]:
    return frozenset(map(str, chance.choice(_TROUBLES, chance.integers(2, 5), replace=False)))


def _camera(
    chance: Generator, size: tuple[int, int], share: float, degrees: float, tilt: float, bend: float
) -> _Camera:
    """From a hand: the card is turned about three axes before a pinhole."""
    turn = np.radians(chance.uniform(-degrees, degrees))
    lean, sway = chance.uniform(-tilt, tilt, 2) * 6
    wide = min(size[0] * share, size[1] * share * 1.59)
    flat = np.array([(-0.5, -0.315), (0.5, -0.315), (0.5, 0.315), (-0.5, 0.315)])
    x, y = (flat @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])).T
    far = 1 + (x * np.sin(sway) + y * np.sin(lean)) / 2
    corners = np.stack([x * np.cos(sway) / far, y * np.cos(lean) / far], axis=1) * wide
    corners *= min(1.0, 0.96 * size[0] / np.ptp(corners[:, 0]), 0.96 * size[1] / np.ptp(corners[:, 1]))
    corners += np.array(size) / 2 - (corners.max(axis=0) + corners.min(axis=0)) / 2
    room = (np.array(size) - np.ptp(corners, axis=0)) / 2
    corners += room * chance.uniform(-0.6, 0.6, 2)
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32)
    view = np.asarray(cv2.getPerspectiveTransform(square, corners.astype(np.float32)), np.float64)
    return _Camera(view, size, float(chance.uniform(-bend, bend)))


def _table(chance: Generator, size: tuple[int, int]) -> Floats:
    """Tiles, cloth, planks or a printed page."""
    width, height = size
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    base = chance.uniform(40, 225, 3).astype(np.float32)
    pitch, kind = chance.uniform(90, 300), chance.integers(4)
    if kind == 0:
        joint = np.minimum(columns % pitch, rows % pitch) < 5
        shade = np.where(
            joint,
            -60,
            chance.normal(0, 6, (height // 40 + 1, width // 40 + 1)).repeat(40, 0).repeat(40, 1)[:height, :width],
        )
    elif kind == 1:
        shade = 14 * np.sin(columns * 0.9) * np.sin(rows * 0.9) + 10 * np.sin((columns + rows) / pitch * 6)
    elif kind == 2:
        rings = np.sin(rows / 9 + 3 * np.sin(columns / pitch) + np.floor(rows / pitch) * 5)
        shade = 12 * rings - 50 * (rows % pitch < 4)
    else:
        base = np.array([232, 230, 222], np.float32)
        page = np.zeros((height, width), np.float32)
        for row in range(20, height, 26):
            x = 30
            while x < width:
                x = x + int(chance.integers(20, 90))
                cv2.line(page, (x, row), (x + int(chance.integers(8, 60)), row), -120.0, 6)
                x += 60
        shade = page
    return np.asarray(base + np.asarray(shade, np.float32)[..., None], np.float32)
