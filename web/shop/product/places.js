/** The places of a shop that has a product at several: what lies at each, and from which the buyer wants it. */

import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { near } from "../address/near.js";
import { kilometres, Stock } from "../goods/product_card.js";
import { OpeningHours } from "./opening_hours.js";

const FEW = 5;

export const withUnits = (places) => (places ?? []).filter((one) => one.available_quantity > 0);

/** The one that the shop would choose: places come nearest first, or those with most. */
export const bestFor = (places, quantity) => withUnits(places).find((one) => one.available_quantity >= quantity) ?? withUnits(places)[0] ?? null;

/** `chosen` is a `branch_id`, or null for any. Without `onChoose`, and of a single place with units, there is only the list. */
export function Places({ places, chosen, onChoose }) {
  if (!places?.length) return null;
  const row = (place, children) => html`<li key=${place.branch_id}>${children}<div class="place-hours"><${OpeningHours} shop=${place} /></div></li>`;
  if (!onChoose || withUnits(places).length < 2) {
    return html`<section class="filter" aria-label=${t("shop.places")}><h3 class="places-title">${t("shop.places")}</h3>
      <ul class="goods-places">${places.map((one) => row(one, html`<div class="place-row"><${Facts} place=${one} /></div>`))}</ul></section>`;
  }
  const choice = (branch_id, children, isDisabled = false) => html`<label class="place-row"><input type="radio" name="place" disabled=${isDisabled} checked=${chosen === branch_id} onChange=${() => onChoose(branch_id)} />${children}</label>`;
  return html`<fieldset class="filter"><legend>${t("shop.places")}</legend>
    <ul class="goods-places is-choice">
      <li key="any">${choice(null, html`<span class="grow"><strong>${t("shop.places.any")}</strong><small class="soft">${t(near.value ? "shop.places.any.near" : "shop.places.any.most")}</small></span>`)}</li>
      ${places.map((one) => row(one, choice(one.branch_id, html`<${Facts} place=${one} />`, !one.available_quantity)))}
    </ul></fieldset>`;
}

function Facts({ place }) {
  return html`<span class="grow"><strong>${place.name}</strong><small class="soft">${place.city}${place.distance_km !== null && html` · <span class="numbers">${kilometres(place.distance_km)}</span>`}</small></span>
    ${place.available_quantity > FEW ? html`<span class="soft numbers">${t("shop.in.stock", { number: place.available_quantity })}</span>` : html`<${Stock} product=${place} />`}`;
}
