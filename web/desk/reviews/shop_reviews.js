/** What buyers say of the shop's goods, and what the shop answers. */

import { signal } from "../../app/view.js";
import { marketCall, marketJson } from "../../market/market_calls.js";

const PAGE = 20;

let shopId = null;

/** `{ items, hasMore }`, newest first; null while they are read. */
export const reviews = signal(null);
export const fault = signal(null);
export const isUnanswered = signal(true);

export function openReviews(id) {
  shopId = id;
  return showUnanswered(true);
}

export function showUnanswered(only) {
  isUnanswered.value = only;
  reviews.value = null;
  return readReviews();
}

export async function readReviews(isMore = false) {
  const [shop, only] = [shopId, isUnanswered.value];
  const before = isMore && reviews.value?.items.at(-1)?.id;
  try {
    const answer = await marketCall(`api/suppliers/${shop}/reviews?${new URLSearchParams({ limit: PAGE, ...(only && { unanswered: "true" }), ...(before && { before }) })}`);
    const found = await answer.json();
    if (shop !== shopId || only !== isUnanswered.value) return;
    reviews.value = { items: [...(before ? reviews.value.items : []), ...found], hasMore: Boolean(answer.headers.get("link")) };
    fault.value = null;
  } catch (error) {
    if (shop === shopId) fault.value = error;
  }
}

/** An answered review stays in sight, whatever the list shows. */
export const answer = async (id, body) => take(await marketJson(`api/reviews/${id}/answer`, { method: "PUT", json: { body } }));
export const takeBack = async (id) => take(await marketJson(`api/reviews/${id}/answer`, { method: "DELETE" }));

function take(changed) {
  if (reviews.value) reviews.value = { ...reviews.value, items: reviews.value.items.map((one) => (one.id === changed.id ? { ...one, ...changed } : one)) };
}
