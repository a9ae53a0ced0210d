"""Text lines of a picture by rapidocr, with the models of its package. It is imported with the first reader."""

import math
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from tis.ktp.card_decoder import CardDecoder
from tis.ktp.layout import orientation_score
from tis.ktp.text_lines import Quad, TextLine

Pixels = NDArray[np.uint8]
MAX_LINES = 200  # a card has about 35
_MIN_LINE_SCORE = 0.4
# The detector enlarges the shorter side of a picture to 736 pixels, and the recogniser a strip to a height of 48, with
# the other side: without a bound, a line of pixels becomes gigabytes.
_MAX_SIDES, _MAX_STRIP_SIDES = 4, 40  # the longer by the shorter; no line of a card is so long
_UPRIGHT = 0.6  # sum over labels; upright cards have 1.5 and more, upside-down ones under 0.3


class CardTextReader(Protocol):
    def read(self, picture: Pixels) -> list[TextLine]:
        """Lines of an RGB picture, in any order. Blocks; may be called from several threads."""
        ...


class StripReader(CardTextReader, Protocol):
    def read_strips(self, strips: list[Pixels]) -> list[TextLine | None]:
        """The texts of RGB pictures that are one line each."""
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
        reversed_channels = np.ascontiguousarray(broad_enough(picture)[..., ::-1])
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

    def read_strips(self, strips: list[Pixels]) -> list[TextLine | None]:
        read = self._recognise([np.ascontiguousarray(strip[..., ::-1]) for strip in strips])
        return [
            TextLine(_rectangle(strip), text, score, confidences, signs) if text.strip() else None
            for strip, (text, score, confidences, signs) in zip(strips, read, strict=True)
        ]

    def _recognise(self, strips: list[Pixels]) -> list[tuple[str, float, tuple[float, ...], tuple[float, ...]]]:
        self._engine.return_word_box = True
        result = self._engine.recognize_txt([short_enough(strip) for strip in strips])
        return [
            (text, float(score), tuple(confidences), tuple(signs))
            for text, score, (confidences, signs) in zip(result.txts, result.scores, result.word_results, strict=True)
        ]


def broad_enough(picture: Pixels) -> Pixels:
    """With black below or at the right of a thin picture; what stands in it keeps its place."""
    height, width = picture.shape[:2]
    below, right = max(0, -(-width // _MAX_SIDES) - height), max(0, -(-height // _MAX_SIDES) - width)
    return np.pad(picture, ((0, below), (0, right), (0, 0))) if below or right else picture


def short_enough(strip: Pixels) -> Pixels:
    """Squeezed, if it is longer than any line of a card."""
    height, width = strip.shape[:2]
    if width <= _MAX_STRIP_SIDES * height:
        return strip
    return cv2.resize(strip, (_MAX_STRIP_SIDES * height, height), interpolation=cv2.INTER_AREA).astype(np.uint8)


def _rectangle(strip: Pixels) -> Quad:
    height, width = map(float, strip.shape[:2])
    return (0.0, 0.0), (width, 0.0), (width, height), (0.0, height)


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
