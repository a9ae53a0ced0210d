/** The ledger of a shop's stock: what came and went, and what was left after it. */

import { signal } from "../../app/view.js";
import { marketCall, marketJson } from "../../market/market_calls.js";

const PAGE = 50;
export const KINDS = ["sold", "correction", "set", "import", "initial", "transfer", "carried"];

let shopId = null;

/** `{ items, hasMore }`, newest first; null while they are read. */
export const ledger = signal(null);
export const fault = signal(null);
/** `kind` is one of KINDS or "", `product` is `{ id, name }` or null. */
export const asked = signal({ kind: "", product: null });

export function openLedger(id) {
  shopId = id;
  return ask({ kind: "", product: null });
}

export function ask(changes) {
  asked.value = { ...asked.value, ...changes };
  ledger.value = null;
  return readLedger();
}

export async function readLedger(isMore = false) {
  const { kind, product } = asked.value;
  const [shop, filters] = [shopId, asked.value];
  const before = isMore && ledger.value?.items.at(-1)?.id;
  const query = new URLSearchParams({ limit: PAGE, ...(kind && { kind }), ...(product && { product_id: product.id }), ...(before && { before }) });
  try {
    const answer = await marketCall(`api/suppliers/${shop}/stock-movements?${query}`);
    const found = await answer.json();
    if (shop !== shopId || filters !== asked.value) return;
    ledger.value = { items: [...(before ? ledger.value.items : []), ...found], hasMore: Boolean(answer.headers.get("link")) };
    fault.value = null;
  } catch (error) {
    if (shop === shopId) fault.value = error;
  }
}

/** The key says that a correction that is sent again is the same. */
export async function correct(productId, json, key) {
  const stock = await marketJson(`api/products/${productId}/stock-corrections`, { method: "POST", json, headers: { "Idempotency-Key": key } });
  await readLedger();
  return stock;
}

/** What lies at each open place of the shop, its own address first; null if that is the only one. */
export async function readPlaces(productId) {
  const branches = (await marketJson(`api/suppliers/${shopId}/branches`)).filter((one) => one.is_active);
  return branches.length ? placesWith(branches, await marketJson(`api/products/${productId}/stock`)) : null;
}

/** Moves units from one place to another, and reads what lies where then. */
export async function moveUnits(productId, json, key) {
  await marketJson(`api/products/${productId}/stock-transfers`, { method: "POST", json, headers: { "Idempotency-Key": key } });
  const [places] = await Promise.all([readPlaces(productId), readLedger()]);
  return places;
}

/** Of a place that never had units the server says nothing. */
function placesWith(branches, stock) {
  const known = new Map(stock.places.map((one) => [one.branch_id, one]));
  const empty = { on_hand: 0, reserved: 0, available_quantity: 0 };
  return [known.get(0), ...branches.map(({ id, name }) => known.get(id) ?? { branch_id: id, name, ...empty })];
}

export function findGoods(words) {
  const query = new URLSearchParams({ q: words, limit: 8 });
  return marketJson(`api/suppliers/${shopId}/products?${query}`);
}

/** One of the shop's goods, with its stock of this moment. */
export const readProduct = (id) => marketJson(`api/products/${id}`);
