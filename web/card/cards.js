/** The cards of this visit, in memory only: each with its picture, what was read, and what somebody has corrected. */

import { computed, signal } from "../app/view.js";
import { FIELDS, levelOf, valuesOf } from "./fields.js";

export const MAX_CARDS = 50;
export const cards = signal([]);
/** The card that is shown as a whole; null shows the table of all. */
export const openId = signal(null);
export const isNikShown = signal(false);
export const focusedField = signal(null);
export const pointedField = signal(null);
/**
 * What the mouse points at, or the keyboard has reached on the picture: the last of them counts. A box that comes under a
 * mouse at rest, as when the page scrolls, gets `pointerenter` but no `pointermove`.
 */
export const pointing = (name) => ({ onPointerMove: () => { pointedField.value = name; }, onPointerLeave: () => unpoint(name) });

/** The end of what may have been replaced meanwhile. */
export function unpoint(name) {
  if (pointedField.value === name) pointedField.value = null;
}

/** In the list or on the picture. */
export const activeField = computed(() => pointedField.value ?? focusedField.value);
export const openCard = computed(() => {
  const all = cards.value;
  return all.find((card) => card.id === openId.value) ?? (all.length === 1 ? all[0] : null);
});

/** What goes on for a card: reading, or a check. */
const controllers = new Map();
let numCards = 0;

/** Gives how many had no room. */
export function addFiles(files) {
  const room = Math.max(0, MAX_CARDS - cards.value.length);
  const added = files.slice(0, room).map((file) => ({ id: ++numCards, file, name: file.name || "", state: "waiting", stage: null, fault: null, sent: null, thumb: null }));
  cards.value = [...cards.value, ...added];
  if (cards.value.length > 1) openId.value = null;
  return files.length - added.length;
}

export function cardOf(id) {
  return cards.value.find((card) => card.id === id);
}

export function change(id, patch) {
  cards.value = cards.value.map((card) => (card.id === id ? { ...card, ...patch } : card));
}

/** `answer` is the API's; what is corrected is beside it, with what was read. */
export function keepAnswer(id, answer) {
  change(id, { state: "read", stage: null, answer, values: valuesOf(answer), corrected: {}, said: answer, isChecking: false, checkFault: null });
}

/** One at a time for each card: the one before is ended. */
export function controllerOf(id) {
  controllers.get(id)?.abort();
  const controller = new AbortController();
  controllers.set(id, controller);
  return controller;
}

export function removeCard(id) {
  controllers.get(id)?.abort();
  controllers.delete(id);
  cards.value = cards.value.filter((card) => card.id !== id);
  if (openId.value === id) openId.value = null;
}

/** Nothing of any card is left on the page. */
export function forgetAll() {
  for (const controller of controllers.values()) controller.abort();
  controllers.clear();
  cards.value = [];
  openId.value = null;
  focusedField.value = null;
  pointedField.value = null;
  isNikShown.value = false;
}

/** What the newest checks say; and of the reading, what no correction has settled. */
export function warningsOf(card) {
  if (card.said === card.answer) return card.answer.warnings;
  const ofReading = card.answer.warnings.filter(({ code, field }) => !code.startsWith("nik_") && !(field in card.corrected));
  return [...card.said.warnings, ...ofReading];
}

/** A card of a holder who has moved is in order. */
const IN_ORDER = new Set(["nik_region_differs", "nik_region_retired", "model_unavailable"]);
const ALSO = { nik_date_mismatch: "tgl_lahir", nik_sex_mismatch: "jenis_kelamin" };

/** The fields that somebody should look at, in their order. */
export function doubtfulFields(card) {
  const warned = warningsOf(card).filter(({ code }) => !IN_ORDER.has(code)).flatMap(({ code, field }) => [field, ALSO[code]]);
  return FIELDS.filter((name) => warned.includes(name) || ["likely", "doubtful", "unread"].includes(levelOf(card, name)));
}
