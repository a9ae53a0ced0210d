/** Changes of many products: one request, all or none, and one that undoes it. */

import { marketJson } from "../../market/market_calls.js";
import { reversed } from "./bulk_rules.js";
import { chosen, load, refreshRow, shopPath } from "./goods_list.js";
import { changed } from "./undoing.js";

const MAX_READ_ANEW = 50;

const send = (products) => marketJson(shopPath("products/bulk"), { method: "POST", json: { products } });

/** `text` gets the number of products that changed. */
export async function changeMany(products, text) {
  const report = await send(products);
  chosen.value = new Map();
  await load();
  if (!report.changed) return;
  changed(text(report.changed), async () => {
    await send(reversed(report.products));
    await load();
  });
}

export const setOffered = (products, isOffered, text) => changeMany(products.filter((one) => one.is_available !== isOffered).map(({ id, version }) => ({ id, version, is_available: isOffered })), text);

/** Those that the server has refused. */
export const readAnew = (ids) => Promise.all(ids.slice(0, MAX_READ_ANEW).map((id) => refreshRow(id).catch(() => null)));
