/** A small picture of a card for the table, with its NIK covered: a canvas, so that no address of it exists. */

import { flatCardOf } from "./flat_card.js";
import { straighten } from "./straighten.js";

const WIDTH = 192;

export function thumbOf(bitmap, answer) {
  const flat = flatCardOf(answer.card.quad, bitmap.width, bitmap.height);
  const canvas = document.createElement("canvas");
  const height = Math.max(1, Math.round(WIDTH / flat.ratio));
  straighten(bitmap, flat.quad, canvas, WIDTH, height);
  const nik = answer.boxes.nik?.map(flat.onCard);
  if (nik) {
    const context = canvas.getContext("2d");
    context.fillStyle = "#55606a";
    context.beginPath();
    nik.forEach(([u, v]) => context.lineTo(u * WIDTH, v * height));
    context.fill();
  }
  return canvas;
}
