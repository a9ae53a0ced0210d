/** Corrections by hand, which the server checks at once; it keeps nothing of them. */

import { postJson } from "../app/api.js";
import { cardOf, change, controllerOf, focusedField } from "./cards.js";
import { nested, valuesOf } from "./fields.js";

const PAUSE_MILLISECONDS = 250;

/** `value` as it is typed. What equals the reading again is no correction. */
export function correct(id, name, value) {
  const card = cardOf(id);
  if (card.values[name] === value) return;
  const { [name]: read = card.values[name], ...others } = card.corrected;
  const corrected = value === read ? others : { ...others, [name]: read };
  const values = { ...card.values, [name]: value };
  const { signal } = controllerOf(id);
  if (!Object.keys(corrected).length) return change(id, { values, corrected, said: card.answer, isChecking: false, checkFault: null });
  change(id, { values, corrected, isChecking: true, checkFault: null });
  const timer = setTimeout(() => check(id, signal), PAUSE_MILLISECONDS);
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
}

export function checkAgain(id) {
  change(id, { isChecking: true, checkFault: null });
  check(id, controllerOf(id).signal);
}

async function check(id, signal) {
  try {
    const said = await postJson("ktp-ocr/check", nested(cardOf(id).values), { signal });
    if (signal.aborted) return;
    change(id, { said, isChecking: false });
    for (const name of Object.keys(cardOf(id).corrected)) if (name !== focusedField.value) settle(id, name);
  } catch (fault) {
    if (!signal.aborted) change(id, { isChecking: false, checkFault: fault.message });
  }
}

/** Writes a correction as cards print it: 17/08/1985 becomes 17-08-1985. */
export function settle(id, name) {
  const card = cardOf(id);
  if (!card || !(name in card.corrected) || card.isChecking || card.said === card.answer) return;
  const printed = valuesOf(card.said)[name];
  const wasFilled = card.said.repairs.some(({ field }) => field === name);
  if (!printed || wasFilled || printed === card.values[name]) return;
  const { [name]: read, ...others } = card.corrected;
  change(id, { values: { ...card.values, [name]: printed }, corrected: printed === read ? others : { ...others, [name]: read } });
}
