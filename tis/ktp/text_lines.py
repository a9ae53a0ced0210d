"""A line of text as an OCR engine found it, and the geometry of a few of them."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

Point = tuple[float, float]
Quad = tuple[Point, Point, Point, Point]  # top left, top right, bottom right, bottom left, as the text runs


@dataclass(frozen=True)
class TextLine:
    """`confidences` and `signs` have one entry per character, or none where the engine gives none.

    A sign is how sure it is that a blank or a full stop stands before the character, or none does.
    """

    quad: Quad
    text: str
    score: float
    confidences: tuple[float, ...] = ()
    signs: tuple[float, ...] = ()

    @cached_property
    def left(self) -> Point:
        """The middle of the left edge, where the text begins."""
        return _middle(self.quad[0], self.quad[3])

    @cached_property
    def right(self) -> Point:
        return _middle(self.quad[1], self.quad[2])

    @property
    def height(self) -> float:
        return math.dist(_middle(self.quad[0], self.quad[1]), _middle(self.quad[3], self.quad[2]))

    @property
    def width(self) -> float:
        return math.dist(self.left, self.right)

    @property
    def angle(self) -> float:
        """Of the direction of reading, in radians; pictures have y downwards."""
        return math.atan2(self.right[1] - self.left[1], self.right[0] - self.left[0])

    def cut(self, begin: int, end: int | None = None) -> "TextLine":
        """Some of the characters, with the part of the box that they take if all are equally wide."""
        length = max(1, len(self.text))
        end = length if end is None else end
        top_left, top_right, bottom_right, bottom_left = self.quad
        first, last = begin / length, end / length
        quad = (
            _between(top_left, top_right, first),
            _between(top_left, top_right, last),
            _between(bottom_left, bottom_right, last),
            _between(bottom_left, bottom_right, first),
        )
        return TextLine(quad, self.text[begin:end], self.score, self.confidences[begin:end], self.signs[begin:end])


def _middle(one: Point, other: Point) -> Point:
    return _between(one, other, 0.5)


def _between(one: Point, other: Point, share: float) -> Point:
    return one[0] + (other[0] - one[0]) * share, one[1] + (other[1] - one[1]) * share


def turned(line: TextLine, radians: float) -> TextLine:
    """In a picture that is turned about its origin."""
    cosine, sine = math.cos(radians), math.sin(radians)
    a, b, c, d = ((x * cosine - y * sine, x * sine + y * cosine) for x, y in line.quad)
    return replace(line, quad=(a, b, c, d))


def union(first: Quad, *others: Quad) -> Quad:
    """A box around boxes that lie below each other on one card."""
    quads = [first, *others]
    lefts, rights = min(q[0][0] for q in quads), max(q[1][0] for q in quads)
    top, bottom = min(min(q[0][1], q[1][1]) for q in quads), max(max(q[2][1], q[3][1]) for q in quads)
    if not others:
        return first
    return (lefts, top), (rights, top), (rights, bottom), (lefts, bottom)
