/** Draws a part of a picture that four corners name, straight, as large as wanted. The picture never leaves the page. */

import { sizeOf, viewOf } from "./homography.js";

/** Of pixels read for each that is drawn, along a side: more would only be left out again. */
const MAX_DETAIL = 1.5;

/** `source`: anything that a canvas draws, with its `width` and `height`. What is outside of it stays empty. */
export function straighten(source, quad, canvas, width, height) {
  const xs = quad.map(([x]) => x);
  const ys = quad.map(([, y]) => y);
  const left = Math.max(0, Math.floor(Math.min(...xs)));
  const top = Math.max(0, Math.floor(Math.min(...ys)));
  const right = Math.min(source.width, Math.ceil(Math.max(...xs)));
  const bottom = Math.min(source.height, Math.ceil(Math.max(...ys)));
  Object.assign(canvas, { width, height });
  if (right <= left || bottom <= top) return;
  const scale = Math.min(1, (MAX_DETAIL * width) / Math.max(1, sizeOf(quad).width));
  const pixels = pixelsOf(source, left, top, right - left, bottom - top, scale);
  const view = viewOf(quad.map(([x, y]) => [(x - left) * scale, (y - top) * scale]));
  const context = canvas.getContext("2d");
  const drawn = context.createImageData(width, height);
  fill(drawn, pixels, view);
  context.putImageData(drawn, 0, 0);
}

function pixelsOf(source, left, top, width, height, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(2, Math.round(width * scale));
  canvas.height = Math.max(2, Math.round(height * scale));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.drawImage(source, left, top, width, height, 0, 0, canvas.width, canvas.height);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

/** Between four pixels each, by how near they are. */
function fill(drawn, { data, width, height }, [a, b, c, d, e, f, g, h, i]) {
  const to = drawn.data;
  let at = 0;
  for (let row = 0; row < drawn.height; row++) {
    const v = (row + 0.5) / drawn.height;
    for (let column = 0; column < drawn.width; column++, at += 4) {
      const u = (column + 0.5) / drawn.width;
      const depth = g * u + h * v + i;
      const x = (a * u + b * v + c) / depth - 0.5;
      const y = (d * u + e * v + f) / depth - 0.5;
      if (x < -0.5 || y < -0.5 || x > width - 0.5 || y > height - 0.5) continue;
      const x0 = Math.min(width - 2, Math.max(0, Math.floor(x)));
      const y0 = Math.min(height - 2, Math.max(0, Math.floor(y)));
      const fx = Math.min(1, Math.max(0, x - x0));
      const fy = Math.min(1, Math.max(0, y - y0));
      const p = (y0 * width + x0) * 4;
      const q = p + width * 4;
      for (let k = 0; k < 3; k++) {
        const upper = data[p + k] + (data[p + 4 + k] - data[p + k]) * fx;
        const lower = data[q + k] + (data[q + 4 + k] - data[q + k]) * fx;
        to[at + k] = upper + (lower - upper) * fy;
      }
      to[at + 3] = 255;
    }
  }
}
