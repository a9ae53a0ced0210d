"""What happens to a card before it is uploaded: a clean scan, a photo, a hard photo, and a few other ways."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.ktp.card_drawing import TEXT_FONTS, CardDrawing, font
from tests.ktp.card_troubles import (
    Corners,
    Pixels,
    as_jpeg,
    blurred,
    dimmed,
    finger,
    glare,
    grainy,
    lit,
    motion,
    on_a_screen,
    photocopied,
)
from tests.ktp.cards import make_card

LEVELS = ("clean", "photo", "hard")
OTHER_LEVELS = ("tilted", "small", "screenshot", "photocopy", "harsh")
# A character is hidden where less than this is left of the contrast that others of its card have, and few grey levels.
_HIDDEN_SHARE, _HIDDEN_LEVELS = 0.12, 14.0
# Half a word of a short list says which it is.
_OF_SHORT_LISTS = {"jenis_kelamin", "agama", "status_perkawinan", "kewarganegaraan", "berlaku_hingga"}


@dataclass(frozen=True)
class Photograph:
    """`obscured` fields cannot be read by anybody: glare or a finger hides a character."""

    picture: Pixels
    corners: Corners
    obscured: frozenset[str]


def photograph(seed: int, level: str) -> Pixels:
    """RGB. The same seed is the same card at every level."""
    return _taken(CardDrawing(make_card(seed)), seed, level)[0]


def take_photograph(seed: int, level: str) -> Photograph:
    """The same picture, with where the card lies and what is hidden."""
    drawing = CardDrawing(make_card(seed))
    picture, corners = _taken(drawing, seed, level)
    if level not in ("hard", "harsh"):
        return Photograph(picture, corners, frozenset())
    empty, _ = _taken(CardDrawing(make_card(seed), with_values=False), seed, level)
    ink = np.abs(picture.astype(np.float32) - empty).max(axis=2)
    return Photograph(picture, corners, _obscured(drawing, ink, corners))


def _obscured(drawing: CardDrawing, ink: NDArray[np.float32], corners: Corners) -> frozenset[str]:
    width, height = drawing.image.size
    view = _view(_rectangle(width, height), corners)
    visible = {
        field: np.array([_contrast(ink, view, box) for box in boxes]) for field, boxes in drawing.characters.items()
    }
    usual = float(np.median(np.concatenate(list(visible.values()))))
    limit = min(_HIDDEN_LEVELS, usual * _HIDDEN_SHARE)
    hidden = {field: float((contrasts < limit).mean()) for field, contrasts in visible.items()}
    return frozenset(field for field, share in hidden.items() if share >= (0.5 if field in _OF_SHORT_LISTS else 1e-6))


def _contrast(ink: NDArray[np.float32], view: NDArray[np.float64], box: tuple[float, float, float, float]) -> float:
    left, top, right, bottom = box
    points = np.array([[(left, top), (right, top), (right, bottom), (left, bottom)]])
    seen = cv2.perspectiveTransform(points, view)[0]
    low, high = np.floor(seen.min(axis=0)).astype(int).clip(0), np.ceil(seen.max(axis=0)).astype(int)
    part = ink[low[1] : high[1], low[0] : high[0]]
    return float(np.percentile(part, 98)) if part.size else 0.0


def _taken(drawing: CardDrawing, seed: int, level: str) -> tuple[Pixels, Corners]:
    ways: dict[str, Callable[[Pixels, Random], tuple[Pixels, Corners]]] = {
        "clean": _scan, "photo": _photo, "hard": _hard_photo,
        "tilted": _tilted_photo, "small": _small_photo, "screenshot": _screenshot, "photocopy": _photocopy,
        "harsh": _harsh_photo,
    }  # fmt: skip
    return ways[level](np.asarray(drawing.image), Random(f"{seed} {level}"))


def _scan(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    width = random.randrange(950, 1400)
    size = (width, round(card.shape[0] * width / card.shape[1]))
    card = cv2.resize(card, size, interpolation=cv2.INTER_AREA).astype(np.uint8)
    turn = cv2.getRotationMatrix2D((size[0] / 2, size[1] / 2), random.uniform(-0.6, 0.6), 1)
    card = cv2.warpAffine(card, turn, size, borderValue=(245, 245, 245)).astype(np.uint8)
    corners = _rectangle(*size) @ turn[:, :2].T + turn[:, 2]
    return as_jpeg(grainy(card, 2.0, random), random.randrange(85, 96)), corners


def _photo(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    frame = (random.randrange(1200, 1700), random.randrange(900, 1200))
    picture, corners = _placed(card, frame, random.uniform(0.62, 0.86), random.uniform(-8, 8), 0.045, random)
    return _developed(picture, random), corners


def _tilted_photo(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    frame = (random.randrange(1200, 1700), random.randrange(1000, 1300))
    degrees = random.choice([-1, 1]) * random.uniform(25, 60)
    picture, corners = _placed(card, frame, random.uniform(0.62, 0.86), degrees, 0.045, random)
    return _developed(picture, random), corners


def _small_photo(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    """The card of 360 to 560 pixels in a large picture."""
    frame = (random.randrange(1300, 1800), random.randrange(1000, 1300))
    share = random.uniform(360, 560) / frame[0]
    picture, corners = _placed(card, frame, share, random.uniform(-15, 15), 0.03, random)
    return as_jpeg(grainy(blurred(lit(picture, random, 0.3), 0.5), 3, random), random.randrange(75, 92)), corners


def _developed(picture: Pixels, random: Random) -> Pixels:
    picture = blurred(lit(picture, random, 0.3), random.uniform(0.6, 1.5))
    return as_jpeg(grainy(picture, random.uniform(2, 6), random), random.randrange(50, 88))


def _hard_photo(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    frame = (random.randrange(1100, 1500), random.randrange(1000, 1300))
    degrees = random.uniform(-26, 26)
    picture, corners = _placed(card, frame, random.uniform(0.55, 0.8), degrees, 0.05, random, clutter=True)
    picture = lit(picture, random, 0.55)
    troubles = [glare, glare, finger, motion, photocopied, dimmed]
    for trouble in random.sample(troubles, random.choice([1, 1, 2])):
        picture = trouble(picture, random, corners)
    picture = blurred(picture, random.uniform(0.6, 1.4))
    picture = as_jpeg(grainy(picture, random.uniform(3, 9), random), random.randrange(40, 75))
    return _quarter_turned(picture, corners, random.choice([0, 0, 0, 0, 1, 2, 3]))


def _harsh_photo(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    """Smaller than a hard one, with three troubles: what confidence is tuned on."""
    frame = (random.randrange(1000, 1300), random.randrange(900, 1100))
    picture, corners = _placed(card, frame, random.uniform(0.5, 0.72), random.uniform(-26, 26), 0.06, random)
    picture = lit(picture, random, 0.7)
    for trouble in random.sample([glare, finger, motion, photocopied, dimmed], 3):
        picture = trouble(picture, random, corners)
    picture = blurred(picture, random.uniform(0.5, 1.2))
    return as_jpeg(grainy(picture, random.uniform(3, 8), random), random.randrange(38, 70)), corners


def _screenshot(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    """A phone shows the card in some app; half of them are photos of that screen."""
    width = random.randrange(1000, 1200)
    page = Image.new("RGB", (width, width + random.randrange(100, 500)), (18, 18, 22))
    draw = ImageDraw.Draw(page)
    draw.text((40, 20), "09:41", fill=(230, 230, 230), font=font(tuple(TEXT_FONTS), 34))
    draw.text(
        (120, page.height - 60), "Bagikan      Ubah      Hapus", fill=(230, 230, 230), font=font(tuple(TEXT_FONTS), 36)
    )
    wide = width - 2 * random.randrange(10, 60)
    high = wide * card.shape[0] / card.shape[1]
    corners = _rectangle(wide, high) + np.array([(width - wide) / 2, (page.height - high) / 2])
    picture = _seen(card, np.asarray(page), corners)
    if random.random() < 0.5:
        picture = blurred(on_a_screen(picture, random), 0.7)
    return as_jpeg(picture, random.randrange(70, 92)), corners


def _photocopy(card: Pixels, random: Random) -> tuple[Pixels, Corners]:
    """On a sheet of paper, in grey."""
    frame = (random.randrange(1300, 1700), random.randrange(1000, 1500))
    wide = frame[0] * random.uniform(0.6, 0.85)
    radians = np.deg2rad(random.uniform(-3, 3))
    spin = np.array([[np.cos(radians), -np.sin(radians)], [np.sin(radians), np.cos(radians)]])
    high = wide * card.shape[0] / card.shape[1]
    corners = (_rectangle(wide, high) - np.array([wide, high]) / 2) @ spin.T + np.array(frame) / 2
    sheet = np.full((frame[1], frame[0], 3), 250, np.uint8)
    picture = photocopied(_seen(card, sheet, corners), random, corners)
    return as_jpeg(grainy(blurred(picture, 0.7), 4, random), random.randrange(60, 88)), corners


def _placed(
    card: Pixels,
    frame: tuple[int, int],
    share: float,
    degrees: float,
    tilt: float,
    random: Random,
    clutter: bool = False,
) -> tuple[Pixels, Corners]:
    """The card on a table, seen from a hand's angle."""
    width, height = frame
    table = _table(frame, random, clutter)
    wide = width * share
    high = wide * card.shape[0] / card.shape[1]
    high, wide = (high, wide) if high < height * 0.85 else (height * 0.85, height * 0.85 * wide / high)
    radians = np.deg2rad(degrees)
    spin = np.array([[np.cos(radians), -np.sin(radians)], [np.sin(radians), np.cos(radians)]])
    corners = np.array([[-wide, -high], [wide, -high], [wide, high], [-wide, high]]) / 2 @ spin.T
    corners += np.array([[random.uniform(-tilt, tilt) * wide, random.uniform(-tilt, tilt) * wide] for _ in range(4)])
    corners *= min(1.0, 0.97 * width / np.ptp(corners[:, 0]), 0.97 * height / np.ptp(corners[:, 1]))
    low, top = corners.min(axis=0), corners.max(axis=0)
    room = np.array([width, height]) - (top - low)
    corners += -low + room * np.array([random.uniform(0.1, 0.9), random.uniform(0.1, 0.9)])
    return _seen(card, table, corners), corners


