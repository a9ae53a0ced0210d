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

const TRIES = 4;
const TRY_MILLISECONDS = 1000;

let numReadings = 0;
let lastTaken = 0;
let numChanges = 0;
/** The number of the reading that each hold is from: one that began earlier may come later, and is older. */
const takenFrom = new Map();

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

/** `wish`: `{ branch_id }`, where the goods shall be from, or where the buyer is. */
export async function hold(productId, quantity, wish = {}) {
  const made = await marketJson(`api/products/${productId}/reservations`, { method: "POST", json: { quantity, ...wish } });
  numChanges += 1;
  holds.value = [made, ...(holds.value ?? []).filter((one) => one.id !== made.id)];
  return made;
}

export async function release(id) {
  take(await marketJson(`api/reservations/${id}/release`, { method: "POST" }), ++numReadings);
}

async function readHold(id) {
  const number = ++numReadings;
  return { number, changed: await marketJson(`api/reservations/${id}`) };
}

/** News come once, so what they are of is asked for again where the server does not answer. */
async function readHoldOfNews(id) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await readHold(id);
    } catch (fault) {
      if (tries === TRIES || (fault.status >= 400 && fault.status < 500 && fault.status !== 429)) return null;
      await new Promise((resolve) => setTimeout(resolve, TRY_MILLISECONDS * tries));
    }
  }
}

/** From the start of the page: also who looks at other goods learns what a shop has answered. */
export function hearOfHolds() {
  const hear = async ({ type, role, reservation_id: id }) => {
    if (role !== "buyer" || !type.startsWith("hold.")) {
      if (PRICE_NEWS.includes(type)) toast(t(`shop.news.${type}`), "bell");
      return;
    }
    const news = type.replace("hold.", "");
    const read = await readHoldOfNews(id);
    if (read) take(read.changed, read.number);
    if (SAID.includes(news)) toast(t(`shop.news.${news}`), news === "accepted" || news === "sold" ? "check" : "info");
  };
  listenToNotices(hear, () => { if (holds.value) readHolds().catch(() => {}); });
}

/** While no news come. Until the returned function is called. */
export function watchHolds() {
  const ask = async () => {
    if (isLive.value || document.hidden || !holds.value?.some(isHeld)) return;
    await Promise.all(holds.value.filter(isHeld).map((one) => readHold(one.id).then(({ changed, number }) => take(changed, number), () => {})));
  };
  const timer = setInterval(ask, ASK_MILLISECONDS);
  return () => clearInterval(timer);
}

function take(changed, number) {
  numChanges += 1;
  if (number < (takenFrom.get(changed.id) ?? 0)) return;
  takenFrom.set(changed.id, number);
  if (!holds.value) return;
  const known = holds.value.find((one) => one.id === changed.id);
  holds.value = [{ ...known, ...changed }, ...holds.value.filter((one) => one !== known)].sort((one, other) => other.created_at.localeCompare(one.created_at));
}
