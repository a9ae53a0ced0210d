/** The shops of the goods that were found, on the map and as a list beside it: nearest first, each with its goods. */

import { Button, Icon, Note } from "../../design/components.js";
import { html, signal, useEffect, useRef, useState } from "../../app/view.js";
import { counted, t } from "../../app/words.js";
import { locate, near } from "../address/near.js";
import { kilometres, ProductCard } from "../goods/product_card.js";
import { ProvinceMap } from "../../market/map/province_map.js";
import { marketJson } from "../../market/market_calls.js";

const MAX_SHOPS = 500;
const AT_ONCE = 6;
const SELF = "self";

/** What the server says of a shop, by id; null of one that cannot be read. */
const shops = signal(new Map());

export function MapOfShops({ goods }) {
  const [selected, setSelected] = useState(null);
  const list = useRef(null);
  const ids = [...new Set(goods.map((one) => one.supplier_id))].slice(0, MAX_SHOPS);
  useEffect(() => { learnShops(ids); }, [ids.join()]);
  const found = ids.map((id) => shopOf(id, goods)).sort((one, other) => (one.distance ?? Infinity) - (other.distance ?? Infinity));
  const points = found.filter((one) => one.place).map((one) => ({ id: one.id, ...one.place, label: one.name, kind: "shop" }));
  if (near.value) points.push({ id: SELF, ...near.value, label: t("shop.map.you"), kind: "self" });
  const select = (id) => {
    setSelected(id);
    list.current?.querySelector(`[data-shop="${id}"]`)?.scrollIntoView({ block: "nearest" });
  };
  return html`<div class="shop-map">
    <${ProvinceMap} points=${points} selected=${selected} onSelect=${select} label=${t("shop.map.of")} />
    ${!near.value && html`<${Note} kind="info"><span class="row-wrap"><span class="grow">${t("shop.map.distances")}</span><${Button} small icon="map-pin" onClick=${() => locate().catch(() => {})}>${t("shop.near.me")}<//></span><//>`}
    <ol class="map-shops" ref=${list} aria-label=${t("shop.map.shops")}>${found.map((shop) => html`<li key=${shop.id} data-shop=${shop.id}>
      <${ShopRow} shop=${shop} isOpen=${selected === shop.id} onToggle=${() => setSelected(selected === shop.id ? null : shop.id)} /></li>`)}</ol>
  </div>`;
}

function ShopRow({ shop, isOpen, onToggle }) {
  return html`<button type="button" class="map-shop" aria-expanded=${isOpen} onClick=${onToggle}>
      <${Icon} name="store" /><span class="grow"><strong>${shop.name}</strong> <span class="soft">${shop.city}</span>${shop.isHidden && html`<small class="faint"> · ${t("shop.map.hidden")}</small>`}</span>
      <span class="soft">${counted("shop.map.goods", shop.goods.length)}</span>${shop.distance !== null && html`<span class="numbers">${kilometres(shop.distance)}</span>`}<${Icon} name=${isOpen ? "chevron-down" : "chevron-right"} />
    </button>
    ${isOpen && html`<div class="goods">${shop.goods.map((product) => html`<${ProductCard} key=${product.id} product=${product} compact />`)}</div>`}`;
}

function shopOf(id, goods) {
  const own = goods.filter((one) => one.supplier_id === id);
  const known = shops.value.get(id);
  const place = known?.latitude !== null && known?.latitude !== undefined ? { latitude: known.latitude, longitude: known.longitude } : null;
  return { id, name: own[0].supplier_name, city: own[0].city, distance: own[0].distance_km ?? null, goods: own, place, isHidden: known !== undefined && !place };
}

/** A few at a time: a page of goods may be of as many shops. */
async function learnShops(ids) {
  const waiting = ids.filter((id) => !shops.value.has(id));
  while (waiting.length) {
    const some = waiting.splice(0, AT_ONCE);
    const read = await Promise.all(some.map((id) => marketJson(`api/suppliers/${id}`).catch(() => null)));
    const all = [...shops.value, ...some.map((id, number) => [id, read[number]])];
    shops.value = new Map(all.slice(-MAX_SHOPS));
  }
}
