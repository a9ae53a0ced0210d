/** Changes of single products. None overwrites what somebody else has changed meanwhile: the server compares versions. */

import { formatNumber, formatRupiah, t } from "../../app/words.js";
import { marketJson } from "../../market/market_calls.js";
import { categoryName } from "../../market/categories.js";
import { goods, load, refreshRow, removeRow, replaceRow, shopPath } from "./goods_list.js";
import { changed, writing } from "./undoing.js";

const MAX_TRIES = 3;

/** Somebody else changed the same field: `current` is the product as it is now. */
export class ChangedMeanwhile extends Error {
  constructor(current, field) {
    super(t("goods.conflict", { value: shownValue(field, current[field]) }));
    this.current = current;
  }
}

/** Resolves once it is written. What others changed in other fields stays. */
export const changeField = (product, field, value) => writing(writeField(product, field, value));

async function writeField(product, field, value) {
  const after = await write(product, field, value, product[field]);
  const text = t("goods.changed", { name: product.name, field: t(`goods.field.${field}`), value: shownValue(field, after[field]) });
  changed(text, () => undoField(after, field, product[field]));
}

/** Over what somebody else has written. */
export const changeAnyway = (current, field, value) => changeField(current, field, value);

async function undoField(after, field, before) {
  if (field !== "stock_quantity") {
    await write(after, field, before, after[field]);
    return;
  }
  // What was sold meanwhile stays sold.
  const products = [{ id: after.id, stock_by: before - after.stock_quantity }];
  await marketJson(shopPath("products/bulk"), { method: "POST", json: { products } });
  await refreshRow(after.id);
}

/** `expected` is what the field has now, as far as we know. Changes of one product are written one after the other. */
function write(product, field, value, expected) {
  const before = written.get(product.id) ?? Promise.resolve();
  const mine = before.catch(() => {}).then(() => writeNow(knownNow(product), field, value, expected));
  written.set(product.id, mine);
  const forget = () => { if (written.get(product.id) === mine) written.delete(product.id); };
  mine.then(forget, forget);
  return mine;
}

const written = new Map();

/** With the version that the change before has made. */
const knownNow = (product) => goods.value?.items.find((one) => one.id === product.id) ?? product;

async function writeNow(product, field, value, expected) {
  if (product[field] !== expected) throw new ChangedMeanwhile(product, field);
  for (let tries = 1, { version } = product; ; tries++) {
    try {
      const after = await marketJson(`api/products/${product.id}`, { method: "PUT", json: { [field]: value }, headers: { "If-Match": `"${version}"` } });
      replaceRow(after);
      return after;
    } catch (error) {
      if (error.status !== 412 || tries === MAX_TRIES) throw error;
      const current = await refreshRow(product.id);
      if (current[field] !== expected) throw new ChangedMeanwhile(current, field);
      version = current.version;
    }
  }
}

export const deleteProduct = (product) => writing(remove(product));

async function remove(product) {
  await marketJson(`api/products/${product.id}`, { method: "DELETE", headers: { "If-Match": `"${product.version}"` } });
  removeRow(product.id);
  changed(t("goods.deleted", { name: product.name }), () => restore(product.id));
}

/** From the list of deleted ones. */
export async function restoreProduct(product) {
  await restore(product.id);
  changed(t("goods.restored", { name: product.name }), async () => {
    await marketJson(`api/products/${product.id}`, { method: "DELETE" });
    await load();
  });
}

async function restore(id) {
  await marketJson(`api/products/${id}/restore`, { method: "POST" });
  await load();
}

export async function createProduct(given) {
  const made = await marketJson(shopPath("products"), { method: "POST", json: given, headers: { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) } });
  await load();
  changed(t("goods.created", { name: made.name }), async () => {
    await marketJson(`api/products/${made.id}`, { method: "DELETE", headers: { "If-Match": `"${made.version}"` } });
    await load();
  });
  return made;
}

/** Several fields of one product, as the dialog of its details sends them. */
export async function changeDetails(product, given) {
  const fields = Object.keys(given).filter((name) => given[name] !== (product[name] ?? null));
  if (!fields.length) return;
  const put = (values, version) => marketJson(`api/products/${product.id}`, { method: "PUT", json: values, headers: { "If-Match": `"${version}"` } });
  const pick = (values) => Object.fromEntries(fields.map((name) => [name, values[name] ?? null]));
  const after = await put(pick(given), product.version);
  replaceRow(after);
  changed(t("goods.changed.details", { name: after.name }), async () => replaceRow(await put(pick(product), after.version)));
}

export function shownValue(field, value) {
  if (value === null || value === undefined || value === "") return "–";
  // What was typed may be no number.
  if (typeof value === "number") return field === "price" ? formatRupiah(value) : formatNumber(value);
  if (field === "category") return categoryName(value);
  if (field === "condition" || field === "is_available") return t(`goods.value.${field}.${value}`);
  return String(value);
}
