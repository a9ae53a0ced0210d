"""Text lines of a picture by rapidocr, with the models of its package. It is imported with the first reader."""

import math
import string
import unicodedata
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from tis.ktp.layout import orientation_score
from tis.ktp.text_lines import Quad, TextLine

Pixels = NDArray[np.uint8]
# What cards print. Accents and full-width signs are read as the plain character.
ALPHABET = string.ascii_letters + string.digits + " .,:'/-()+"
MAX_LINES = 200  # a card has about 35
_MIN_LINE_SCORE = 0.4
_MIN_BLANK = 0.05  # narrow blanks have 0.1 to 0.5, the space between letters of a word under 0.01
_MIN_BLANK_OF_NUMBER = 0.0004  # "NO. 5" in a short line has 0.0007 and more, "NO.5" under 0.0001
# Probabilities between those of good pictures with a sign (blank: 0.1, stop: 0.99) and without (0.003, 0.00005).
_DOUBTFUL_BLANK, _DOUBTFUL_BLANK_OF_NUMBER, _DOUBTFUL_STOP = (0.003, 0.3), (0.0001, 0.1), (0.0002, 0.9)
_DOUBTFUL = 0.5
_UPRIGHT = 0.6  # sum over labels; upright cards have 1.5 and more, upside-down ones under 0.3


class CardTextReader(Protocol):
    def read(self, picture: Pixels) -> list[TextLine]:
        """Lines of an RGB picture, in any order. Blocks; may be called from several threads."""
        ...


class StripReader(CardTextReader, Protocol):
    def read_strip(self, strip: Pixels) -> TextLine | None:
        """The text of an RGB picture that is one line."""
        ...


