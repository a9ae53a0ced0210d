/** The address says which part is shown, and which talk: `#/NAME` or `#/messages/ID`. */

import { signal } from "../app/view.js";

export const PARTS = [
  "goods",
  "sheets",
  "holds",
  "orders",
  "messages",
  "stock",
  "reviews",
  "numbers",
  "shop",
];

const partOf = (hash) => PARTS.find((part) => part === hash.replace(/^#\/?/, "").split(/[/?]/)[0]) ?? PARTS[0];

const detailOf = (hash) => Number(/^#\/?messages\/(\d{1,15})$/.exec(hash)?.[1]) || null;

export const part = signal(partOf(location.hash));
export const detail = signal(detailOf(location.hash));

addEventListener("hashchange", () => { [part.value, detail.value] = [partOf(location.hash), detailOf(location.hash)]; });
