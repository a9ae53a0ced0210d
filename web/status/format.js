/** Numbers as the page writes them. */

import { formatNumber, formatSeconds, formatShort, formatTimeSpan } from "../app/words.js";

export const NONE = "–";

/** "61 ms", "1.24 s", "3 min 20 s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return NONE;
  if (seconds === 0) return formatTimeSpan(0, "ms");
  if (seconds < 0.00995) return formatTimeSpan(seconds * 1000, "ms", 1);
  if (seconds < 0.9995) return formatTimeSpan(seconds * 1000, "ms");
  if (seconds < 10) return formatTimeSpan(seconds, "s", 2);
  return formatSeconds(seconds);
}

/** Whole seconds, for what lasts. */
export function since(seconds) {
  return seconds < 59.5 ? formatTimeSpan(seconds, "s") : formatSeconds(seconds);
}

/** "0.4", "12.3", "412", "12.4K". */
export function amount(value) {
  if (value === null || value === undefined) return NONE;
  if (value >= 10_000) return formatShort(value);
  return formatNumber(value, value && value < 100 ? 1 : 0);
}

export function whole(value) {
  if (value === null || value === undefined) return NONE;
  return value >= 1_000_000 ? formatShort(value) : formatNumber(value);
}

export function percent(value) {
  return value === null || value === undefined ? NONE : `${formatNumber(value * 100, value > 0 && value < 0.1 ? 1 : 0)} %`;
}

/** Memory by powers of two, as operating systems count it. */
export function memory(bytes) {
  if (bytes === null || bytes === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  for (; bytes >= 1024 && power < units.length - 1; power++) bytes /= 1024;
  return `${formatNumber(bytes, power > 2 || (power && bytes < 10) ? 1 : 0)} ${units[power]}`;
}
