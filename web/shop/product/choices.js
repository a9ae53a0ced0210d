/** Choosing among the variants of a product: a group of radio buttons for each axis, such as size and colour. */

import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { attributeName } from "../goods/product_card.js";
import { goTo, productHash } from "../address/place.js";

export const variantOf = (group, id) => group?.variants.find((one) => one.id === id);

export function Choices({ group, id }) {
  const chosen = variantOf(group, id);
  if (!chosen || group.variants.length < 2) return null;
  return html`<div class="choices stack">${group.axes.map((axis) => html`<${Axis} key=${axis} group=${group} axis=${axis} chosen=${chosen} />`)}</div>`;
}

/** The address names the variant. A choice leaves no step for the back button, which leads to the goods. */
function Axis({ group, axis, chosen }) {
  const choose = (value) => goTo(productHash(bestWith(group, axis, value, chosen).id), { replace: true, stay: true });
  return html`<fieldset class="filter choice-axis"><legend>${attributeName(axis)}: <span class="soft">${chosen.values[axis]}</span></legend>
    <div class="row-wrap">${group.options[axis].map((value) => {
    const state = stateOf(exactWith(group, axis, value, chosen));
    const says = state === "free" ? "" : t(`shop.variant.${state}`);
    return html`<label class=${`choice is-${state}`} key=${value} title=${says || undefined}><input type="radio" name=${`axis-${axis}`} value=${value} checked=${isSame(chosen.values[axis], value)} onChange=${() => choose(value)} />
        <span>${value}${says && html`<span class="visually-hidden"> (${says})</span>`}</span></label>`;
  })}</div></fieldset>`;
}

const isSame = (one, other) => one?.toLowerCase() === other?.toLowerCase();

/** The variant that differs from the chosen one in this axis alone, if there is one. */
function exactWith(group, axis, value, chosen) {
  return group.variants.find((one) => group.axes.every((name) => isSame(one.values[name], name === axis ? value : chosen.values[name])));
}

function stateOf(variant) {
  if (!variant) return "missing";
  return variant.available_quantity > 0 ? "free" : "sold";
}

/** Where the exact one is missing: of those with the value the one that is most like the chosen one, rather one that can be bought. */
function bestWith(group, axis, value, chosen) {
  const exact = exactWith(group, axis, value, chosen);
  if (exact) return exact;
  const likeness = (one) => group.axes.filter((name) => isSame(one.values[name], chosen.values[name])).length + (one.available_quantity > 0 ? 0.5 : 0);
  return group.variants.filter((one) => isSame(one.values[axis], value)).sort((one, other) => likeness(other) - likeness(one))[0];
}
