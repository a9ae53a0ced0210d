"""Draws a card of the second style: a face of its own, letters wide or narrow, values a little off their row."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tests.ktp.card_drawing import font
from tests.ktp.cards import SpecimenCard

Pixels = NDArray[np.uint8]
WIDTH_MM, HEIGHT_MM = 85.6, 53.98
# (regular, bold, width of the letters): like Arial, as cards have it, or near to it.
_FACES = [
    ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf", 1.0),
    ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf", 0.92),
    ("LiberationSansNarrow-Regular.ttf", "LiberationSansNarrow-Bold.ttf", 1.12),
    ("DejaVuSansCondensed.ttf", "DejaVuSansCondensed-Bold.ttf", 0.94),
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", 0.86),
]
_DIGITS = ["OCRA.ttf", "OCRA.ttf", "OCRABold.ttf", "OCRACondensed.ttf", "LiberationMono-Bold.ttf"]
_ROWS = [
    ("Nama", 0.0, "nama"),
    ("Tempat/Tgl Lahir", 0.0, "birth"),
    ("Jenis kelamin", 0.0, "jenis_kelamin"),
    ("Alamat", 0.0, "alamat.name"),
    ("RT/RW", 1.0, "alamat.rt_rw"),
    ("Kel/Desa", 1.0, "alamat.kel_desa"),
    ("Kecamatan", 1.0, "alamat.kecamatan"),
    ("Agama", 0.0, "agama"),
    ("Status Perkawinan", 0.0, "status_perkawinan"),
    ("Pekerjaan", 0.0, "pekerjaan"),
    ("Kewarganegaraan", 0.0, "kewarganegaraan"),
    ("Berlaku Hingga", 0.0, "berlaku_hingga"),
]


class SecondCardDrawing:
    """`characters` has the boxes (left, top, right, bottom) of the printed characters of every field."""

    def __init__(self, card: SpecimenCard, width: int = 1500, with_values: bool = True) -> None:
        self._card, self._with_values = card, with_values
        self._chance = np.random.default_rng([card.seed, 2])
        self._scale = width / WIDTH_MM
        self.characters: dict[str, list[tuple[float, float, float, float]]] = {}
        self._regular, self._bold, self._wide = _FACES[self._chance.integers(len(_FACES))]
        self._digits = _DIGITS[self._chance.integers(len(_DIGITS))]
        shade = int(self._chance.integers(10, 60))
        self._ink = (shade, shade, shade + int(self._chance.integers(0, 14)))
        self._size = self._near(2.45, 0.1)
        size = (width, round(HEIGHT_MM * self._scale))
        self.image = Image.fromarray(self._paper(size))
        self._photo()
        self._header()
        self._rows()
        self._mark()

    @property
    def pixels(self) -> Pixels:
        return np.asarray(self.image)

    def _near(self, value: float, spread: float) -> float:
        return float(value + self._chance.uniform(-spread, spread))

    def _px(self, millimetres: float) -> int:
        return round(millimetres * self._scale)

    def _face(self, name: str, size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        return font((name, "DejaVuSans.ttf"), self._px(size))

    def _length(self, text: str, name: str, size: float) -> float:
        """In millimetres."""
        return self._face(name, size).getlength(text) * self._wide / self._scale

    def _print(self, x: float, y: float, text: str, name: str, size: float) -> None:
        """The middle of the left edge is at (x, y)."""
        face = self._face(name, size)
        box = (round(face.getlength(text)) + 8, self._px(size * 1.5))
        stencil = Image.new("L", box, 0)
        ImageDraw.Draw(stencil).text((2, box[1] / 2), text, fill=255, font=face, anchor="lm")
        stencil = stencil.resize((max(1, round(box[0] * self._wide)), box[1]), Image.Resampling.LANCZOS)
        self.image.paste(self._ink, (self._px(x) - 2, self._px(y) - box[1] // 2), stencil)

    def _value(self, x: float, y: float, text: str, owners: list[str], name: str, size: float) -> None:
        half = size * 0.36
        for place, owner in enumerate(owners):
            if text[place] != " ":
                begin, end = (x + self._length(text[:upto], name, size) for upto in (place, place + 1))
                box = tuple(side * self._scale for side in (begin, y - half, end, y + half))
                self.characters.setdefault(owner, []).append(box)  # type: ignore[arg-type]
        if self._with_values:
            self._print(x, y, text, name, size)

    def _header(self) -> None:
        fields, size = self._card.fields, self._near(3.2, 0.15)
        for name, y in (("provinsi", self._near(3.8, 0.3)), ("kabupaten_kota", self._near(7.3, 0.3))):
            wide = self._length(fields[name], self._bold, size)
            self._value((WIDTH_MM - wide) / 2, y, fields[name], [name] * len(fields[name]), self._bold, size)
        y = self._near(11.9, 0.3)
        self._print(self._near(2.7, 0.3), y, "NIK", self._bold, 3.4)
        self._print(self._near(17.2, 0.4), y, ":", self._bold, 3.4)
        self._value(self._near(19.8, 0.5), y, fields["nik"], ["nik"] * 16, self._digits, self._near(3.7, 0.1))

    def _rows(self) -> None:
        fields = {**self._card.fields}
        fields["birth"] = f"{fields['tempat_lahir']}, {fields['tgl_lahir']}"
        num_lines = sum(len(self._wrapped(fields[name])) for _, _, name in _ROWS)
        y = self._near(16.2, 0.4)
        pitch = min(self._near(2.8, 0.08), (51.6 - y) / (num_lines - 1))
        left, colon, column = self._near(2.7, 0.3), self._near(23.8, 0.5), self._near(25.4, 0.4)
        # Cards come printed with their labels; another machine adds the values.
        beside, below = self._near(0, 0.25), self._near(0, 0.2)
        for label, indent, name in _ROWS:
            self._print(left + indent * 2.1, y, label, self._regular, self._size)
            self._print(colon, y, ":", self._regular, self._size)
            owners = [name] * len(fields[name])
            if name == "birth":
                owners = ["tempat_lahir"] * (len(owners) - 10) + ["tgl_lahir"] * 10
            for line in self._wrapped(fields[name]):
                self._value(column + beside, y + below, line, owners[: len(line)], self._regular, self._size)
                owners = owners[len(line) + 1 :]
                y += pitch
            if name == "jenis_kelamin":
                x, blood = self._near(46, 0.8), fields["gol_darah"]
                self._print(x, y - pitch, "Gol. Darah :", self._regular, self._size)
                x += self._length("Gol. Darah : ", self._regular, self._size)
                self._value(x, y - pitch + below, blood, ["gol_darah"] * len(blood), self._regular, self._size)

    def _wrapped(self, value: str) -> list[str]:
        lines = [""]
        for word in value.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self._length(longer, self._regular, self._size) > 37.5:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines

    def _photo(self) -> None:
        """A bust before a backdrop that is lit from the side; town, date and a signature below."""
        left, top, wide, high = self._px(65.0), self._px(12.2), self._px(17.6), self._px(22.6)
        base = np.array((180, 44, 52) if self._card.red_portrait else (58, 92, 196), np.float32)
        light = np.linspace(0.8, 1.2, wide, dtype=np.float32)[None, :, None]
        picture = Image.fromarray(np.clip(np.ones((high, 1, 1), np.float32) * light * base, 0, 255).astype(np.uint8))
        draw = ImageDraw.Draw(picture)
        draw.polygon(
            [(0, high), (wide * 0.2, high * 0.7), (wide * 0.8, high * 0.7), (wide, high)], fill=(235, 235, 238)
        )
        draw.rounded_rectangle((wide * 0.31, high * 0.16, wide * 0.69, high * 0.66), wide * 0.19, fill=(150, 120, 100))
        draw.chord((wide * 0.28, high * 0.1, wide * 0.72, high * 0.5), 180, 360, fill=(34, 30, 30))
        self.image.paste(picture, (left, top))
        for text, y in (("SPECIMEN", 30.6), (self._card.town[:16], 37.4), (f"{self._card.issued:%d-%m-%Y}", 40.2)):
            self._print(73.8 - self._length(text, self._regular, 2.2) / 2, y, text, self._regular, 2.2)
        steps = np.cumsum(self._chance.normal(0, 0.5, 40))
        stroke = [
            (self._px(67 + 0.33 * i), self._px(45.5 + float(np.clip(step, -2, 2)))) for i, step in enumerate(steps)
        ]
        ImageDraw.Draw(self.image).line(stroke, fill=(40, 44, 90), width=max(1, self._px(0.25)), joint="curve")

    def _mark(self) -> None:
        """SPECIMEN in outlines, twice, so pale that it hides nothing."""
        stencil = Image.new("L", self.image.size, 0)
        for x, y in ((0.3, 0.35), (0.62, 0.8)):
            where = (stencil.width * x, stencil.height * y)
            ImageDraw.Draw(stencil).text(
                where, "SPECIMEN", fill=0, font=self._face(self._bold, 8), anchor="mm", stroke_width=2, stroke_fill=40
            )
        self.image.paste((40, 90, 60), mask=stencil)

    def _paper(self, size: tuple[int, int]) -> Pixels:
        """Interfering waves in blue and a rosette, with the grain of a printer."""
        width, height = size
        x, y = np.meshgrid(np.linspace(0, 1, width, dtype=np.float32), np.linspace(0, 0.63, height, dtype=np.float32))
        phase = self._chance.uniform(0, 6)
        waves = np.sin(60 * x + 9 * np.sin(8 * y + phase)) + np.sin(70 * y + 7 * np.sin(9 * x))
        away = np.hypot(x - 0.45, y - 0.34)
        rosette = np.where(away < 0.2, np.sin(120 * away + 8 * np.sin(12 * np.arctan2(y - 0.34, x - 0.45))), 0)
        tint = np.array([self._near(190, 14), self._near(214, 8), self._near(232, 8)], np.float32)
        shade = 3.5 * waves + 4 * rosette + 12 * (y - 0.3) + self._chance.normal(0, 2, (height, width))
        paper = tint + shade[..., None] * np.array([1.3, 1.0, 0.7], np.float32)
        return np.asarray(np.clip(paper, 0, 255), np.uint8)
