"""Finds the card on a picture: by its edges, or by the places of labels that were read."""

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from tis.ktp.card_outline import CARD_RATIO, WHOLE_PICTURE, CardOutline, Pixels
from tis.ktp.layout import CardLayout
from tis.ktp.lexicons import ROWS
from tis.ktp.text_lines import Point, Quad, TextLine

_SIDE = 640  # pixels of the longer side, for edges
_MIN_AREA, _MAX_AREA = 0.05, 0.97  # shares of the picture
_MIN_RATIO, _MAX_RATIO = 1.25, 2.0
_MIN_FILLED = 0.9  # of the quad by its contour
_MIN_LABELS, _MIN_LABEL_SCORE = 6, 0.9
_MIN_OVERLAP = 0.6  # of a contour and the place that the labels give
_MIN_INSIDE = 0.8  # share of the labels that lie in a contour
# On the card, in millimetres. Boxes of detectors begin a little before the text.
_WIDTH, _HEIGHT = 85.60, 53.98
_LABEL_X, _INDENTED_X, _COLON_X, _VALUE_X, _BOX_MARGIN = 2.6, 4.8, 24.0, 25.6, 0.4
_NIK_Y, _FIRST_ROW_Y, _LAST_ROW_Y, _MAX_PITCH = 11.8, 16.2, 51.8, 2.78
_HEADER_Y = (3.6, 7.0)
_INDENTED = {"alamat.rt_rw", "alamat.kel_desa", "alamat.kecamatan"}
_TOLERANCE = 0.03  # of the picture's longer side, for a label out of place


def find_outline(picture: Pixels, layout: CardLayout) -> CardOutline:
    """A contour that agrees with the labels, else where the labels say; without labels the likeliest contour.

    Without labels nobody knows which corner is the upper left one of the print.
    """
    contours = find_contours(picture)
    labels = [label.line for label in layout.labels.values() if label.line.score >= _MIN_LABEL_SCORE]
    if len(labels) < 3:
        return CardOutline(contours[0], "contour") if contours else WHOLE_PICTURE
    lefts = [line.left for line in labels]
    direction = _mean_direction([line.angle for line in labels])
    by_labels = labels_quad(layout, picture.shape[:2]) if len(labels) >= _MIN_LABELS else None
    for contour in contours:
        upright = _beginning_with(contour, direction)
        agrees = by_labels is None or overlap(upright, by_labels) >= _MIN_OVERLAP
        if agrees and sum(_is_inside(point, upright) for point in lefts) >= _MIN_INSIDE * len(lefts):
            return CardOutline(upright, "contour")
    return CardOutline(by_labels, "labels") if by_labels is not None else WHOLE_PICTURE


