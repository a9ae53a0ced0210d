"""Pictures that are no KTP."""

from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.ktp.card_drawing import BOLD_FONTS, TEXT_FONTS, font
from tests.ktp.card_troubles import as_jpeg
from tests.ktp.cards import make_card


def negative(seed: int) -> tuple[str, NDArray[np.uint8]]:
    """A picture that is no KTP, and what it is."""
    kinds: list[tuple[str, Any]] = [
        ("blank", _blank), ("noise", _static), ("receipt", _receipt), ("library card", _library_card),
        ("portrait", _portrait), ("passport", _passport), ("family card", _family_card), ("chat", _chat),
    ]  # fmt: skip
    name, draw = kinds[seed % len(kinds)]
    random = Random(seed)
    return name, as_jpeg(np.asarray(draw(random)), 85)


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


def _family_card(random: Random) -> Image.Image:
    """Has NIKs, names and most labels of a KTP, in the head of a table."""
    image = _page((1500, 900), "KARTU KELUARGA SPECIMEN", [], (238, 242, 236))
    draw = ImageDraw.Draw(image)
    face = font(tuple(TEXT_FONTS), 22)
    home = make_card(random.randrange(10**6)).fields
    places = [("Nama Kepala Keluarga", "nama"), ("Alamat", "alamat.name"), ("RT/RW", "alamat.rt_rw")]
    places += [("Desa/Kelurahan", "alamat.kel_desa"), ("Kecamatan", "alamat.kecamatan"), ("Provinsi", "provinsi")]
    for row, (label, name) in enumerate(places):
        draw.text((60, 100 + row * 32), label, fill=(20, 20, 20), font=face)
        draw.text((330, 100 + row * 32), f": {home[name]}", fill=(20, 20, 20), font=face)
    columns = [(60, "Nama Lengkap", "nama"), (480, "NIK", "nik"), (740, "Jenis Kelamin", "jenis_kelamin")]
    columns += [(930, "Tempat Lahir", "tempat_lahir"), (1180, "Agama", "agama"), (1300, "Pekerjaan", "pekerjaan")]
    for x, label, _ in columns:
        draw.text((x, 320), label, fill=(20, 20, 20), font=face)
    for row in range(random.randrange(2, 6)):
        member = make_card(random.randrange(10**6)).fields
        for x, _, name in columns:
            draw.text((x, 370 + row * 40), member[name][:22], fill=(20, 20, 20), font=face)
    return image


def _chat(random: Random) -> Image.Image:
    """A screenshot in which somebody asks for the data of a card."""
    card = make_card(random.randrange(10**6)).fields
    lines = ["09:41                                  4G", "Admin: kirim foto KTP ya", "Nama dan alamat sesuai KTP"]
    lines += [
        f"Saya {card['nama'].title()}",
        f"Alamat: {card['alamat.name'].title()}",
        f"NIK {card['nik']}",
        "Terima kasih",
    ]
    return _page((720, 1280), "Obrolan", lines, (236, 229, 221))
