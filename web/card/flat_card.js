/** Where the card lies on its picture, and where a point of the picture lies on the flat card. */

import { inverse, seen, viewOf, widened } from "./homography.js";

const CARD_RATIO = 85.6 / 53.98;
/** Around the outline, which is not exact. */
const MARGIN = 0.025;

/** `quad`: the part of the picture that is shown; the whole of it where no outline was found. `ratio`: width by height. */
export function flatCardOf(outline, width, height) {
  const quad = outline ? widened(outline, MARGIN, MARGIN) : [[0, 0], [width, 0], [width, height], [0, height]];
  const back = inverse(viewOf(quad));
  return { quad, ratio: outline ? CARD_RATIO : width / height, onCard: (point) => seen(back, point) };
}

/** The corners of a box as the attribute `points`, on a card that is `width` wide. */
export function pointsOf(box, flat, width) {
  const height = width / flat.ratio;
  return box.map(flat.onCard).map(([u, v]) => `${(u * width).toFixed(1)},${(v * height).toFixed(1)}`).join(" ");
}
