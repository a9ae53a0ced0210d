/** Goods that the buyer holds: asked for again while one is held, so that the shop's answer shows within seconds. */

import { signal } from "../../app/view.js";
import { marketJson } from "../../market/market_calls.js";

const ASK_MILLISECONDS = 2000;
const MAX_SHOWN = 50;

/** Newest first; null before they were read. */
export const holds = signal(null);

export const isHeld = (hold) => hold.status === "held" && Date.parse(hold.expires_at) > Date.now();

export async function readHolds() {
  holds.value = await marketJson(`api/reservations?limit=${MAX_SHOWN}`);
}

export async function hold(productId, quantity) {
  const made = await marketJson(`api/products/${productId}/reservations`, { method: "POST", json: { quantity } });
  holds.value = [made, ...(holds.value ?? []).filter((one) => one.id !== made.id)];
  return made;
}

export async function release(id) {
  take(await marketJson(`api/reservations/${id}/release`, { method: "POST" }));
}

/** Until the returned function is called. */
export function watchHolds() {
  const ask = async () => {
    if (document.hidden || !holds.value?.some(isHeld)) return;
    const changes = await Promise.all(holds.value.filter(isHeld).map((one) => marketJson(`api/reservations/${one.id}`).catch(() => null)));
    changes.filter(Boolean).forEach(take);
  };
  const timer = setInterval(ask, ASK_MILLISECONDS);
  return () => clearInterval(timer);
}

function take(changed) {
  holds.value = (holds.value ?? []).map((one) => (one.id === changed.id ? { ...one, ...changed } : one));
}
