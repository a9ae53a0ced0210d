/** A card with a title, and a list of facts: names and values. */

import { html } from "../app/view.js";
import { t } from "../app/words.js";

export function Part({ id, title, about, badge, children }) {
  return html`<section class="card detail" aria-labelledby="${id}-title" data-part=${id}><header><h2 id="${id}-title" class="grow">${title}</h2>${about && html`<span class="soft small">${about}</span>`}${badge}</header>${children}</section>`;
}

/** `facts`: `[[message, value]]`; `label` of a fact is its address for tests. */
export function Facts({ facts, wide = false }) {
  return html`<dl class=${wide ? "facts wide" : "facts"}>${facts.map(([label, value]) => html`<div data-fact=${label} key=${label}><dt>${t(label)}</dt><dd class="numbers">${value}</dd></div>`)}</dl>`;
}