class RapidTextReader:
    """Constructing it loads 30 MB of weights: make one and keep it."""

    def __init__(self, num_threads: int = 1) -> None:
        from rapidocr import RapidOCR

        parameters = {
            "Global.log_level": "critical",
            "Global.use_cls": False,  # turns the digits of a NIK upside down
            "EngineConfig.onnxruntime.intra_op_num_threads": num_threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
        self._engine: Any = RapidOCR(params=parameters)
        self._detector = self._engine._load_det_model()
        recogniser = self._engine._load_rec_model()
        recogniser.postprocess_op = CardDecoder(recogniser.postprocess_op.character)

    def read(self, picture: Pixels) -> list[TextLine]:
        reversed_channels = np.ascontiguousarray(picture[..., ::-1])
        boxes = self._detector(reversed_channels).boxes
        if boxes is None or len(boxes) == 0:
            return []
        quads = reading_quads(boxes[:MAX_LINES])
        lines = self._lines(reversed_channels, quads)
        if orientation_score(lines) >= _UPRIGHT:
            return lines
        over = self._lines(reversed_channels, [(c, d, a, b) for a, b, c, d in quads])
        return max(lines, over, key=orientation_score)

    def _lines(self, picture: Pixels, quads: list[Quad]) -> list[TextLine]:
        read = self._recognise([strip_of(picture, quad) for quad in quads])
        return [
            TextLine(quad, text, score, confidences, signs)
            for quad, (text, score, confidences, signs) in zip(quads, read, strict=True)
            if score >= _MIN_LINE_SCORE and text.strip()
        ]

    def read_strip(self, strip: Pixels) -> TextLine | None:
        """A picture that is one line, without searching for it."""
        [(text, score, confidences, signs)] = self._recognise([np.ascontiguousarray(strip[..., ::-1])])
        height, width = strip.shape[:2]
        quad = ((0.0, 0.0), (float(width), 0.0), (float(width), float(height)), (0.0, float(height)))
        return TextLine(quad, text, score, confidences, signs) if text.strip() else None

    def _recognise(self, strips: list[Pixels]) -> list[tuple[str, float, tuple[float, ...], tuple[float, ...]]]:
        self._engine.return_word_box = True
        result = self._engine.recognize_txt(strips)
        return [
            (text, float(score), tuple(confidences), tuple(signs))
            for text, score, (confidences, signs) in zip(result.txts, result.scores, result.word_results, strict=True)
        ]


class CardDecoder:
    """Takes the place of rapidocr's: the likeliest characters among those that cards print, and how likely each is.

    The second part of its answer has the confidences and the signs of `TextLine`.
    """

    def __init__(self, characters: list[str]) -> None:
        by_plain: dict[str, list[int]] = {}
        for place, character in enumerate(characters[1:], start=1):  # 0 is CTC's blank
            plain = plain_character(character)
            if plain is not None:
                by_plain.setdefault(plain, []).append(place)
        self.character = characters
        self._plain = ["", *by_plain]
        self._space = self._plain.index(" ")
        self._stop = self._plain.index(".") if "." in self._plain else None
        self._columns = [0, *(place for places in by_plain.values() for place in places)]
        self._begins = np.cumsum([0, 1, *(len(places) for places in by_plain.values())])[:-1]

    def __call__(
        self, probabilities: NDArray[np.float32], return_word_box: bool = False, **_: Any
    ) -> tuple[list[tuple[str, float]], list[tuple[tuple[float, ...], tuple[float, ...]]]]:
        plain = np.add.reduceat(probabilities[:, :, self._columns], self._begins, axis=2)
        lines = [self._line(line) for line in plain]
        texts = [(text, float(np.mean(sure)) if sure else 0.0) for text, sure, _ in lines]
        return texts, [(sure, signs) for _, sure, signs in lines]

    def _line(self, plain: NDArray[np.float32]) -> tuple[str, tuple[float, ...], tuple[float, ...]]:
        best = plain.argmax(axis=1)
        chosen = best != 0
        chosen[1:] &= best[1:] != best[:-1]
        steps = np.flatnonzero(chosen)
        text, sure, signs = "", [], []
        for step, before in zip(steps, [None, *map(int, steps)], strict=False):
            character = self._plain[best[step]]
            blank = 0.0 if before is None else float(plain[before + 1 : step, self._space].max(initial=0.0))
            numbered = text[-1:] == "." and character.isdigit()
            min_blank = _MIN_BLANK_OF_NUMBER if numbered else _MIN_BLANK
            if blank >= min_blank and " " not in (character, text[-1:]):
                text += " "
                sure.append(round(blank, 5))
                doubtful = _DOUBTFUL_BLANK_OF_NUMBER if numbered else _DOUBTFUL_BLANK
                signs.append(_DOUBTFUL if blank < doubtful[1] else 1.0)
            signs.append(self._sign(plain, before, int(step), text, character, blank))
            text += character
            sure.append(min(1.0, round(float(plain[step, best[step]]), 5)))
        return text, tuple(sure), tuple(signs)

    def _sign(
        self, plain: NDArray[np.float32], before: int | None, step: int, text: str, character: str, blank: float
    ) -> float:
        """How sure it is what stands between a character and the one before."""
        if before is None:
            return 1.0
        if self._stop is not None and character != "," and text.rstrip()[-1:] not in (".", ","):
            stop = float(plain[before + 1 : step + 1, self._stop].max())
            if _DOUBTFUL_STOP[0] < stop < _DOUBTFUL_STOP[1]:
                return _DOUBTFUL
        if character == " " or text[-1:] == " ":
            return 1.0 if character != " " or float(plain[step, self._space]) > _DOUBTFUL_BLANK[1] else _DOUBTFUL
        numbered = text[-1:] == "." and character.isdigit()
        low, high = _DOUBTFUL_BLANK_OF_NUMBER if numbered else _DOUBTFUL_BLANK
        return _DOUBTFUL if low < blank < high else 1.0


def plain_character(character: str) -> str | None:
    """None for what no card prints."""
    if len(character) != 1:
        return None
    plain = unicodedata.normalize("NFKD", character)[:1]
    return plain if plain in ALPHABET else None


def reading_quads(boxes: NDArray[np.float32]) -> list[Quad]:
    """Boxes whose corners begin where reading begins, if the text runs to the right or downwards.

    Detectors begin at some corner; a short box does not show in which direction its text runs, but the long ones do.
    """
    quads: list[Quad] = [tuple((float(x), float(y)) for x, y in box) for box in boxes]  # type: ignore[misc]
    direction = _main_direction(quads)
    return [min(_rotations(quad), key=lambda turned: _away(_edge_angle(turned), direction)) for quad in quads]


def _main_direction(quads: list[Quad]) -> float:
    """In radians, from -90 to 90 degrees."""
    edges = [max(((a, b), (a, d)), key=lambda edge: math.dist(*edge)) for a, b, _, d in quads]
    angles = [(math.atan2(end[1] - begin[1], end[0] - begin[0]), math.dist(begin, end)) for begin, end in edges]
    direction = 0.0
    for near in (math.pi, 0.4):  # the second time without text of another direction
        kept = [(angle, length) for angle, length in angles if _away(2 * angle, 2 * direction) <= 2 * near]
        sines = sum(length**2 * math.sin(2 * angle) for angle, length in kept)
        cosines = sum(length**2 * math.cos(2 * angle) for angle, length in kept)
        direction = math.atan2(sines, cosines) / 2
    return direction


def _rotations(quad: Quad) -> list[Quad]:
    a, b, c, d = quad
    return [(a, b, c, d), (b, c, d, a), (c, d, a, b), (d, a, b, c)]


def _edge_angle(quad: Quad) -> float:
    (x, y), (right, below) = quad[:2]
    return math.atan2(below - y, right - x)


def _away(angle: float, other: float) -> float:
    return abs(math.remainder(angle - other, 2 * math.pi))


def strip_of(picture: Pixels, quad: Quad) -> Pixels:
    """The text of a box, upright."""
    a, b, c, d = quad
    width = max(2, round(max(math.dist(a, b), math.dist(d, c))))
    height = max(2, round(max(math.dist(a, d), math.dist(b, c))))
    target = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    view = cv2.getPerspectiveTransform(np.array(quad, np.float32), target)
    return cv2.warpPerspective(
        picture, view, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    ).astype(np.uint8)
