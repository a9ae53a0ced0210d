/** Imports in the background: asked for while one runs, so a page that was closed finds them again. */

import { signal } from "../../app/view.js";
import { marketJson } from "../../market/market_calls.js";

const ASK_MILLISECONDS = 1000;

/** Newest first; null before they were read. */
export const imports = signal(null);
export const isRunning = (one) => one.status === "waiting" || one.status === "running";

let shopId = null; // null while nobody looks at them
let timer = null;

const path = () => `api/suppliers/${shopId}/products/imports`;

export async function openImports(id) {
  shopId = id;
  imports.value = null;
  await ask();
}

/** With one that was just begun. */
export function watchImports(begun) {
  imports.value = [begun, ...(imports.value ?? []).filter((one) => one.id !== begun.id)];
  askLater();
}

export function closeImports() {
  clearTimeout(timer);
  shopId = null;
}

/** The rows that were not imported. */
export const readProblems = async (id) => (await marketJson(`${path()}/${id}`)).errors;

async function ask() {
  const asked = shopId;
  try {
    const found = await marketJson(path());
    if (asked === shopId) imports.value = found;
  } catch {
    // It is asked again: what is shown stays.
  }
  askLater();
}

function askLater() {
  clearTimeout(timer);
  if (shopId !== null && (imports.value === null || imports.value.some(isRunning))) timer = setTimeout(ask, ASK_MILLISECONDS);
}
