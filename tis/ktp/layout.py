"""Finds labels among text lines and gives every row of the card the lines that hold its value.

Works on one picture whose text runs about left to right; angles may differ over the card, as in a photo from the side.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import median

from tis.ktp.lexicons import ROWS, WRAPPING, LabelMatch, find_label
from tis.ktp.regions import letters_of
from tis.ktp.row_assignment import ValueLine, assign_rows
from tis.ktp.slope_field import SlopeField
from tis.ktp.text_lines import Quad, TextLine, turned

MAX_LINES = 200
_MIN_PIXELS = 2.0
_MIN_ROWS, _PLACE_MM = 4, 34.0  # that tell where the column of values is; width of a value's place
_MAX_ROWS = 40  # lines of values; a card has up to 18
# On the card, in millimetres from the left ends of the labels; indented labels start 2.2 further right.
_VALUES_MM, _PORTRAIT_MM, _INDENT_MM = 23.0, 58.0, 2.2
_FAR_MM, _MAX_BEGIN_MM = 35.0, 47.0
_MAX_GAP, _MAX_LATE, _MAX_CUT = 1.6, 1.5, 0.35  # heights of a line
_INDENTED = {"alamat.rt_rw", "alamat.kel_desa", "alamat.kecamatan"}
_BLOOD = re.compile(r"[GC6][o0]l\s?[.,:]?\s?D[ao]r\w*", re.IGNORECASE)
_NIK_LIKE = re.compile(r"[:\s]*[0-9OQDILZSBG][0-9OQDILZSBG ]{13,19}$", re.IGNORECASE)


@dataclass(frozen=True)
class Label:
    row: str
    line: TextLine
    ratio: float


@dataclass(frozen=True)
class CardLayout:
    """Value lines by row, in the order of reading; header lines from the top."""

    labels: dict[str, Label]
    values: dict[str, list[TextLine]]
    blood_group: TextLine | None
    header: list[TextLine]
    incomplete: frozenset[str] = frozenset()  # rows with room for text that was not read, in front or below
    cut: frozenset[str] = frozenset()  # rows whose first letter is perhaps outside of their box
    places: tuple[Quad, ...] = ()  # where values stand that no box was found for
    is_family_card: bool = False  # has the labels of a KTP, too, and the NIKs of several people

    @property
    def is_card(self) -> bool:
        """A library card has a name, an address and a date, too."""
        if self.is_family_card:
            return False
        names = {"nik", "nama"} & self.labels.keys()
        nik = any(_NIK_LIKE.match(line.text) for line in self.values.get("nik", []))
        return (len(self.labels) >= 5 and bool(names) and (nik or "nik" in self.labels)) or (
            nik and len(self.labels) >= 3
        )


EMPTY_LAYOUT = CardLayout({}, {}, None, [])


@dataclass(frozen=True)
class _Piece:
    line: TextLine
    label: LabelMatch | None = None
    row: str | None = None  # of a value that was one line with its label

    def turned(self, radians: float) -> "_Piece":
        return _Piece(turned(self.line, radians), self.label, self.row)


@dataclass(frozen=True)
class _Placed:
    """A line and where its row meets the column of labels."""

    line: TextLine
    x: float
    y: float


def orientation_score(lines: Sequence[TextLine]) -> float:
    """How surely the labels were read. Upside-down text gives labels, too, but weak ones: about 0.8."""
    return sum(max(0.0, line.score - 0.8) for line in lines if find_label(line.text) is not None)


def lay_out(lines: Sequence[TextLine]) -> CardLayout:
    visible = [line for line in lines[:MAX_LINES] if min(line.width, line.height) >= _MIN_PIXELS]
    pieces, blood_group = _split(visible)
    labels = [piece.line for piece in pieces if piece.label is not None]
    if not labels:
        nik = [piece.line for piece in pieces if _NIK_LIKE.match(piece.line.text)]
        return CardLayout({}, {"nik": nik} if nik else {}, None, [])
    angle = median(line.angle for line in labels)
    return _Rows(
        [piece.turned(-angle) for piece in pieces],
        turned(blood_group, -angle) if blood_group else None,
        {turned(piece.line, -angle): piece.line for piece in pieces},
        blood_group,
        angle,
    ).layout(_is_family_card(visible))


def _is_family_card(lines: Sequence[TextLine]) -> bool:
    niks = {letters_of(line.text) for line in lines if _NIK_LIKE.match(line.text)}
    titled = any(title in letters_of(line.text) for line in lines for title in ("KARTUKELUARGA", "KEPALAKELUARGA"))
    return titled or len(niks) >= 2


def _split(lines: Sequence[TextLine]) -> tuple[list[_Piece], TextLine | None]:
    """Takes labels off their values, and the blood group off the row that it shares."""
    found = []
    blood_group = None
    for whole in lines:
        line = whole
        if (blood := _BLOOD.search(line.text)) is not None:
            blood_group, line = line.cut(blood.start()), line.cut(0, blood.start())
            if not line.text.strip():
                continue
        match = find_label(line.text)
        if match is None:
            found.append(_Piece(line))
            continue
        found.append(_Piece(line.cut(0, match.length), match))
        if re.search(r"\w|-", line.text[match.length :]):
            found.append(_Piece(line.cut(match.length), row=match.row))
    return found, blood_group


class _Rows:
    """All coordinates are of a picture whose labels run horizontally."""

    def __init__(
        self,
        pieces: list[_Piece],
        blood_group: TextLine | None,
        originals: dict[TextLine, TextLine],
        original_blood: TextLine | None,
        angle: float,
    ) -> None:
        self._angle = angle  # by which the picture was turned back
        self._originals = originals
        self._blood, self._original_blood = blood_group, original_blood
        self._slope = SlopeField([piece.line for piece in pieces])
        self._labels = self._best_labels(pieces)
        self._values = [piece.line for piece in pieces if piece.label is None]
        self._beside_labels = {piece.line for piece in pieces if piece.row in self._labels}
        self._left = median(label.line.left[0] for label in self._labels.values())
        placed = {row: self._place(label.line) for row, label in self._labels.items()}
        self._label_y = {row: place.y for row, place in placed.items()}
        heights = [label.line.height for row, label in self._labels.items() if row != "nik"]
        self._text_height = median(heights) if heights else median(x.line.height for x in self._labels.values())
        self._pitch = self._row_pitch()

    def _best_labels(self, pieces: list[_Piece]) -> dict[str, Label]:
        """One line per label, in the order of the card, in one column: a receipt beside the card has labels, too."""
        found = [Label(p.label.row, p.line, p.label.ratio) for p in pieces if p.label is not None]
        column = median(label.line.left[0] for label in found)
        width = median(label.line.height for label in found) * 6
        near = [label for label in found if abs(label.line.left[0] - column) <= width or len(found) < 4]
        # The heaviest chain of labels from the top, each further down the card than the one before.
        chains: list[tuple[float, list[Label]]] = []
        for label in sorted(near or found, key=lambda label: label.line.left[1]):
            above = [chain for chain in chains if ROWS.index(chain[1][-1].row) < ROWS.index(label.row)]
            weight, chain = max(above, key=lambda chain: chain[0], default=(0.0, []))
            chains.append((weight + label.ratio * label.line.score + 0.01, [*chain, label]))
        return {label.row: label for label in max(chains, key=lambda chain: chain[0])[1]}

    def _place(self, line: TextLine) -> _Placed:
        """Follows the direction of the text back to the labels."""
        x, y = line.left
        distance = x - self._left
        slope = (self._slope.at(x, y) + self._slope.at(self._left, y)) / 2
        return _Placed(line, x, y - slope * distance)

    def _row_pitch(self) -> float:
        rows = sorted((ROWS.index(row), y) for row, y in self._label_y.items() if row != "nik")
        steps = [(below - y) / (j - i) for (i, y), (j, below) in zip(rows, rows[1:], strict=False)]
        return median(steps) if steps and median(steps) > 0 else self._text_height * 1.3

    def layout(self, is_family_card: bool) -> CardLayout:
        placed = [self._place(line) for line in self._values if not self._is_foreign(line)]
        rows = self._rows_of([place for place in placed if self._in_value_column(place)])
        values = self._assign(rows)
        top = min(self._label_y.values())
        if "nik" not in values and (nik := self._nik_anywhere(placed)):
            values["nik"] = [nik]
        nik_y = self._label_y.get("nik", self._place(values["nik"][0]).y if values.get("nik") else top - self._pitch)
        header = [place for place in placed if place.y < nik_y - self._pitch * 0.7 and not self._is_nik(place)]
        header.sort(key=lambda place: place.y)
        blood = self._original_blood
        if blood is not None and self._blood is not None and not re.search(r"[:.]\s*\S+\s*$", blood.text):
            blood = self._beside(self._blood, placed) or blood
        return CardLayout(
            {row: Label(row, self._originals[label.line], label.ratio) for row, label in self._labels.items()},
            {row: [self._originals[line] for line in lines] for row, lines in values.items()},
            blood,
            [self._originals[place.line] for place in header],
            frozenset(row for row in values if self._has_room(row, values[row])) | self._late(values),
            self._cut(values),
            self._places(values),
            is_family_card,
        )

    def _has_room(self, row: str, lines: list[TextLine]) -> bool:
        """The next label is further below than these lines reach."""
        if row not in WRAPPING or row not in self._label_y:
            return False
        following = ROWS[ROWS.index(row) + 1] if row != ROWS[-1] else None
        if following not in self._label_y:
            return False
        last = max(self._place(line).y for line in lines)
        return self._label_y[following] - last > 1.6 * self._pitch

    def _late(self, values: dict[str, list[TextLine]]) -> frozenset[str]:
        """Rows whose value begins behind the column of values."""
        behind = self._behind_column(values, min_rows=5)
        without_colon = {row for row in behind if not values[row][0].text.lstrip().startswith(":")}
        return frozenset(row for row in without_colon if behind[row] > _MAX_LATE)

    def _cut(self, values: dict[str, list[TextLine]]) -> frozenset[str]:
        """Rows whose box begins about a letter behind the column."""
        plain = {row: lines for row, lines in values.items() if not lines[0].text.lstrip().startswith(":")}
        behind = self._behind_column(plain, min_rows=4)
        return frozenset(row for row, away in behind.items() if away > _MAX_CUT)

    def _behind_column(self, values: dict[str, list[TextLine]], min_rows: int) -> dict[str, float]:
        """By row, in heights of text; none where too few rows tell where the column is."""
        starts, column = self._column(values)
        if len(starts) < min_rows:
            return {}
        return {row: (x - column(y)) / self._text_height for row, (y, x) in starts.items()}

    def _column(
        self, values: dict[str, list[TextLine]]
    ) -> tuple[dict[str, tuple[float, float]], Callable[[float], float]]:
        """Where the values begin, as y and x by row, and the x of the column by y."""
        starts = {
            row: (lines[0].left[1], lines[0].left[0])
            for row, lines in values.items()
            if row != "nik" and row in self._label_y and lines[0] not in self._beside_labels
        }
        points = sorted(starts.values())
        slants = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] - a[0] > self._pitch * 0.5]
        slant = median(slants) if slants else 0.0
        begin = median(x - slant * y for y, x in points) if points else 0.0
        return starts, lambda y: begin + slant * y

    def _places(self, values: dict[str, list[TextLine]]) -> tuple[Quad, ...]:
        """Beside labels without a value, and halfway between the rows above and below."""
        starts, column = self._column(values)
        if len(starts) < _MIN_ROWS:
            return ()
        known = {**{row: self._place(lines[0]).y for row, lines in values.items()}, **self._label_y}
        found = []
        for above, row, below in zip(ROWS, ROWS[1:], (*ROWS[2:], ""), strict=False):
            y = known.get(row)
            if y is None and above in known and below in known and known[below] - known[above] < 2.5 * self._pitch:
                y = (known[above] + known[below]) / 2
            if row not in values and y is not None:
                found.append(self._quad_at(column(y), y))
        return tuple(found)

    def _quad_at(self, x: float, row_y: float) -> Quad:
        """Of the original picture; `row_y` is that of the row at the column of labels."""
        slope = (self._slope.at(x, row_y) + self._slope.at(self._left, row_y)) / 2
        y, wide, half = row_y + slope * (x - self._left), _PLACE_MM * self._millimetre, self._text_height * 0.6
        fall = self._slope.at(x, y) * wide
        quad = (x, y - half), (x + wide, y + fall - half), (x + wide, y + fall + half), (x, y + half)
        return turned(TextLine(quad, "", 0.0), self._angle).quad

    def _is_foreign(self, line: TextLine) -> bool:
        """Text of another direction or far larger, and the mark across cards that are shown as examples."""
        if line.text.strip(" :") == "SPECIMEN":
            return True
        x, y = line.left
        tilted = abs(math.tan(line.angle) - self._slope.at(x, y)) > 0.2 and line.width > 3 * line.height
        return tilted or line.height > 2.6 * self._text_height or math.cos(line.angle) < 0

    @cached_property
    def _millimetre(self) -> float:
        """From the columns of labels and values, else from the height of text."""
        gaps = []
        for row, label in self._labels.items():
            indent = _INDENT_MM if row in _INDENTED else 0.0
            near = [
                line.left[0] - label.line.left[0]
                for line in self._values
                if line not in self._beside_labels
                and abs(self._place(line).y - self._label_y[row]) < self._pitch * 0.4
                and line.left[0] > label.line.right[0]
            ]
            if near and row != "nik":
                gaps.append(min(near) / (_VALUES_MM - 1.0 - indent))
        return max(0.1, median(gaps) if len(gaps) >= 2 else self._text_height / 2.6)

    def _in_value_column(self, place: _Placed) -> bool:
        if place.line in self._beside_labels:
            return True
        mm = self._millimetre
        from_labels = (place.x - self._left) / mm
        return 10.0 < from_labels < _PORTRAIT_MM

    def _rows_of(self, placed: list[_Placed]) -> list[list[_Placed]]:
        """Lines beside each other, from the top."""
        rows: list[list[_Placed]] = []
        for place in sorted(placed, key=lambda place: place.y):
            if rows and place.y - median(other.y for other in rows[-1]) < self._pitch * 0.45:
                rows[-1].append(place)
            else:
                rows.append([place])
        return [self._without_portrait(sorted(row, key=lambda place: place.x)) for row in rows]

    def _without_portrait(self, row: list[_Placed]) -> list[_Placed]:
        """Boxes of one value stand close together; the issuing town is far to the right."""
        mm = self._millimetre
        kept = row[:1]
        for place in row[1:]:
            gap = place.x - kept[-1].line.right[0]
            if gap > _MAX_GAP * place.line.height and place.x - self._left > _FAR_MM * mm:
                break
            kept.append(place)
        return kept

    def _assign(self, rows: list[list[_Placed]]) -> dict[str, list[TextLine]]:
        first = min(self._label_y.values())
        lowest, y = max(self._label_y.items(), key=lambda label: label[1])
        last = y + self._pitch * (len(ROWS) - 1 - ROWS.index(lowest))
        # What begins further to the right is no value: the town and the date of issue.
        far = self._left + _MAX_BEGIN_MM * self._millimetre
        near = [row for row in rows if first - self._pitch * 0.5 < row[0].y < last + self._pitch * 1.5]
        near = [row for row in near if row[0].x < far]
        lines = [ValueLine(row[0].y, " ".join(place.line.text for place in row)) for row in near[:_MAX_ROWS]]
        values: dict[str, list[TextLine]] = {}
        for name, row in zip(assign_rows(lines, self._label_y, self._pitch), near, strict=False):
            if name is not None:
                values.setdefault(name, []).extend(place.line for place in row)
        return values

    def _is_nik(self, place: _Placed) -> bool:
        return bool(_NIK_LIKE.match(place.line.text))

    def _nik_anywhere(self, placed: list[_Placed]) -> TextLine | None:
        found = [place for place in placed if self._is_nik(place)]
        return max(found, key=lambda place: place.line.score).line if found else None

    def _beside(self, blood: TextLine, placed: list[_Placed]) -> TextLine | None:
        y = self._place(blood).y
        found = [
            place
            for place in placed
            if abs(place.y - y) < self._pitch * 0.45
            and blood.right[0] - blood.height < place.x < blood.right[0] + 4 * blood.height
        ]
        return self._originals[min(found, key=lambda place: place.x).line] if found else None
