"""What happens to a card before it is uploaded: a clean scan, a photo, a hard photo; and pictures that are no card."""

from collections.abc import Callable
from io import BytesIO
from random import Random
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.ktp.card_drawing import BOLD_FONTS, TEXT_FONTS, draw_card, font
from tests.ktp.cards import make_card

Pixels = NDArray[np.uint8]
LEVELS = ("clean", "photo", "hard")


def photograph(seed: int, level: str) -> Pixels:
    """RGB. The same seed is the same card at every level."""
    random = Random(f"{seed} {level}")
    flat = np.asarray(draw_card(make_card(seed)))
    return {"clean": _scan, "photo": _photo, "hard": _hard_photo}[level](flat, random)


def _scan(card: Pixels, random: Random) -> Pixels:
    width = random.randrange(950, 1400)
    card = _resized(card, width)
    card = _turned(card, random.uniform(-0.6, 0.6), (245, 245, 245))
    return _jpeg(_noise(card, 2.0, random), random.randrange(85, 96))


def _photo(card: Pixels, random: Random) -> Pixels:
    frame = (random.randrange(1200, 1700), random.randrange(900, 1200))
    picture = _placed(card, frame, random.uniform(0.62, 0.86), random.uniform(-8, 8), 0.045, random)
    picture = _lit(picture, random, 0.3)
    picture = cv2.GaussianBlur(picture, (0, 0), random.uniform(0.5, 1.25)).astype(np.uint8)
    return _jpeg(_noise(picture, random.uniform(2, 6), random), random.randrange(60, 88))


def _hard_photo(card: Pixels, random: Random) -> Pixels:
    frame = (random.randrange(1100, 1500), random.randrange(1000, 1300))
    picture = _placed(card, frame, random.uniform(0.6, 0.78), random.uniform(-22, 22), 0.06, random, clutter=True)
    picture = _lit(picture, random, 0.55)
    troubles: list[Callable[[Pixels, Random], Pixels]] = [_glare, _motion, _photocopy, _dim]
    for trouble in random.sample(troubles, random.choice([1, 1, 2])):
        picture = trouble(picture, random)
    picture = cv2.GaussianBlur(picture, (0, 0), random.uniform(0.6, 1.3)).astype(np.uint8)
    picture = _jpeg(_noise(picture, random.uniform(3, 9), random), random.randrange(40, 75))
    turns = random.choice([0, 0, 0, 0, 1, 2, 3])
    return np.ascontiguousarray(np.rot90(picture, turns))


def _resized(card: Pixels, width: int) -> Pixels:
    height = round(card.shape[0] * width / card.shape[1])
    return cv2.resize(card, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


def _turned(card: Pixels, degrees: float, border: tuple[int, int, int]) -> Pixels:
    height, width = card.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1)
    return cv2.warpAffine(card, turn, (width, height), borderValue=border).astype(np.uint8)


def _placed(
    card: Pixels,
    frame: tuple[int, int],
    share: float,
    degrees: float,
    tilt: float,
    random: Random,
    clutter: bool = False,
) -> Pixels:
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
    edges = np.array([[0, 0], [card.shape[1], 0], [card.shape[1], card.shape[0]], [0, card.shape[0]]], np.float32)
    view = cv2.getPerspectiveTransform(edges, corners.astype(np.float32))
    seen = cv2.warpPerspective(card, view, frame, flags=cv2.INTER_AREA)
    mask = cv2.warpPerspective(np.full(card.shape[:2], 255, np.uint8), view, frame)
    return np.where(mask[..., None] > 127, seen, table).astype(np.uint8)


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


def _lit(picture: Pixels, random: Random, strength: float) -> Pixels:
    height, width = picture.shape[:2]
    angle = random.uniform(0, 2 * np.pi)
    x, y = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    light = 1 + strength * (np.cos(angle) * x + np.sin(angle) * y) / 2
    warmth = np.array([1 + random.uniform(-0.06, 0.08), 1.0, 1 + random.uniform(-0.1, 0.06)])
    return _pixels(picture * light[..., None] * warmth)


def _glare(picture: Pixels, random: Random) -> Pixels:
    height, width = picture.shape[:2]
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    middle = (random.uniform(0.25, 0.75) * width, random.uniform(0.3, 0.7) * height)
    size = random.uniform(0.05, 0.11) * width
    spot = np.exp(-(((x - middle[0]) / (1.8 * size)) ** 2 + ((y - middle[1]) / size) ** 2))
    return _pixels(picture + random.uniform(110, 200) * spot[..., None])


def _motion(picture: Pixels, random: Random) -> Pixels:
    length = random.randrange(3, 7)
    kernel = np.zeros((length, length), np.float32)
    cv2.line(kernel, (0, random.randrange(length)), (length - 1, random.randrange(length)), 1.0)
    return _pixels(cv2.filter2D(picture, -1, kernel / kernel.sum()))


