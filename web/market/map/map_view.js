/** What part of the map is seen: `{ x, y, scale, width, height }`. The middle is in hundredths of a degree, as the paths are; `scale` is pixels for each. */

import { area } from "./provinces.js";

const MAX_SCALE = 40; // a hundredth of a degree is about a kilometre
const MARGIN = 48; // pixels around what shall be seen
const WHOLE = { left: 250, top: 250, right: 5000, bottom: 2050 }; // Sabang to Merauke, Miangas to Rote
const MIN_SPAN = 60;

const positionOf = ({ latitude, longitude }) => ({ x: (longitude - area.west) * 100, y: (area.north - latitude) * 100 });

/** All points, or the whole country where there are none. */
export function viewOf(points, width, height) {
  const places = points.map(positionOf);
  const box = places.length ? boxOf(places) : WHOLE;
  const margin = Math.min(MARGIN, width / 6, height / 6);
  const scale = Math.min((width - 2 * margin) / Math.max(MIN_SPAN, box.right - box.left), (height - 2 * margin) / Math.max(MIN_SPAN, box.bottom - box.top));
  return bounded({ x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, scale, width, height });
}

/** Zooms so that what is at (`left`, `top`) pixels stays there; the middle without them. */
export function zoomed(view, factor, left = view.width / 2, top = view.height / 2) {
  const scale = Math.min(MAX_SCALE, Math.max(minScale(view), view.scale * factor));
  const [right, down] = [left - view.width / 2, top - view.height / 2];
  return bounded({ ...view, scale, x: view.x + right / view.scale - right / scale, y: view.y + down / view.scale - down / scale });
}

/** By pixels: what is at the right comes nearer with a positive `right`. */
export const moved = (view, right, down) => bounded({ ...view, x: view.x + right / view.scale, y: view.y + down / view.scale });

export const resized = (view, width, height) => zoomed({ ...view, width, height }, 1);

export const centred = (view, point) => bounded({ ...view, ...positionOf(point) });

export const isWhole = (view) => view.scale <= minScale(view) * 1.01;

/** In pixels from the upper left corner. */
export function pixelsOf(view, point) {
  const { x, y } = positionOf(point);
  return { left: (x - view.x) * view.scale + view.width / 2, top: (y - view.y) * view.scale + view.height / 2 };
}

export const boxOnMap = ({ x, y, scale, width, height }) => [x - width / 2 / scale, y - height / 2 / scale, width / scale, height / scale].join(" ");

/** Points that would cover each other, as groups: `[{ left, top, points }]`. Those out of sight are left out. */
export function groupsOf(points, view, distance) {
  const groups = [];
  for (const point of points) {
    const at = pixelsOf(view, point);
    if (at.left < -distance || at.top < -distance || at.left > view.width + distance || at.top > view.height + distance) continue;
    const near = groups.find((one) => Math.hypot(one.left - at.left, one.top - at.top) < distance);
    if (near) near.points.push(point);
    else groups.push({ ...at, points: [point] });
  }
  return groups;
}

/** The points of a group can be told apart by zooming in. */
export const canBeParted = (view, group, distance) => {
  const nearest = { ...view, scale: MAX_SCALE };
  return group.points.some((one) => Math.hypot(...differenceOf(pixelsOf(nearest, one), pixelsOf(nearest, group.points[0]))) >= distance);
};

const differenceOf = (one, other) => [one.left - other.left, one.top - other.top];

function minScale({ width, height }) {
  return Math.min(width / (WHOLE.right - WHOLE.left), height / (WHOLE.bottom - WHOLE.top));
}

/** The middle of the map stays in sight. */
function bounded(view) {
  const between = (value, size, all) => Math.min(Math.max(value, Math.min(size / 2, all / 2)), Math.max(all - size / 2, all / 2));
  return { ...view, x: between(view.x, view.width / view.scale, area.width), y: between(view.y, view.height / view.scale, area.height) };
}

function boxOf(places) {
  const [xs, ys] = [places.map((one) => one.x), places.map((one) => one.y)];
  return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
}
