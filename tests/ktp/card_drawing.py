"""Draws a specimen card as a flat picture: the layout of the front of a KTP, a silhouette, SPECIMEN across it."""

import math
from functools import cache
from random import Random

from PIL import Image, ImageDraw, ImageFont

from tests.ktp.cards import SpecimenCard

WIDTH_MM, HEIGHT_MM = 85.6, 53.98
LABEL_X, INDENTED_X, COLON_X, VALUE_X = 2.6, 4.8, 24.0, 25.6
PORTRAIT = (65.5, 11.5, 82.5, 34.5)
_FIRST_ROW, _LAST_ROW, _ROW_PITCH = 16.2, 51.8, 2.78
_MAX_VALUE_MM = 38.0  # a longer value wraps

# In order of preference: like the face on cards first. PIL looks them up where the system keeps its fonts.
TEXT_FONTS = ["LiberationSans-Regular.ttf", "arial.ttf", "DejaVuSansCondensed.ttf"]
BOLD_FONTS = ["LiberationSans-Bold.ttf", "arialbd.ttf", "DejaVuSansCondensed-Bold.ttf"]
DIGIT_FONTS = ["OCRA.ttf"]  # Debian: fonts-ocr-a

_ROWS = [
    ("Nama", LABEL_X, "nama"),
    ("Tempat/Tgl Lahir", LABEL_X, "birth"),
    ("Jenis Kelamin", LABEL_X, "jenis_kelamin"),
    ("Alamat", LABEL_X, "alamat.name"),
    ("RT/RW", INDENTED_X, "alamat.rt_rw"),
    ("Kel/Desa", INDENTED_X, "alamat.kel_desa"),
    ("Kecamatan", INDENTED_X, "alamat.kecamatan"),
    ("Agama", LABEL_X, "agama"),
    ("Status Perkawinan", LABEL_X, "status_perkawinan"),
    ("Pekerjaan", LABEL_X, "pekerjaan"),
    ("Kewarganegaraan", LABEL_X, "kewarganegaraan"),
    ("Berlaku Hingga", LABEL_X, "berlaku_hingga"),
]