def _photocopy(picture: Pixels, random: Random) -> Pixels:
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    steep = _pixels((grey - 128) * random.uniform(1.3, 1.9) + random.uniform(110, 150))
    return np.repeat(steep[..., None], 3, axis=2)


def _dim(picture: Pixels, random: Random) -> Pixels:
    return _pixels(picture * random.uniform(0.3, 0.5))


def _pixels(values: NDArray[Any]) -> Pixels:
    clipped: Pixels = np.clip(values, 0, 255).astype(np.uint8)
    return clipped


def _noise(picture: Pixels, sigma: float, random: Random) -> Pixels:
    grain = np.random.default_rng(random.randrange(2**31)).normal(0, sigma, picture.shape)
    return _pixels(picture + grain)


def _jpeg(picture: Pixels, quality: int) -> Pixels:
    with BytesIO() as file:
        Image.fromarray(picture).save(file, "JPEG", quality=quality)
        return np.asarray(Image.open(file).convert("RGB"))


def negative(seed: int) -> tuple[str, Pixels]:
    """A picture that is no KTP, and what it is."""
    kinds: list[tuple[str, Any]] = [
        ("blank", _blank), ("noise", _static), ("receipt", _receipt), ("library card", _library_card),
        ("portrait", _portrait), ("passport", _passport),
    ]  # fmt: skip
    name, draw = kinds[seed % len(kinds)]
    random = Random(seed)
    return name, _jpeg(np.asarray(draw(random)), 85)


def _blank(random: Random) -> Image.Image:
    return Image.new("RGB", (1000, 640), (random.randrange(256), random.randrange(256), random.randrange(256)))


def _static(random: Random) -> Image.Image:
    grain = np.random.default_rng(random.randrange(2**31)).integers(0, 256, (480, 640, 3), np.uint8)
    return Image.fromarray(grain)


def _portrait(random: Random) -> Image.Image:
    image = Image.new("RGB", (480, 640), random.choice([(196, 40, 44), (44, 78, 190)]))
    draw = ImageDraw.Draw(image)
    draw.ellipse((60, 420, 420, 1000), fill=(60, 62, 70))
    draw.ellipse((150, 120, 330, 400), fill=(128, 118, 110))
    return image


def _page(size: tuple[int, int], title: str, lines: list[str], colour: tuple[int, int, int]) -> Image.Image:
    image = Image.new("RGB", size, colour)
    draw = ImageDraw.Draw(image)
    draw.text((size[0] / 2, 50), title, fill=(20, 20, 20), font=font(tuple(BOLD_FONTS), 34), anchor="mm")
    for row, line in enumerate(lines):
        draw.text((60, 110 + row * 44), line, fill=(20, 20, 20), font=font(tuple(TEXT_FONTS), 26))
    return image


def _receipt(random: Random) -> Image.Image:
    goods = ["BERAS 5KG", "GULA PASIR", "MINYAK GORENG", "TELUR 1KG", "KOPI BUBUK", "TEH CELUP"]
    lines = [f"{name}   {random.randrange(1, 4)} x {random.randrange(9, 99)}.000" for name in goods]
    lines += [f"TOTAL   {random.randrange(100, 900)}.000", "Alamat : JL. PASAR BARU NO. 5", "Terima kasih"]
    return _page((560, 760), "TOKO SPECIMEN", lines, (245, 244, 240))


def _library_card(random: Random) -> Image.Image:
    card = make_card(random.randrange(10**6)).fields
    lines = [
        f"No. Anggota : {random.randrange(10**7, 10**8)}",
        f"Nama : {card['nama']}",
        f"Alamat : {card['alamat.name']}",
        f"Pekerjaan : {card['pekerjaan']}",
        f"Berlaku Hingga : 31-12-{random.randrange(2024, 2030)}",
    ]
    return _page((1000, 560), "KARTU ANGGOTA PERPUSTAKAAN SPECIMEN", lines, (240, 228, 200))


def _passport(random: Random) -> Image.Image:
    card = make_card(random.randrange(10**6)).fields
    name = card["nama"].replace(" ", "<").replace(".", "").replace(",", "")
    lines = [
        "Jenis / Type   P      Kode Negara / Country Code   IDN",
        f"Nama Lengkap / Full Name   {card['nama']}",
        "Kewarganegaraan / Nationality   INDONESIA",
        f"Tempat Lahir / Place of Birth   {card['tempat_lahir']}",
        f"Jenis Kelamin / Sex   {card['jenis_kelamin'][0]}",
        f"P<IDN{name[:30]:<<36}",
        f"X{random.randrange(10**6):06}<0IDN8508175M3001019<<<<<<<<<<<<<<06",
    ]
    return _page((1200, 760), "PASPOR SPECIMEN REPUBLIK INDONESIA", lines, (214, 226, 214))
