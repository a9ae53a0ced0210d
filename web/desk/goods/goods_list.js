/** The goods of the shop that are shown: one page of a list that the server filters and sorts, and which of them are chosen. */

import { batch, computed, signal } from "../../app/view.js";
import { marketCall, marketJson } from "../../market/market_calls.js";

export const PAGE = 50;
const MANY = 500;
/** So many products can be changed at once. */
export const MAX_CHOSEN = 2000;
export const SORTS = ["newest", "updated", "name", "price_asc", "price_desc", "stock_asc", "stock_desc"];
const FILTER_OF = { all: {}, sale: { is_available: true }, hidden: { is_available: false }, low: { max_stock: 5 }, out: { max_stock: 0 } };
/** Which goods: "deleted" is a list of its own. */
export const SHOWS = [...Object.keys(FILTER_OF), "deleted"];

const NOTHING_ASKED = { q: "", show: "all", category: "", sort: "newest" };
export const asked = signal(NOTHING_ASKED);
/** `{ items, total, isExact }`; null before the first. */
export const goods = signal(null);
export const isLoading = signal(false);
export const fault = signal(null);
/** The products that are chosen, by their ids. */
export const chosen = signal(new Map());
const cursors = signal([""]);
const nextCursor = signal(null);
export const pageNumber = computed(() => cursors.value.length);
export const hasNext = computed(() => nextCursor.value !== null);

let shopId = null;
let loading = null;

export const shopPath = (path) => `api/suppliers/${shopId}/${path}`;

export function openGoods(id) {
  shopId = id;
  batch(() => {
    asked.value = NOTHING_ASKED;
    goods.value = null;
    chosen.value = new Map();
    cursors.value = [""];
  });
  return load();
}

export function ask(changes) {
  batch(() => {
    asked.value = { ...asked.value, ...changes };
    chosen.value = new Map();
    cursors.value = [""];
  });
  return load();
}

export function nextPage() {
  cursors.value = [...cursors.value, nextCursor.value];
  return load();
}

export function previousPage() {
  cursors.value = cursors.value.slice(0, -1);
  return load();
}

/** Reads the page anew that is shown. */
export async function load() {
  loading?.abort();
  const mine = (loading = new AbortController());
  isLoading.value = true;
  try {
    const page = asked.value.show === "deleted" ? await readDeleted(cursors.value.at(-1), mine.signal) : await readPage(cursors.value.at(-1), PAGE, mine.signal);
    if (mine !== loading) return;
    batch(() => {
      goods.value = page;
      nextCursor.value = page.next;
      fault.value = null;
    });
  } catch (error) {
    if (mine === loading && error.name !== "AbortError") fault.value = error;
  } finally {
    if (mine === loading) isLoading.value = false;
  }
}

async function readPage(cursor, limit, signal) {
  const { q, show, category, sort } = asked.value;
  const values = { ...FILTER_OF[show], ...(q.trim() && { q: q.trim() }), ...(category && { category }), sort, limit, ...(cursor && { cursor }) };
  return pageOf(await marketCall(`${shopPath("products")}?${new URLSearchParams(values)}`, { signal }), "cursor");
}

async function readDeleted(before, signal) {
  const values = { limit: PAGE, ...(before && { before }) };
  return pageOf(await marketCall(`${shopPath("products/deleted")}?${new URLSearchParams(values)}`, { signal }), "before");
}

/** The next page is the one that the header `Link` names. */
async function pageOf(answer, parameter) {
  const link = /<[^>]*\?([^>]*)>;\s*rel="next"/.exec(answer.headers.get("link") ?? "");
  const counted = answer.headers.get("x-total-count");
  return {
    items: (await answer.json()).map(asTheShopSets),
    total: counted === null ? null : Number(counted),
    isExact: answer.headers.get("x-total-count-is") !== "lower-bound",
    next: link && new URLSearchParams(link[1]).get(parameter),
  };
}

/** The shop sets the normal price; while a promotion is in force, the `price` of the product is that of the promotion. */
const asTheShopSets = (product) => (product.promotion ? { ...product, price: product.promotion.normal_price } : product);

/** Puts what the server has answered into the list. */
export function replaceRow(answered) {
  const product = asTheShopSets(answered);
  if (goods.value) goods.value = { ...goods.value, items: goods.value.items.map((one) => (one.id === product.id ? { ...one, ...product } : one)) };
  if (chosen.value.has(product.id)) chosen.value = new Map(chosen.value).set(product.id, { ...chosen.value.get(product.id), ...product });
}

export async function refreshRow(id) {
  const product = asTheShopSets(await marketJson(`api/products/${id}`));
  replaceRow(product);
  return product;
}

export function removeRow(id) {
  const rest = new Map(chosen.value);
  rest.delete(id);
  batch(() => {
    chosen.value = rest;
    goods.value = { ...goods.value, items: goods.value.items.filter((one) => one.id !== id), total: goods.value.total === null ? null : goods.value.total - 1 };
  });
}

export function choose(products, isChosen) {
  const all = new Map(chosen.value);
  for (const product of products) {
    if (isChosen) all.set(product.id, product);
    else all.delete(product.id);
  }
  chosen.value = all;
}

/** All that are found, as far as so many can be changed at once: returns whether these are all. */
export async function chooseAllFound() {
  const found = [];
  let cursor = "";
  do {
    const page = await readPage(cursor, MANY);
    found.push(...page.items);
    cursor = page.next;
  } while (cursor && found.length < MAX_CHOSEN);
  chosen.value = new Map(found.slice(0, MAX_CHOSEN).map((one) => [one.id, one]));
  return !cursor && found.length <= MAX_CHOSEN;
}