@cache
def font(names: tuple[str, ...], size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    for name in names:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


@cache
def digits_are_ocr_a() -> bool:
    """False: no OCR-A is installed, and the digits of the NIK are drawn as seven segments."""
    return isinstance(font(tuple(DIGIT_FONTS), 20), ImageFont.FreeTypeFont) and (
        font(tuple(DIGIT_FONTS), 20).getname()[0] or ""  # type: ignore[union-attr]
    ).startswith("OCR")


def draw_card(card: SpecimenCard, width: int = 1400) -> Image.Image:
    return CardDrawing(card, width).image


class CardDrawing:
    """`characters` has the boxes (left, top, right, bottom) of the printed characters of every field."""

    def __init__(self, card: SpecimenCard, width: int = 1400, with_values: bool = True) -> None:
        self._card, self._with_values = card, with_values
        self.characters: dict[str, list[tuple[float, float, float, float]]] = {}
        self._scale = width / WIDTH_MM
        self._random = Random(card.seed)
        size = (width, round(HEIGHT_MM * self._scale))
        self.image = _paper(size, self._random)
        self._draw = ImageDraw.Draw(self.image)
        self._header()
        self._draw_rows()
        self._portrait()
        self._specimen()

    def _px(self, millimetres: float) -> int:
        return round(millimetres * self._scale)

    def _text(self, x: float, y: float, text: str, size: float, names: list[str], anchor: str = "lm") -> None:
        where = (self._px(x), self._px(y))
        self._draw.text(where, text, fill=(22, 24, 30), font=font(tuple(names), self._px(size)), anchor=anchor)

    def _value(self, x: float, y: float, text: str, size: float, names: list[str], fields: list[str]) -> None:
        """`fields` has the field of every character; x is the left end."""
        face, left, middle, half = font(tuple(names), self._px(size)), self._px(x), self._px(y), self._px(size * 0.36)
        for place, (character, field) in enumerate(zip(text, fields, strict=True)):
            begin, end = (left + face.getlength(text[:upto]) for upto in (place, place + 1))
            if character != " ":
                self.characters.setdefault(field, []).append((begin, middle - half, end, middle + half))
        if self._with_values:
            self._text(x, y, text, size, names)

    def _header(self) -> None:
        fields = self._card.fields
        for field, y in (("provinsi", 3.6), ("kabupaten_kota", 7.0)):
            wide = font(tuple(BOLD_FONTS), self._px(3.3)).getlength(fields[field]) / self._scale
            self._value((WIDTH_MM - wide) / 2, y, fields[field], 3.3, BOLD_FONTS, [field] * len(fields[field]))
        self._text(LABEL_X, 11.8, "NIK", 3.6, BOLD_FONTS)
        self._text(18.0, 11.8, ":", 3.6, BOLD_FONTS)
        if digits_are_ocr_a():
            self._value(20.0, 11.8, fields["nik"], 3.7, DIGIT_FONTS, ["nik"] * 16)
        elif self._with_values:
            self._seven_segments(20.0, 11.8, fields["nik"])

    def _draw_rows(self) -> None:
        fields = {**self._card.fields}
        fields["birth"] = f"{fields['tempat_lahir']}, {fields['tgl_lahir']}"
        y = _FIRST_ROW
        num_lines = sum(len(self._wrapped(fields[name])) for _, _, name in _ROWS)
        pitch = min(_ROW_PITCH, (_LAST_ROW - _FIRST_ROW) / (num_lines - 1))
        for label, x, name in _ROWS:
            self._text(x, y, label, 2.45, TEXT_FONTS)
            self._text(COLON_X, y, ":", 2.45, TEXT_FONTS)
            owners = [name] * len(fields[name])
            if name == "birth":
                owners = ["tempat_lahir"] * (len(fields[name]) - 10) + ["tgl_lahir"] * 10
            for line in self._wrapped(fields[name]):
                self._value(VALUE_X, y, line, 2.45, TEXT_FONTS, owners[: len(line)])
                owners = owners[len(line) + 1 :]
                y += pitch
            if name == "jenis_kelamin":
                before = "Gol. Darah : "
                self._text(45.5, y - pitch, before, 2.45, TEXT_FONTS)
                x = 45.5 + font(tuple(TEXT_FONTS), self._px(2.45)).getlength(before) / self._scale
                self._value(
                    x, y - pitch, fields["gol_darah"], 2.45, TEXT_FONTS, ["gol_darah"] * len(fields["gol_darah"])
                )

    def _wrapped(self, value: str) -> list[str]:
        measure = font(tuple(TEXT_FONTS), self._px(2.45))
        lines = [""]
        for word in value.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and measure.getlength(longer) > self._px(_MAX_VALUE_MM):
                lines.append(word)
            else:
                lines[-1] = longer
        return lines

    def _portrait(self) -> None:
        left, top, right, bottom = (self._px(side) for side in PORTRAIT)
        colour = (196, 40, 44) if self._card.red_portrait else (44, 78, 190)
        self._draw.rectangle((left, top, right, bottom), fill=colour)
        middle, wide, high = (left + right) / 2, right - left, bottom - top
        head = (middle - wide * 0.21, top + high * 0.16, middle + wide * 0.21, top + high * 0.6)
        self._draw.ellipse(
            (middle - wide * 0.42, top + high * 0.62, middle + wide * 0.42, bottom + high), fill=(60, 62, 70)
        )
        self._draw.rectangle((left, bottom, right, bottom + high), fill=self.image.getpixel((left - 3, bottom)))
        self._draw.ellipse(head, fill=(128, 118, 110))
        self._text((PORTRAIT[0] + PORTRAIT[2]) / 2, 31.5, "SPECIMEN", 2.4, BOLD_FONTS, "mm")
        self._text(74, 38, self._card.town[:18], 2.2, TEXT_FONTS, "mm")
        self._text(74, 40.8, f"{self._card.issued:%d-%m-%Y}", 2.2, TEXT_FONTS, "mm")
        curve = [
            (self._px(68 + t * 0.3), self._px(45 + 1.8 * math.sin(t * 0.9 + self._random.random()) * math.cos(t / 5)))
            for t in range(40)
        ]
        self._draw.line(curve, fill=(30, 30, 60), width=max(1, self._px(0.2)))

    def _specimen(self) -> None:
        """Across the card, so pale that it hides nothing."""
        mark = Image.new("L", self.image.size, 0)
        size = self._px(11)
        ImageDraw.Draw(mark).text(
            (mark.width * 0.42, mark.height * 0.6), "SPECIMEN", fill=34, font=font(tuple(BOLD_FONTS), size), anchor="mm"
        )
        self.image.paste((120, 30, 40), mask=mark.rotate(24))

    def _seven_segments(self, x: float, y: float, digits: str) -> None:
        segments = {"0": "abcdef", "1": "bc", "2": "abged", "3": "abgcd", "4": "fgbc", "5": "afgcd"}
        segments |= {"6": "afgecd", "7": "abc", "8": "abcdefg", "9": "abcdfg"}
        wide, high, pitch = 1.5, 2.9, 2.42
        top, middle, low = y - high / 2, y, y + high / 2
        for place, digit in enumerate(digits):
            left, right = x + place * pitch, x + place * pitch + wide
            ends = {"a": (left, top, right, top), "b": (right, top, right, middle), "c": (right, middle, right, low)}
            ends |= {"d": (left, low, right, low), "e": (left, middle, left, low), "f": (left, top, left, middle)}
            ends["g"] = (left, middle, right, middle)
            for segment in segments[digit]:
                line = [self._px(side) for side in ends[segment]]
                self._draw.line(line, fill=(22, 24, 30), width=self._px(0.38), joint="curve")


def _paper(size: tuple[int, int], random: Random) -> Image.Image:
    """Pale blue with the fine waves of a security print."""
    image = Image.linear_gradient("L").resize(size)
    paper = Image.composite(Image.new("RGB", size, (176, 211, 232)), Image.new("RGB", size, (206, 228, 238)), image)
    draw = ImageDraw.Draw(paper)
    phase, pitch = random.random() * 6, size[1] / 26
    for row in range(30):
        wave = [
            (x, row * pitch + pitch * 1.4 * math.sin(x / size[0] * 9 + phase + row / 5)) for x in range(0, size[0], 12)
        ]
        draw.line(wave, fill=(158, 196, 222) if row % 2 else (188, 208, 214), width=max(1, size[0] // 700))
    return paper
