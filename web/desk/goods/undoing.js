/** What was changed last, and how to undo it. */

import { signal } from "../../app/view.js";
import { t } from "../../app/words.js";
import { messageOf } from "../own_shop/messages_of.js";

const MAX_KEPT = 50;
let kept = [];
/** Changes that are being written: who undoes meanwhile means the last of them. */
const underway = new Set();
let undoing = Promise.resolve();

/** `{ text, state: "done" | "undone" | "failed", message }`; null before the first change. */
export const lastChange = signal(null);
export const canUndo = signal(false);

/** `text` says what was changed; `undo` does the opposite, or throws. */
export function changed(text, undo) {
  kept = [...kept, { text, undo }].slice(-MAX_KEPT);
  lastChange.value = { text, state: "done" };
  canUndo.value = true;
}

/** `change`: a promise of its end. */
export function writing(change) {
  underway.add(change);
  const end = () => underway.delete(change);
  change.then(end, end);
  return change;
}

/** One after the other, as often as it is asked for. */
export function undoLast() {
  undoing = undoing.then(undoOne);
  return undoing;
}

async function undoOne() {
  await Promise.allSettled([...underway]);
  const last = kept.at(-1);
  if (!last) return;
  kept = kept.slice(0, -1);
  try {
    await last.undo();
    lastChange.value = { text: t("goods.undone", { what: last.text }), state: "undone" };
  } catch (error) {
    lastChange.value = { text: last.text, state: "failed", message: messageOf(error) };
  } finally {
    canUndo.value = kept.length > 0;
  }
}

export function closeUndoBar() {
  lastChange.value = null;
}

/** Another shop: its changes are not those of the one before. */
export function forgetChanges() {
  kept = [];
  canUndo.value = false;
  lastChange.value = null;
}
