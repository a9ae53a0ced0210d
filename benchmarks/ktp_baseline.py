"""What identity cards give without `tis.ktp`'s geometry: rapidocr as it comes, and the nearest value beside each label.

The typed parsers and word lists are ours. The angle classifier is off, because it turns NIKs upside down, and all four
directions of the picture are tried; so is the baseline of other projects at its best.
"""

import re
from dataclasses import replace
from statistics import median

import numpy as np

from tis.ktp.field_parsers import PARSERS, UNREAD, FieldReading, clean, split_birth
from tis.ktp.layout import orientation_score
from tis.ktp.lexicons import FIELDS, find_label
from tis.ktp.ocr import Pixels
from tis.ktp.regions import RegionTable
from tis.ktp.slope_field import SlopeField
from tis.ktp.text_lines import TextLine, turned

_UPRIGHT = 0.6
_BLOOD = re.compile(r"Gol\w*\W{0,3}Dar\w*", re.IGNORECASE)


class BareRapidReader:
    """One call of rapidocr for a picture that is upright, up to four for others."""

    def __init__(self) -> None:
        from rapidocr import RapidOCR

        threads = {"EngineConfig.onnxruntime.intra_op_num_threads": 1}
        self._engine = RapidOCR(params={"Global.log_level": "critical", "Global.use_cls": False, **threads})

    def call(self, picture: Pixels) -> list[TextLine]:
        result = self._engine(np.ascontiguousarray(picture[..., ::-1]))
        if result.txts is None:
            return []
        quads = [tuple((float(x), float(y)) for x, y in box) for box in result.boxes]
        return [TextLine(*line) for line in zip(quads, result.txts, result.scores, strict=True)]

    def read(self, picture: Pixels) -> list[TextLine]:
        best: list[TextLine] = []
        for turns in range(4):
            lines = self.call(np.rot90(picture, turns))
            if orientation_score(lines) >= _UPRIGHT and _is_level(lines):
                return lines
            best = max(best, lines, key=orientation_score)
        return best


def _is_level(lines: list[TextLine]) -> bool:
    """rapidocr reads lines that run downwards, too, but then nothing stands beside its label."""
    labels = [line for line in lines if find_label(line.text)]
    return sum(line.width > line.height for line in labels) > len(labels) / 2


def nearest_values(lines: list[TextLine], table: RegionTable) -> dict[str, FieldReading]:
    fields = dict.fromkeys(FIELDS, UNREAD)
    labels, values = [], []
    angle = median(line.angle for line in lines) if lines else 0.0
    for line in (turned(line, -angle) for line in lines):
        if (blood := _BLOOD.search(line.text)) is not None:
            fields["gol_darah"] = PARSERS["gol_darah"](line.cut(blood.start()))
            line = line.cut(0, blood.start())
        match = find_label(line.text)
        if match is not None:
            labels.append((match.row, line))
            rest = line.cut(match.length)
            values += [rest] if re.search(r"\w", rest.text) else []
        elif re.search(r"\w", line.text):
            values.append(line)
    for value in _headers(values):
        _read_header(value, fields, table)
    column = median(line.left[0] for _, line in labels) if labels else 0.0
    labels = [(row, line) for row, line in labels if abs(line.left[0] - column) < 6 * line.height]
    slope = SlopeField([line for _, line in labels] + values)
    for row, lines_of_row in _nearest(labels, values, slope).items():
        text = re.sub(r"^[\s:.]+", "", " ".join(line.text for line in lines_of_row))
        whole = replace(lines_of_row[0], text=text, confidences=())
        if row == "birth":
            place, date = split_birth(whole)
            fields["tempat_lahir"] = PARSERS["tempat_lahir"](place)
            fields["tgl_lahir"] = PARSERS["tgl_lahir"](date) if date else UNREAD
        else:
            fields[row] = PARSERS[row](whole)
    return fields


def _nearest(
    labels: list[tuple[str, TextLine]], values: list[TextLine], slope: SlopeField
) -> dict[str, list[TextLine]]:
    """A value belongs to the last label that is not below it."""
    found: dict[str, list[TextLine]] = {}
    for value in sorted(values, key=lambda line: line.left[1]):
        x, y = value.left
        below = [
            (y - slope.at(x, y) * (x - label.left[0]) - label.left[1], row, label)
            for row, label in labels
            if 0 < x - label.left[0] < 12 * label.height
        ]
        above = [(abs(distance), row, label) for distance, row, label in below if distance > -0.6 * value.height]
        if above:
            distance, row, label = min(above, key=lambda entry: entry[0])
            if distance < 2 * label.height:
                found.setdefault(row, []).append(value)
    return found


def _headers(values: list[TextLine]) -> list[TextLine]:
    return [line for line in values if re.match(r"\W*(PROV|KAB|KOTA|JAKARTA)", line.text.upper())]


def _read_header(line: TextLine, fields: dict[str, FieldReading], table: RegionTable) -> None:
    name = "provinsi" if "PROV" in line.text.upper() else "kabupaten_kota"
    match = table.match_province(line.text) if name == "provinsi" else table.match_regency(clean(line.text))
    if match is not None:
        printed = f"PROVINSI {match.name}" if name == "provinsi" else match.name
        fields[name] = FieldReading(printed, line.score * match.ratio, line.quad)
