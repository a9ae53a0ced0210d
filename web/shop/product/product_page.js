/** One product: what it is and costs, whose it is, how one gets it, and what others say of it. */

import { Badge, Button, Icon, Note } from "../../design/components.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { marketJson } from "../../market/market_calls.js";
import { attributeName, attributeText, compared, kilometres, Stars, Stock, toggleCompared } from "../goods/product_card.js";
import { Price, PromotionFacts } from "../goods/price.js";
import { WriteButton } from "../../market/talks/write_button.js";
import { near, nearParameters } from "../address/near.js";
import { listHash, parametersOf } from "../address/place.js";
import { Choices, variantOf } from "./choices.js";
import { Gallery } from "./gallery.js";
import { HoldBox } from "./hold_box.js";
import { OpeningHours } from "./opening_hours.js";
import { PriceChart } from "./price_chart.js";
import { Reviews } from "./reviews.js";
import { TellMe } from "./tell_me.js";

export function ProductPage({ id }) {
  const [seen, setSeen] = useState(null);
  const [error, setError] = useState("");
  const at = near.value;
  const read = async () => {
    const parameters = parametersOf(nearParameters());
    const product = await marketJson(`api/products/${id}?${parameters}`);
    const [shop, prices] = await Promise.all([marketJson(`api/suppliers/${product.supplier_id}`), marketJson(`api/products/${id}/price-history`)]);
    return { product, shop, prices };
  };
  const newest = useRef(0);
  const refresh = () => {
    const number = (newest.current += 1); // who goes through the choices by keyboard asks faster than the server answers
    const last = (work) => (value) => { if (number === newest.current) work(value); };
    return read().then(last((all) => { setError(""); setSeen(all); }), last((fault) => setError(fault.status === 404 ? t("shop.product.gone") : fault.message)));
  };
  useEffect(() => { refresh(); }, [at, id]);
  const name = seen?.product.name;
  useEffect(() => { if (name) { document.title = name; return () => { document.title = t("page.shop"); }; } return undefined; }, [name]);
  if (error) return html`<${Note} kind="bad" role="alert">${error} <a href="#/">${t("shop.back")}</a><//>`;
  const variant = variantOf(seen?.product.group, id);
  if (!seen || (seen.product.id !== id && !variant)) return html`<p class="soft" role="status">${t("shop.searching")}</p>`;
  const { shop, prices } = seen;
  const isLoading = seen.product.id !== id;
  const product = isLoading ? { ...seen.product, ...variant, places: null, pictures: variant.picture ? [variant.picture] : [] } : seen.product;
  const isChosen = compared.value.includes(id);
  const ofShop = product.places ? product.places.find((one) => one.branch_id === 0)?.distance_km ?? null : product.distance_km;
  return html`<article class="product" aria-busy=${isLoading}>
    <p><a class="row back" href="#/" onClick=${(event) => { if (history.length > 1) { event.preventDefault(); history.back(); } }}><${Icon} name="chevron-left" />${t("shop.back")}</a></p>
    <div class="product-head">
      <${Gallery} key=${id} product=${product} />
      <div class="stack">
        <h2>${product.name}</h2>
        <div aria-live="polite"><${Price} product=${product} large /></div>
        ${product.promotion && html`<${PromotionFacts} promotion=${product.promotion} zone=${shop.time_zone} />`}
        <div class="row-wrap"><${Stars} rating=${product.rating} number=${product.rating_count} /><${Badge} kind=${product.condition === "used" ? "warn" : ""}>${t(`shop.value.condition.${product.condition}`)}<//><${Stock} product=${product} />
          <span class="soft numbers">${t("shop.in.stock", { number: product.available_quantity })}</span></div>
        ${product.fulfilment && html`<p class="delivery"><${Icon} name=${product.fulfilment.suggestion === "pickup" ? "store" : "truck"} /> ${product.fulfilment.reason}</p>`}
        <${Choices} group=${product.group} id=${id} />
        <${HoldBox} key=${id} product=${product} onChange=${refresh} />
        <div class="row-wrap">
          <${TellMe} key=${`tell-${id}`} product=${product} />
          <${WriteButton} key=${`write-${id}`} path=${`api/products/${id}/talk`} label=${t("talk.ask.shop")} about=${product.name} />
          <${Button} icon="scale" aria-pressed=${isChosen} onClick=${() => toggleCompared(id)}>${t(isChosen ? "shop.compare.chosen.one" : "shop.compare.add")}<//>
        </div>
      </div>
    </div>
    ${product.description && html`<p class="product-text">${product.description}</p>`}
    <${Attributes} product=${product} />
    <section class="card"><header><h3>${t("shop.product.shop")}</h3></header>
      <p class="row-wrap"><a href=${listHash({ supplier_id: String(shop.id) })}>${shop.business_name}</a>${shop.verified_at && html` <${Badge} kind="good" icon="shield-check">${t("shop.verified.shop")}<//>`}${shop.rating && html` <${Stars} rating=${shop.rating} />`}</p>
      <p class="soft"><${Icon} name="map-pin" /> ${[shop.city, shop.province].filter(Boolean).join(", ")}${ofShop !== null && ` · ${kilometres(ofShop)}`}</p>
      <${OpeningHours} shop=${shop} />
    </section>
    <section class="card"><header><h3>${t("shop.product.prices")}</h3></header><${PriceChart} prices=${prices} /></section>
    <${Reviews} productId=${id} groupId=${product.group_id} />
  </article>`;
}

function Attributes({ product }) {
  const rows = Object.entries({ ...(product.brand && { brand: product.brand }), ...product.attributes });
  if (!rows.length) return null;
  return html`<section class="card"><header><h3>${t("shop.product.attributes")}</h3></header>
    <table class="table"><tbody>${rows.map(([name, value]) => html`<tr key=${name}><th scope="row">${attributeName(name)}</th><td>${attributeText(value)}</td></tr>`)}</tbody></table></section>`;
}
