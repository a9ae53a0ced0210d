/** Goods that the buyer holds. The server says what a shop answers; while it cannot, the page asks again and again. */

import { toast } from "../../design/components.js";
import { signal } from "../../app/view.js";
import { t } from "../../app/words.js";
import { marketJson } from "../../market/market_calls.js";
import { isLive, listenToNotices } from "../../market/notices.js";

const PRICE_NEWS = ["price.fell", "stock.back", "search.match"];
const SAID = ["accepted", "refused", "sold", "expired"];
const ASK_MILLISECONDS = 2000;
const MAX_SHOWN = 50;

/** Newest first; null before they were read. */
export const holds = signal(null);

export const isHeld = (hold) => hold.status === "held" && Date.parse(hold.expires_at) > Date.now();

let numReadings = 0;
let lastTaken = 0;
let numChanges = 0;

/** What was read before a change may be older than it: then it is read again. */
export async function readHolds() {
  const mine = ++numReadings;
  for (;;) {
    const before = numChanges;
    const read = await marketJson(`api/reservations?limit=${MAX_SHOWN}`);
    if (mine < lastTaken) return; // a later reading was first
    if (before !== numChanges) continue;
    lastTaken = mine;
    holds.value = read;
    return;
  }
}

export async function hold(productId, quantity) {
  const made = await marketJson(`api/products/${productId}/reservations`, { method: "POST", json: { quantity } });
  numChanges += 1;
  holds.value = [made, ...(holds.value ?? []).filter((one) => one.id !== made.id)];
  return made;
}

export async function release(id) {
  take(await marketJson(`api/reservations/${id}/release`, { method: "POST" }));
}

/** From the start of the page: also who looks at other goods learns what a shop has answered. */
export function hearOfHolds() {
  const hear = async ({ type, role, reservation_id: id }) => {
    if (role !== "buyer" || !type.startsWith("hold.")) {
      if (PRICE_NEWS.includes(type)) toast(t(`shop.news.${type}`), "bell");
      return;
    }
    const news = type.replace("hold.", "");
    const changed = await marketJson(`api/reservations/${id}`).catch(() => null);
    if (changed) numChanges += 1;
    if (changed && holds.value) holds.value = [changed, ...holds.value.filter((one) => one.id !== id)].sort((one, other) => other.created_at.localeCompare(one.created_at));
    if (SAID.includes(news)) toast(t(`shop.news.${news}`), news === "accepted" || news === "sold" ? "check" : "info");
  };
  listenToNotices(hear, () => { if (holds.value) readHolds().catch(() => {}); });
}

/** While no news come. Until the returned function is called. */
export function watchHolds() {
  const ask = async () => {
    if (isLive.value || document.hidden || !holds.value?.some(isHeld)) return;
    const changes = await Promise.all(holds.value.filter(isHeld).map((one) => marketJson(`api/reservations/${one.id}`).catch(() => null)));
    changes.filter(Boolean).forEach(take);
  };
  const timer = setInterval(ask, ASK_MILLISECONDS);
  return () => clearInterval(timer);
}

function take(changed) {
  numChanges += 1;
  holds.value = (holds.value ?? []).map((one) => (one.id === changed.id ? { ...one, ...changed } : one));
}
