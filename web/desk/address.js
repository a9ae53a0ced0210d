/** The address says which part is shown: `#/NAME`. */

import { signal } from "../app/view.js";

export const PARTS = [
  "goods",
  "sheets",
  "holds",
  "orders",
  "stock",
  "reviews",
  "numbers",
  "shop",
];

const partOf = (hash) => PARTS.find((part) => part === hash.replace(/^#\/?/, "").split(/[/?]/)[0]) ?? PARTS[0];

export const part = signal(partOf(location.hash));

addEventListener("hashchange", () => { part.value = partOf(location.hash); });
