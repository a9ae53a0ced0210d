"""Which row of the card each line of values belongs to: the likeliest order by labels, distances and contents.

Labels blur or vanish below glare, and long values push down what follows; a date or a religion say where they stand.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tis.ktp.lexicons import CITIZEN, LIFELONG, MARITAL_STATUSES, OCCUPATIONS, RELIGIONS, ROWS, SEXES, WRAPPING, nearest
from tis.ktp.regions import letters_of

_NIK = re.compile(r"[:\s]*[0-9OQDILZSBG][0-9OQDILZSBG ]{13,19}$", re.IGNORECASE)
_RT_RW = re.compile(r"[0-9OILSB]{3}\s?[/1I|]?\s?[0-9OILSB]{3}$")
_DATE = re.compile(r"[0-9OILSB]{2}\W{0,2}[0-9OILSB]{2}\W{0,2}[0-9OILSB]{4}\W*$")
_LISTS: Mapping[str, tuple[Mapping[str, Iterable[str]], float]] = {
    "jenis_kelamin": (SEXES, 0.75),
    "agama": (RELIGIONS, 0.8),
    "status_perkawinan": (MARITAL_STATUSES, 0.8),
    "kewarganegaraan": (CITIZEN, 0.66),
    "berlaku_hingga": (LIFELONG, 0.75),
    "pekerjaan": (OCCUPATIONS, 0.86),
}
_OF_ANY_TEXT = {"nama", "birth", "alamat.name", "alamat.kel_desa", "alamat.kecamatan", "pekerjaan"}
# What speaks for an order, in points.
_OF_KIND, _OF_OTHER_KIND, _OF_NO_KIND = 3.0, -2.0, -1.3
_BESIDE_LABEL, _PER_PITCH_AWAY, _MAX_AWAY = 2.5, 5.0, 1.1  # of a label, and for each pitch between; in pitches
_EMPTY_ROW, _EMPTY_LABELLED_ROW, _CONTINUED, _NO_ROW = -0.7, -1.0, -0.4, -1.5
_MIN_FILLED, _TOO_EARLY = 22, -1.0  # characters of a full line; points for a line that continues a shorter one
_TOO_CLOSE, _TOO_FAR = -3.0, -0.5  # for each pitch


@dataclass(frozen=True)
class ValueLine:
    """`y` is where its row meets the column of labels."""

    y: float
    text: str


def kinds_of(text: str) -> frozenset[str]:
    """The rows that a text says itself that it belongs to; none for names, places and addresses."""
    plain = text.upper().strip(" :.,")
    if _NIK.match(plain):
        return frozenset({"nik"})
    if _RT_RW.match(plain):
        return frozenset({"alamat.rt_rw"})
    if (dated := _DATE.search(plain)) is not None:
        return frozenset({"birth"} if dated.start() > 3 else {"birth", "berlaku_hingga"})
    if len(letters_of(plain)) < 3:
        return frozenset()
    return frozenset(row for row, (words, ratio) in _LISTS.items() if nearest(plain, words, ratio, margin=0.0))


def assign_rows(lines: Sequence[ValueLine], labels: Mapping[str, float], pitch: float) -> list[str | None]:
    """A row for each of the lines, which come from the top; None for what belongs to no row."""
    order = _Order(lines, labels, pitch)
    return order.best()


class _Order:
    def __init__(self, lines: Sequence[ValueLine], labels: Mapping[str, float], pitch: float) -> None:
        self._lines, self._labels, self._pitch = lines, labels, pitch
        self._kinds = [kinds_of(line.text) for line in lines]
        # Points for leaving the rows above each one empty, added up.
        self._empty = [0.0]
        for row in ROWS:
            self._empty.append(self._empty[-1] + (_EMPTY_LABELLED_ROW if row in labels else _EMPTY_ROW))

    def best(self) -> list[str | None]:
        """The best way to every (line, row), from those that end at a line above."""
        ways: list[list[tuple[float, tuple[int, int] | None]]] = []
        for line in range(len(self._lines)):
            ways.append([self._best_to(line, row, ways) for row in range(len(ROWS))])
        ends = [
            (points + self._empty[-1] - self._empty[row + 1] + _NO_ROW * (len(self._lines) - 1 - line), (line, row))
            for line, found in enumerate(ways)
            for row, (points, _) in enumerate(found)
        ]
        assigned: list[str | None] = [None] * len(self._lines)
        place = max(ends)[1] if ends else None
        while place is not None:
            line, row = place
            assigned[line] = ROWS[row]
            place = ways[line][row][1]
        return assigned

    def _best_to(
        self, line: int, row: int, ways: list[list[tuple[float, tuple[int, int] | None]]]
    ) -> tuple[float, tuple[int, int] | None]:
        first = self._begins(line, row)
        best: tuple[float, tuple[int, int] | None] = (self._empty[row] + _NO_ROW * line + first, None)
        for above in range(max(0, line - 3), line):
            skipped = _NO_ROW * (line - 1 - above)
            for other in range(row + 1):
                if other == row and ROWS[row] not in WRAPPING:
                    continue
                points = ways[above][other][0] + skipped + self._step(above, other, line, row)
                if other == row:
                    points += self._goes_on(above, line, row)
                else:
                    points += first + self._empty[row] - self._empty[other + 1]
                best = max(best, (points, (above, other)), key=lambda way: way[0])
        return best

    def _begins(self, line: int, row: int) -> float:
        points = self._of_kind(line, row)
        if ROWS[row] in self._labels:
            away = abs(self._lines[line].y - self._labels[ROWS[row]]) / self._pitch
            points += _BESIDE_LABEL - _PER_PITCH_AWAY * min(away, _MAX_AWAY)
        return points

    def _goes_on(self, above: int, line: int, row: int) -> float:
        y = self._lines[line].y
        beside = any(
            abs(y - label_y) < 0.4 * self._pitch for label, label_y in self._labels.items() if label != ROWS[row]
        )
        kinds = self._kinds[line]
        said = (_OF_KIND if ROWS[row] in kinds else _OF_OTHER_KIND) if kinds else 0.0
        # A value wraps where its next word has no room.
        filled = len(f"{self._lines[above].text} {self._lines[line].text.split(' ')[0]}")
        wraps = 0.0 if filled >= _MIN_FILLED else _TOO_EARLY
        return _CONTINUED + wraps - _BESIDE_LABEL * beside + said

    def _of_kind(self, line: int, row: int) -> float:
        kinds = self._kinds[line]
        if kinds:
            return _OF_KIND if ROWS[row] in kinds else _OF_OTHER_KIND
        return 0.0 if ROWS[row] in _OF_ANY_TEXT else _OF_NO_KIND

    def _step(self, above: int, other: int, line: int, row: int) -> float:
        """Rows cannot be closer than the pitch; values that wrap, or were not read, put them further apart."""
        distance = (self._lines[line].y - self._lines[above].y) / self._pitch
        expected = max(1, row - other)
        if distance < expected - 0.35:
            return _TOO_CLOSE * (expected - 0.35 - distance)
        is_below_nik = ROWS[other] == "nik"
        return _TOO_FAR * max(0.0, distance - expected - (1.0 if is_below_nik else 0.35))
