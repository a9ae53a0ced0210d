/** Orders of this account or of a shop: read in pages, moved by whoever may. News come by themselves. */

import { signal } from "../../app/view.js";
import { marketCall, marketJson } from "../market_calls.js";
import { listenToNotices } from "../notices.js";

const PAGE = 20;
/** Which route makes an order of this state. */
const ROUTES = { placed: "place", accepted: "accept", refused: "refuse", cancelled: "cancel", paid: "paid", handed_over: "hand-over", shipped: "ship", received: "receive", returned: "return" };

/** `{ items, hasMore }`, newest first; null before they are known. */
export const orders = signal(null);
export const fault = signal(null);

let list = null; // the path that is shown, with its query

export async function readOrders(path, query = {}, isMore = false) {
  const asked = `${path}?${new URLSearchParams({ limit: PAGE, ...query })}`;
  if (asked !== list) [list, orders.value, fault.value] = [asked, null, null];
  const before = isMore && orders.value?.items.at(-1)?.id;
  try {
    const answer = await marketCall(before ? `${asked}&before=${before}` : asked);
    const found = await answer.json();
    if (asked !== list) return;
    orders.value = { items: [...(before ? orders.value.items : []), ...found], hasMore: Boolean(answer.headers.get("link")) };
    fault.value = null;
  } catch (error) {
    if (asked === list) fault.value = error;
  }
}

export const readOrder = (id) => marketJson(`api/orders/${id}`);
export const makeOrder = (json) => marketJson("api/orders", { method: "POST", json, headers: { "Idempotency-Key": crypto.randomUUID() } });
export const moveOrder = (order, state, json) => act(order, ROUTES[state], json);
export const askReturn = (order, reason) => act(order, "return-request", { reason });
export const refuseReturn = (order, reason) => act(order, "return-refusal", { reason });

/** Until the returned function is called: what others do to an order is shown at once. */
export function followOrders(role, hear = () => {}) {
  return listenToNotices(async (notice) => {
    if (!notice.order_id || notice.role !== role) return;
    hear(notice);
    if (!orders.value) return;
    if (orders.value.items.some((one) => one.id === notice.order_id)) readOrder(notice.order_id).then(take, () => {});
    else if (list) readAnew();
  }, readAnew);
}

function readAnew() {
  if (!list || !orders.value) return;
  const [path, query] = list.split("?");
  readOrders(path, Object.fromEntries(new URLSearchParams(query)));
}

async function act(order, what, json = {}) {
  try {
    const changed = await marketJson(`api/orders/${order.id}/${what}`, { method: "POST", json: { ...json, version: order.version } });
    take(changed);
    return changed;
  } catch (error) {
    if (error.status === 409 || error.status === 412) await readOrder(order.id).then(take, () => {});
    throw error;
  }
}

function take(changed) {
  if (orders.value) orders.value = { ...orders.value, items: orders.value.items.map((one) => (one.id === changed.id ? changed : one)) };
}
