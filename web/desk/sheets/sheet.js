/** The sheet that was dropped: what its columns are, which of its cells are wrong, and what was mended. The file itself stays as it is. */

import { batch, computed, signal } from "../../app/view.js";
import { marketCall } from "../../market/market_calls.js";
import { watchImports } from "./imports.js";

const SHOWN_ROWS = 100;
const WAIT_MILLISECONDS = 400;
export const FIELDS = ["name", "sku", "price", "stock_quantity", "category", "condition", "brand", "tags", "description", "is_available", "pictures", "variant_group", "variant_values"];

/** "none", "reading", "checked", "importing", "done" or "background". */
export const stage = signal("none");
export const file = signal(null);
export const fault = signal(null);
/** The report of the last dry run, or of the import. */
export const report = signal(null);
/** `[{ position, name, field }]`, all of them; `field` is null for one that is not imported. */
export const columns = signal([]);
/** By "row.position": the text that takes the place of the cell. */
export const edits = signal(new Map());
/** Something was changed since the last dry run. */
export const isChanged = signal(false);

export const cellKey = (row, position) => `${row}.${position}`;

/** By row: by field its message, and under "" what is wrong with the row as a whole. */
export const problems = computed(() => {
  const found = new Map();
  for (const { row, field, message } of report.value?.errors ?? []) {
    if (!found.has(row)) found.set(row, new Map());
    const place = columns.value.some((column) => column.field === field) ? field : "";
    found.get(row).set(place, place || !field ? message : `${field}: ${message}`);
  }
  return found;
});

let shopId = null;
let importKey = null;
let asking = null;
let waiting = null;

export function openSheets(id) {
  if (shopId !== id) closeSheet();
  shopId = id;
}

export function openSheet(dropped) {
  batch(() => {
    closeSheet();
    file.value = dropped;
  });
  return check();
}

export function closeSheet() {
  clearTimeout(waiting);
  asking?.abort();
  batch(() => {
    stage.value = "none";
    file.value = fault.value = report.value = null;
    columns.value = [];
    edits.value = new Map();
    isChanged.value = false;
  });
}

/** A field stands for one column: the one that had it before is not imported then. */
export function chooseField(position, field) {
  columns.value = columns.value.map((one) => (one.position === position ? { ...one, field } : field && one.field === field ? { ...one, field: null } : one));
  // Arrow keys walk through all fields.
  clearTimeout(waiting);
  waiting = setTimeout(check, WAIT_MILLISECONDS);
}

export function editCell(row, position, text, before) {
  const all = new Map(edits.value);
  if (text === before) all.delete(cellKey(row, position));
  else all.set(cellKey(row, position), text);
  batch(() => { edits.value = all; isChanged.value = true; });
  importKey = null;
}

/** A dry run: what would be imported, and which cells are wrong. */
export async function check() {
  clearTimeout(waiting);
  asking?.abort();
  const mine = (asking = new AbortController());
  stage.value = "reading";
  fault.value = null;
  try {
    const answer = await send({ dry_run: 1, preview: SHOWN_ROWS, ignore_unknown: 1 }, mine.signal);
    if (mine !== asking) return;
    takeReport(await answer.json());
  } catch (error) {
    if (mine !== asking || error.name === "AbortError") return;
    batch(() => { fault.value = error; stage.value = report.value ? "checked" : "none"; });
  }
}

function takeReport(read) {
  batch(() => {
    report.value = read;
    columns.value = columnsOf(read);
    stage.value = "checked";
    isChanged.value = false;
  });
  importKey = null;
}

/** All or none, or with `isPartial` without the rows that are wrong. The same sheet sent again is not imported twice. */
export async function importSheet(isPartial) {
  clearTimeout(waiting);
  stage.value = "importing";
  fault.value = null;
  importKey ??= `${Date.now()}-${Math.random()}`;
  try {
    const answer = await send({ ...(isPartial && { partial: 1 }) }, undefined, { "Idempotency-Key": importKey });
    const read = await answer.json();
    batch(() => { report.value = answer.status === 202 ? null : read; stage.value = answer.status === 202 ? "background" : "done"; });
    if (answer.status === 202) watchImports(read);
  } catch (error) {
    stage.value = "checked";
    // The answer has the faults, the dry run has the cells, too.
    if (Array.isArray(error.body?.errors)) await check();
    else fault.value = error;
  }
}

function send(options, signal, headers = {}) {
  const form = new FormData();
  form.append("file", file.value);
  if (edits.value.size) form.append("edits", JSON.stringify([...edits.value].map(([key, text]) => [...key.split(".").map(Number), text])));
  const query = new URLSearchParams({ ...options, ...(columns.value.some((one) => one.field) && { columns: columns.value.map((one) => one.field ?? "").join(",") }) });
  return marketCall(`api/suppliers/${shopId}/products/import?${query}`, { method: "POST", body: form, signal, headers });
}

/** The server names those columns that have a name or a field. */
function columnsOf({ columns: named }) {
  const length = Math.max(0, ...named.map((one) => one.position));
  const all = Array.from({ length }, (_, at) => ({ position: at + 1, name: "", field: null }));
  for (const { position, column, field } of named) all[position - 1] = { position, name: column, field };
  return all;
}
