/** Cards as JSON or as a table (CSV), as they are corrected; a NIK that is hidden on the page is hidden here, too. */

import { doubtfulFields } from "./cards.js";
import { FIELDS, masked, nested } from "./fields.js";

/** One card is an object, several are a list. */
export function jsonOf(cards, isNikShown) {
  const all = cards.map((card) => recordOf(card, isNikShown));
  return JSON.stringify(cards.length === 1 ? all[0] : all, null, 2) + "\n";
}

function recordOf(card, isNikShown) {
  if (card.state !== "read") return { file: card.name, error: card.fault?.code ?? card.state };
  return { file: card.name, ...nested(shownValues(card, isNikShown)), corrected: Object.keys(card.corrected), doubtful: doubtfulFields(card) };
}

export function csvOf(cards, isNikShown) {
  const head = ["file", ...FIELDS, "corrected", "doubtful", "error"];
  const rows = cards.map((card) => {
    if (card.state !== "read") return [card.name, ...FIELDS.map(() => ""), "", "", card.fault?.code ?? card.state];
    const values = shownValues(card, isNikShown);
    return [card.name, ...FIELDS.map((name) => values[name]), Object.keys(card.corrected).join(" "), doubtfulFields(card).join(" "), ""];
  });
  return [head, ...rows].map((row) => row.map(cellOf).join(",") + "\r\n").join("");
}

function shownValues(card, isNikShown) {
  return isNikShown ? card.values : { ...card.values, nik: masked(card.values.nik) };
}

/** A text of somebody's picture must not become a formula of a spreadsheet. */
function cellOf(text) {
  const safe = /^[=+@\t\r]|^-./.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function download(text, type, name) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