def find_contours(picture: Pixels) -> list[Quad]:
    """Quads that may be a card, the likeliest first: its edges in grey, in saturation, in blue against yellow."""
    scale = min(1.0, _SIDE / max(picture.shape[:2]))
    size = (max(8, round(picture.shape[1] * scale)), max(8, round(picture.shape[0] * scale)))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    channels = [
        cv2.cvtColor(small, cv2.COLOR_RGB2GRAY),
        cv2.cvtColor(small, cv2.COLOR_RGB2HSV)[..., 1],
        cv2.cvtColor(small, cv2.COLOR_RGB2LAB)[..., 2],
    ]
    found: list[tuple[float, Quad]] = []
    for channel in channels:
        smooth = cv2.medianBlur(np.ascontiguousarray(channel), 7)
        level, _ = cv2.threshold(smooth, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
        for shift in (-25, 0, 25):
            bright = (smooth > level + shift).astype(np.uint8)
            for mask in (bright, 1 - bright):
                found += _quads(mask)
        edges = cv2.dilate(cv2.Canny(smooth, 20, 60), np.ones((3, 3), np.uint8))
        found += _quads((edges == 0).astype(np.uint8))
    found.sort(key=lambda scored: -scored[0])
    return [_scaled(quad, 1 / scale) for _, quad in found[:8]]


def _quads(mask: NDArray[np.uint8]) -> list[tuple[float, Quad]]:
    closed = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    contours, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    picture_area = mask.shape[0] * mask.shape[1]
    found = []
    for contour in sorted(contours, key=cv2.contourArea, reverse=True)[:4]:
        hull = np.asarray(cv2.convexHull(contour), np.int32)
        corners = _four_corners(hull)
        if corners is None:
            continue
        area = cv2.contourArea(corners)
        if not _MIN_AREA * picture_area <= area <= _MAX_AREA * picture_area:
            continue
        filled = min(cv2.contourArea(contour), area) / max(cv2.contourArea(hull), area)
        quad = _upright(corners)
        ratio = _side_ratio(quad)
        if filled >= _MIN_FILLED and _MIN_RATIO <= ratio <= _MAX_RATIO and not _cut_off(corners, mask.shape):
            found.append((filled - abs(ratio - CARD_RATIO) + area / picture_area * 0.2, quad))
    return found


def _four_corners(hull: NDArray[np.int32]) -> NDArray[np.int32] | None:
    length = cv2.arcLength(hull, True)
    for share in (0.02, 0.03, 0.05, 0.07):
        corners = cv2.approxPolyDP(hull, share * length, True)
        if len(corners) == 4 and cv2.isContourConvex(corners):
            return np.asarray(corners, np.int32)
    return None


def _cut_off(corners: NDArray[np.int32], shape: tuple[int, ...]) -> bool:
    """Two and more corners on the rim: the table, or half of a card."""
    xs, ys = corners[:, 0, 0], corners[:, 0, 1]
    on_rim = (xs <= 2) | (ys <= 2) | (xs >= shape[1] - 3) | (ys >= shape[0] - 3)
    return bool(on_rim.sum() >= 2)


def _upright(corners: NDArray[np.int32]) -> Quad:
    """Clockwise, the long sides first."""
    points = [(float(x), float(y)) for x, y in corners[:, 0]]
    if cv2.contourArea(corners, oriented=True) < 0:
        points = points[::-1]
    start = min(range(4), key=lambda i: sum(points[i]))
    points = points[start:] + points[:start]
    across = math.dist(points[0], points[1]) + math.dist(points[3], points[2])
    down = math.dist(points[1], points[2]) + math.dist(points[0], points[3])
    if down > across:
        points = points[1:] + points[:1]
    return points[0], points[1], points[2], points[3]


def _side_ratio(quad: Quad) -> float:
    a, b, c, d = quad
    return (math.dist(a, b) + math.dist(d, c)) / max(1.0, math.dist(b, c) + math.dist(a, d))


def _beginning_with(quad: Quad, direction: float) -> Quad:
    """Turned by half, if the print runs the other way."""
    a, b, c, d = quad
    angle = math.atan2(b[1] - a[1], b[0] - a[0])
    return quad if math.cos(angle - direction) >= 0 else (c, d, a, b)


def labels_quad(layout: CardLayout, shape: tuple[int, int]) -> Quad | None:
    """From where labels, values and header stand on every card to where they were read."""
    on_card, on_picture = _anchors(layout)
    if len(on_card) < _MIN_LABELS:
        return None
    tolerance = _TOLERANCE * max(shape)
    view, kept = cv2.findHomography(np.array(on_card), np.array(on_picture), cv2.RANSAC, tolerance)
    quad = _corners_seen(np.asarray(view, np.float64)) if view is not None and kept.sum() >= _MIN_LABELS else None
    if quad is None:
        # Labels stand in one column: an error in its direction ruins a perspective, hardly a similarity.
        similar, _ = cv2.estimateAffinePartial2D(
            np.array(on_card), np.array(on_picture), method=cv2.RANSAC, ransacReprojThreshold=tolerance
        )
        quad = _corners_seen(np.vstack([similar, [0, 0, 1]])) if similar is not None else None
    return quad


def _corners_seen(view: NDArray[np.float64]) -> Quad | None:
    corners = np.array([[(0, 0), (_WIDTH, 0), (_WIDTH, _HEIGHT), (0, _HEIGHT)]], np.float64)
    seen = cv2.perspectiveTransform(corners, view)[0]
    if not np.isfinite(seen).all() or not cv2.isContourConvex(seen.astype(np.float32)):
        return None
    a, b, c, d = ((float(x), float(y)) for x, y in seen)
    sides = [math.dist(a, b), math.dist(d, c), math.dist(a, d), math.dist(b, c)]
    square = max(sides[:2]) < 1.5 * min(sides[:2]) and max(sides[2:]) < 1.5 * min(sides[2:])
    return (a, b, c, d) if square and _MIN_RATIO * 0.9 <= _side_ratio((a, b, c, d)) <= _MAX_RATIO * 1.1 else None


def _anchors(layout: CardLayout) -> tuple[list[Point], list[Point]]:
    counts = {row: _num_lines(layout.values.get(row, [])) for row in ROWS if row != "nik"}
    pitch = min(_MAX_PITCH, (_LAST_ROW_Y - _FIRST_ROW_Y) / max(1, sum(counts.values()) - 1))
    on_card: list[Point] = []
    on_picture: list[Point] = []
    y = _NIK_Y
    for row in ROWS:
        if row != "nik":
            y = _FIRST_ROW_Y + pitch * sum(counts[above] for above in ROWS[1 : ROWS.index(row)])
        label = layout.labels.get(row)
        if label is not None and label.line.score >= _MIN_LABEL_SCORE:
            on_card.append(((_INDENTED_X if row in _INDENTED else _LABEL_X) - _BOX_MARGIN, y))
            on_picture.append(label.line.left)
        value = next(iter(layout.values.get(row, [])), None)
        if row != "nik" and value is not None and (label is None or value.left != label.line.right):
            on_card.append(((_COLON_X if value.text.startswith(":") else _VALUE_X) - _BOX_MARGIN, y))
            on_picture.append(value.left)
    for line, height in zip(layout.header[-2:], _HEADER_Y, strict=False) if len(layout.header) >= 2 else ():
        on_card.append((_WIDTH / 2, height))
        on_picture.append(((line.left[0] + line.right[0]) / 2, (line.left[1] + line.right[1]) / 2))
    return on_card, on_picture


def _num_lines(lines: Sequence[TextLine]) -> int:
    """Boxes beside each other are one line."""
    count, last = 1, lines[0] if lines else None
    for line in lines[1:]:
        across = (line.left[0] - last.left[0], line.left[1] - last.left[1]) if last else (0.0, 0.0)
        below = across[1] * math.cos(line.angle) - across[0] * math.sin(line.angle)
        if below > 0.6 * line.height:
            count, last = count + 1, line
    return min(count, 4)


def overlap(one: Quad, other: Quad) -> float:
    """Intersection over union of two convex quads."""
    common, _ = cv2.intersectConvexConvex(np.array(one, np.float32), np.array(other, np.float32))
    both = cv2.contourArea(np.array(one, np.float32)) + cv2.contourArea(np.array(other, np.float32)) - common
    return float(common / both) if both > 0 else 0.0


def _is_inside(point: Point, quad: Quad) -> bool:
    return cv2.pointPolygonTest(np.array(quad, np.float32), point, False) >= 0


def _mean_direction(angles: Sequence[float]) -> float:
    return math.atan2(sum(math.sin(angle) for angle in angles), sum(math.cos(angle) for angle in angles))


def _scaled(quad: Quad, scale: float) -> Quad:
    a, b, c, d = ((x * scale, y * scale) for x, y in quad)
    return a, b, c, d