def _seen(card: Pixels, background: Pixels, corners: Corners) -> Pixels:
    view = _view(_rectangle(card.shape[1], card.shape[0]), corners)
    frame = (background.shape[1], background.shape[0])
    # Several pixels of the drawing become one; warping alone would leave jagged letters.
    shrink = min(1.0, float(np.linalg.norm(corners[1] - corners[0])) / card.shape[1])
    soft = blurred(card, 0.35 / shrink) if shrink < 0.9 else card
    seen = cv2.warpPerspective(soft, view, frame, flags=cv2.INTER_LINEAR)
    mask = cv2.warpPerspective(np.full(card.shape[:2], 255, np.uint8), view, frame)
    return np.where(mask[..., None] > 127, seen, background).astype(np.uint8)


def _table(frame: tuple[int, int], random: Random, clutter: bool) -> Pixels:
    width, height = frame
    shade = [random.randrange(60, 200) for _ in range(3)]
    grain = np.random.default_rng(random.randrange(2**31)).normal(0, 14, (height // 8, width // 60, 3))
    wood = cv2.resize(grain.astype(np.float32), frame, interpolation=cv2.INTER_CUBIC) + np.array(shade, np.float32)
    image = Image.fromarray(np.clip(wood, 0, 255).astype(np.uint8))
    if clutter:
        draw = ImageDraw.Draw(image)
        draw.rectangle((0, 0, width, height * 0.2), fill=(235, 235, 230))
        words = ["TAGIHAN LISTRIK", "Nama Pelanggan : ", "TOTAL BAYAR Rp 250.000", "Simpan struk ini", "No. 0218837465"]
        for word in random.sample(words, 3):
            where = (random.randrange(0, width // 2), random.randrange(0, height // 6))
            draw.text(where, word, fill=(40, 40, 40), font=font(tuple(TEXT_FONTS), random.randrange(18, 34)))
    return np.asarray(image)


def _quarter_turned(picture: Pixels, corners: Corners, turns: int) -> tuple[Pixels, Corners]:
    for _ in range(turns):
        corners = np.column_stack([corners[:, 1], picture.shape[1] - corners[:, 0]])
        picture = np.rot90(picture)
    return np.ascontiguousarray(picture), corners


def _rectangle(width: float, height: float) -> Corners:
    return np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float64)


def _view(before: Corners, after: Corners) -> NDArray[np.float64]:
    return np.asarray(cv2.getPerspectiveTransform(before.astype(np.float32), after.astype(np.float32)), np.float64)
