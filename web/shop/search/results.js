/** The goods that were found, and what the server says about the search: corrected words, what would find more. */

import { Button, Icon, Note, toast } from "../../design/components.js";
import { html, useEffect, useRef } from "../../app/view.js";
import { later } from "../../app/later.js";
import { counted, t } from "../../app/words.js";
import { ProductCard } from "../goods/product_card.js";
import { near } from "../address/near.js";
import { changed, goTo, listHash, MANY, ONE, place } from "../address/place.js";
import { labelOf } from "./chips.js";
import { fault, found, isLoading, loadMore } from "./found.js";
import { SaveSearch } from "./save_search.js";

const MapOfShops = later(async () => (await import("./map_of_shops.js")).MapOfShops, () => toast(t("shop.map.failed"), "circle-alert"), { early: false });
const SORTS = ["relevance", "price_asc", "price_desc", "rating", "newest", "distance"];

export function Results({ asked }) {
  const seen = found.value;
  if (fault.value) return html`<${Note} kind="bad" role="alert">${fault.value.message}<//>`;
  if (!seen) return html`<p class="soft" role="status">${t("shop.searching")}</p>`;
  const { isMap } = place.value;
  const byMeaning = new Set(seen.by_meaning ?? []);
  return html`<section class="results" aria-busy=${isLoading.value} aria-label=${t("shop.results")}>
    <div class="row-wrap results-head"><h2 class="visually-hidden">${t("shop.results")}</h2><p class="grow results-number" role="status">${numberOf(seen)}</p>
      ${(seen.total > 0 || isMap) && html`<${Button} icon=${isMap ? "list" : "map"} aria-pressed=${isMap} onClick=${() => goTo(listHash(asked, !isMap))}>${t("shop.map")}<//>`}<${SaveSearch} asked=${asked} />${seen.total > 0 && html`<${SortChoice} asked=${asked} />`}</div>
    <${Remarks} asked=${asked} seen=${seen} />
    ${isMap && html`<${MapOfShops} goods=${seen.items} />`}
    <div class="goods" hidden=${isMap}>${seen.items.map((product) => html`<${ProductCard} key=${product.id} product=${product} isByMeaning=${byMeaning.has(product.id)} />`)}</div>
    ${seen.next_cursor && html`<${More} />`}
    <${Nearest} nearest=${seen.nearest} />
    ${!seen.total && !seen.nearest?.items.length && html`<div class="nothing"><${Icon} name="search" /><p class="soft">${t("shop.found.hint")}</p><a class="button" href=${listHash({})}>${t("shop.back")}</a></div>`}
  </section>`;
}

function numberOf(seen) {
  if (!seen.total) return t("shop.found.none");
  return seen.total_is_exact ? counted("shop.found", seen.total) : t("shop.found.least", { number: seen.total });
}

function SortChoice({ asked }) {
  const sorts = SORTS.filter((name) => (name !== "distance" || near.value) && (name !== "relevance" || asked.q));
  const chosen = asked.sort ?? (asked.q ? "relevance" : "newest");
  return html`<label class="row"><span class="soft results-sort">${t("shop.sort")}</span><select class="select" value=${chosen} onChange=${(event) => goTo(listHash(changed(asked, { sort: event.target.value })))}>
    ${sorts.map((name) => html`<option value=${name} selected=${name === chosen}>${t(`shop.sort.${name}`)}</option>`)}</select></label>`;
}

function Remarks({ asked, seen }) {
  const missing = seen.understood?.no_goods_of ?? [];
  const place = seen.nearest?.place;
  return html`<div class="stack remarks">
    ${seen.corrected && html`<p class="soft">${t("shop.corrected", { text: seen.corrected })}</p>`}
    ${seen.did_you_mean && html`<p class="soft">${t("shop.did.you.mean")} <a href=${listHash(changed(asked, { q: seen.did_you_mean }))}>${seen.did_you_mean}</a></p>`}
    ${missing.length > 0 && html`<${Note} kind="info">${t("shop.no.goods.of", { names: missing.join(", ") })}<//>`}
    ${place && html`<${Note} kind="info">${t("shop.nothing.in.place", { place })}<//>`}
    ${seen.relaxed && html`<p class="soft">${t("shop.relaxed")}</p>`}
    ${seen.cut && html`<p class="soft">${t("shop.cut")}</p>`}
    <${Relaxations} asked=${asked} all=${seen.relaxations ?? []} />
  </div>`;
}

/** What a single filter hides. */
function Relaxations({ asked, all }) {
  const known = all.filter((one) => Object.keys(one.changed).every((name) => ONE.includes(name) || MANY.includes(name)));
  if (!known.length) return null;
  return html`<div class="row-wrap"><span class="soft">${t("shop.relaxations")}</span>${known.map((one) => html`<${Button} small key=${JSON.stringify(one.changed)} onClick=${() => goTo(listHash(changed(asked, one.changed)))}>${relaxationOf(one)}<//>`)}</div>`;
}

function relaxationOf({ without, changed: changes, count, is_exact: isExact }) {
  const parameter = { cities: "city", brands: "brand", provinces: "province", exclude_brands: "exclude_brand", origin: "radius_km" }[without] ?? without;
  const value = changes[parameter];
  const what = value === null || value === undefined || parameter === "q" ? t("shop.without", { name: t(`shop.filter.${parameter}`) }) : labelOf(parameter, value);
  return `${what}: ${isExact ? count : t("shop.at.least", { number: count })}`;
}

/** More goods, when their place comes into view, or when the button is pressed. */
function More() {
  const ref = useRef(null);
  useEffect(() => {
    const watch = new IntersectionObserver((entries) => { if (entries.some((one) => one.isIntersecting)) loadMore(); }, { rootMargin: "400px" });
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, [found.value]);
  return html`<div class="more" ref=${ref}><${Button} onClick=${loadMore} disabled=${isLoading.value}>${t("shop.more")}<//></div>`;
}

function Nearest({ nearest }) {
  if (!nearest?.items.length) return null;
  return html`<h2 class="nearest">${t("shop.nearest", { place: nearest.place })}</h2><div class="goods">${nearest.items.map((product) => html`<${ProductCard} key=${product.id} product=${product} />`)}</div>`;
}
