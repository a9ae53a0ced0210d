/** Groups of variants: made of the goods that are chosen, joined and left. */

import { t } from "../../app/words.js";
import { marketJson } from "../../market/market_calls.js";
import { load, shopPath } from "./goods_list.js";
import { changed } from "./undoing.js";

const MAX_GROUPS = 100;
/** So many variants has a group at most. */
export const MAX_VARIANTS = 100;

/** The newest ones. */
export const readGroups = () => marketJson(`${shopPath("product-groups")}?limit=${MAX_GROUPS}`);

/** `variants`: `{ product_id, values }`. */
export async function makeGroup(name, axes, variants) {
  const made = await marketJson(shopPath("product-groups"), { method: "POST", json: { name, axes, variants }, headers: onceOnly() });
  await load();
  changed(t("goods.variants.made", { name }), async () => {
    await marketJson(`api/product-groups/${made.id}`, { method: "DELETE" });
    await load();
  });
}

export async function addToGroup(group, variants) {
  const path = `api/product-groups/${group.id}/variants`;
  const added = [];
  try {
    for (const variant of variants) {
      await marketJson(path, { method: "POST", json: variant, headers: onceOnly() });
      added.push(variant.product_id);
    }
  } finally {
    await load();
    if (added.length) {
      changed(t("goods.variants.added", { name: group.name }), async () => {
        for (const id of added) await marketJson(`${path}/${id}`, { method: "DELETE" });
        await load();
      });
    }
  }
}

export async function takeOut(products) {
  const groups = new Map();
  for (const product of products) {
    if (!groups.has(product.group_id)) groups.set(product.group_id, await marketJson(`api/product-groups/${product.group_id}`));
    await marketJson(`api/product-groups/${product.group_id}/variants/${product.id}`, { method: "DELETE" });
  }
  await load();
  changed(t("goods.variants.out"), async () => {
    for (const product of products) await putBack(groups.get(product.group_id), product.id);
    await load();
  });
}

/** The group is gone if it has lost its last variant: then the first one that comes back makes it anew, under another number. */
async function putBack(group, productId) {
  const { values } = group.variants.find((one) => one.id === productId);
  const variant = { product_id: productId, values };
  try {
    await marketJson(`api/product-groups/${group.id}/variants`, { method: "POST", json: variant });
  } catch (error) {
    if (error.status !== 404) throw error;
    const made = await marketJson(shopPath("product-groups"), { method: "POST", json: { name: group.name, axes: group.axes, variants: [variant] } });
    group.id = made.id;
  }
}

const onceOnly = () => ({ "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) });
