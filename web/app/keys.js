/** The API key and the admin key: in memory, or in the session storage of this tab if the user says so. */

import { signal } from "./view.js";

const KINDS = ["api", "admin"];
const held = Object.fromEntries(KINDS.map((kind) => [kind, signal(stored(kind))]));

/** Set while somebody is asked for a key: `{ kind, wrong, answer(key | null) }`. The shell shows it. */
export const keyQuestion = signal(null);

export function keyOf(kind) {
  return held[kind].value;
}

export function hasKey(kind) {
  return Boolean(held[kind].value);
}

export function setKey(kind, key, remember) {
  held[kind].value = key;
  try {
    if (key && remember) sessionStorage.setItem(`tis.key.${kind}`, key);
    else sessionStorage.removeItem(`tis.key.${kind}`);
  } catch {
    // Storage may be forbidden: the key stays in memory.
  }
}

export function forgetKeys() {
  for (const kind of KINDS) setKey(kind, "", false);
}

let asking = null;

/** Resolves to a key, or to null if the user closes the dialog. Calls that ask at the same time share one dialog. */
export function askForKey(kind, wrong) {
  asking ??= new Promise((resolve) => {
    keyQuestion.value = { kind, wrong, answer: resolve };
  }).finally(() => {
    keyQuestion.value = null;
    asking = null;
  });
  return asking;
}

function stored(kind) {
  try {
    return sessionStorage.getItem(`tis.key.${kind}`) ?? "";
  } catch {
    return "";
  }
}
