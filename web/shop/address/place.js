/** The address says what is shown: `#/?q=laptop&max_price=...`, `#/map?q=...`, `#/p/<product>`, `#/compare/<ids>`, `#/holds`, `#/orders`, `#/messages/<talk>`, `#/saved` or `#/account`. */

import { signal } from "../../app/view.js";

/** The parameters of a search, as `/api/products/search` has them. Those of many values are lists. */
export const ONE = ["q", "sort", "category", "condition", "fulfilment", "verified", "on_promotion", "min_price", "max_price", "min_rating", "available_only", "quantity", "radius_km", "user_lat", "user_lon", "supplier_id"];
export const MANY = ["brand", "city", "province", "exclude_brand", "exclude_city", "exclude"];
const MAX_VALUES = 20;
const MAX_CHARS = 200;
const MAX_COMPARED = 4;

export function placeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [kind, name = ""] = path.split("/");
  if (kind === "p" && /^\d{1,15}$/.test(name)) return { kind: "product", id: Number(name) };
  if (kind === "compare" && /^\d+(,\d+)*$/.test(name)) return { kind: "compare", ids: [...new Set(name.split(",").map(Number))].slice(0, MAX_COMPARED) };
  if (kind === "messages") return { kind, id: /^\d{1,15}$/.test(name) ? Number(name) : null };
  if (["holds", "orders", "saved", "account"].includes(kind)) return { kind };
  return { kind: "list", asked: askedOf(query), isMap: kind === "map" };
}

export const productHash = (id) => `#/p/${id}`;

/** The address that crawlers know, `shop/products/7`, becomes the page's own. */
const known = /\/shop\/products\/(\d{1,15})$/.exec(location.pathname);
if (known) history.replaceState(null, "", `../../shop${location.hash || productHash(known[1])}`);

export const place = signal(placeOf(location.hash));

addEventListener("hashchange", () => { place.value = placeOf(location.hash); });
addEventListener("popstate", () => { place.value = placeOf(location.hash); });

/** `replace` leaves no step for the back button, `stay` the page where it is. */
export function goTo(hash, { replace = false, stay = false } = {}) {
  if (hash === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  place.value = placeOf(hash);
  if (!stay) scrollTo(0, 0);
}

export const compareHash = (ids) => `#/compare/${ids.join(",")}`;

/** On the map where that is shown. */
export function listHash(asked, isMap = Boolean(place.value.isMap)) {
  const query = parametersOf(asked).toString();
  return `#/${isMap ? "map" : ""}${query ? `?${query}` : ""}`;
}

/** The search with some parameters changed; null, "" and an empty list leave one out. */
export function changed(asked, changes) {
  const all = { ...asked, ...changes };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && !value.length)));
}

export function parametersOf(asked) {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) for (const one of [value].flat()) values.append(name, one);
  return values;
}

function askedOf(query) {
  const values = new URLSearchParams(query);
  const one = ONE.map((name) => [name, values.get(name)?.slice(0, MAX_CHARS) ?? null]);
  const many = MANY.map((name) => [name, values.getAll(name).slice(0, MAX_VALUES).map((value) => value.slice(0, MAX_CHARS))]);
  return changed({}, Object.fromEntries([...one, ...many]));
}
