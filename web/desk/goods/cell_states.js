/** Cells that are not as the server has them: being edited, being written, refused, or changed by somebody else meanwhile. */

import { batch, signal } from "../../app/view.js";
import { messageOf } from "../own_shop/messages_of.js";
import { ChangedMeanwhile, changeAnyway, changeField } from "./product_changes.js";

export const keyOf = (id, field) => `${id}.${field}`;

/** Which cell is being edited: `{ key, text }` with what its field begins with; null if none is. */
export const editing = signal(null);
/** By key: `{ state: "saving" | "refused" | "conflict", value, message, current }`. */
export const unsaved = signal(new Map());

function set(key, state) {
  const all = new Map(unsaved.value);
  if (state) all.set(key, state);
  else all.delete(key);
  unsaved.value = all;
}

export const forgetCell = (id, field) => set(keyOf(id, field), null);

export function forgetCells() {
  batch(() => { editing.value = null; unsaved.value = new Map(); });
}

/** Writes the value, unless it is what the product has. The state says what became of it. */
export async function writeCell(product, field, value) {
  if (value === product[field] || (value === "" && product[field] === null)) return forgetCell(product.id, field);
  return attempt(product.id, field, value, () => changeField(product, field, value));
}

/** Mine, though somebody else has changed it. */
export function writeMine(id, field) {
  const { value, current } = unsaved.value.get(keyOf(id, field));
  return attempt(id, field, value, () => changeAnyway(current, field, value));
}

async function attempt(id, field, value, write) {
  const key = keyOf(id, field);
  set(key, { state: "saving", value });
  try {
    await write();
    set(key, null);
  } catch (error) {
    const isConflict = error instanceof ChangedMeanwhile;
    set(key, { state: isConflict ? "conflict" : "refused", value, message: messageOf(error), current: error.current });
  }
}
