/** The view of a flat card on a picture: from the card's unit square to its four corners, and back. Pure. */

/** Nine numbers, row by row. `corners`: upper left, upper right, lower right, lower left, as [x, y]. */
export function viewOf([[x0, y0], [x1, y1], [x2, y2], [x3, y3]]) {
  const [dx1, dy1, dx2, dy2] = [x1 - x2, y1 - y2, x3 - x2, y3 - y2];
  const [dx3, dy3] = [x0 - x1 + x2 - x3, y0 - y1 + y2 - y3];
  const size = dx1 * dy2 - dx2 * dy1;
  const g = (dx3 * dy2 - dx2 * dy3) / size;
  const h = (dx1 * dy3 - dx3 * dy1) / size;
  return [x1 - x0 + g * x1, x3 - x0 + h * x3, x0, y1 - y0 + g * y1, y3 - y0 + h * y3, y0, g, h, 1];
}

export function inverse([a, b, c, d, e, f, g, h, i]) {
  return [e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i, a * i - c * g, c * d - a * f, d * h - e * g, b * g - a * h, a * e - b * d];
}

export function seen([a, b, c, d, e, f, g, h, i], [x, y]) {
  const depth = g * x + h * y + i;
  return [(a * x + b * y + c) / depth, (d * x + e * y + f) / depth];
}

/** Wider by parts of its own width and height on each side. */
export function widened(quad, across, down) {
  const view = viewOf(quad);
  return [[-across, -down], [1 + across, -down], [1 + across, 1 + down], [-across, 1 + down]].map((point) => seen(view, point));
}

export const distance = ([ax, ay], [bx, by]) => Math.hypot(bx - ax, by - ay);

/** The mean length of the upper and the lower side, and of the other two. */
export function sizeOf([a, b, c, d]) {
  return { width: (distance(a, b) + distance(d, c)) / 2, height: (distance(a, d) + distance(b, c)) / 2 };
}
