/** The filters beside the goods, with how many each would find. On a phone they are a drawer. */

import { Button, Dialog, Field } from "../../design/components.js";
import { html, useState } from "../../app/view.js";
import { formatNumber, formatRupiah, formatShort, t, wordOr } from "../../app/words.js";
import { changed, goTo, listHash } from "../address/place.js";
import { categoryName } from "../../market/categories.js";
import { facets } from "./found.js";

const MAX_SHOWN = 8;
const CONDITIONS = ["new", "used"];
const FULFILMENTS = ["pickup", "delivery"];
const RATINGS = [4, 3];
const VERIFIED = ["1"];
const ON_PROMOTION = ["1"];

export function Filters({ asked }) {
  const counts = facets.value ?? {};
  const set = (changes) => goTo(listHash(changed(asked, changes)));
  return html`<div class="filters">
    <${Values} name="category" asked=${asked} values=${counts.category ?? []} onToggle=${(value) => set({ category: asked.category === value ? null : value })} isChosen=${(value) => asked.category === value} />
    <${Prices} asked=${asked} ranges=${counts.price ?? []} set=${set} key=${`${asked.min_price}-${asked.max_price}`} />
    <${Values} name="brand" asked=${asked} values=${counts.brand ?? []} onToggle=${(value) => set({ brand: toggled(asked.brand, value) })} isChosen=${(value) => (asked.brand ?? []).includes(value)} />
    <${Values} name="city" asked=${asked} values=${counts.city ?? []} onToggle=${(value) => set({ city: toggled(asked.city, value) })} isChosen=${(value) => (asked.city ?? []).includes(value)} />
    <${Choices} name="condition" values=${CONDITIONS} chosen=${asked.condition} set=${set} />
    <${Choices} name="fulfilment" values=${FULFILMENTS} chosen=${asked.fulfilment} set=${set} />
    <${Choices} name="verified" values=${VERIFIED} chosen=${asked.verified} set=${set} />
    <${Choices} name="on_promotion" values=${ON_PROMOTION} chosen=${asked.on_promotion} set=${set} />
    <${Choices} name="min_rating" values=${RATINGS} chosen=${asked.min_rating && Number(asked.min_rating)} set=${set} />
  </div>`;
}

export function FiltersDrawer({ asked, onClose }) {
  return html`<${Dialog} title=${t("shop.filters")} edge="left" onClose=${onClose} footer=${html`<${Button} kind="primary" onClick=${onClose}>${t("shop.filters.done")}<//>`}><${Filters} asked=${asked} /><//>`;
}

function Values({ name, values, onToggle, isChosen }) {
  const [isWhole, setWhole] = useState(false);
  if (!values.length) return null;
  const shown = isWhole ? values : values.slice(0, MAX_SHOWN);
  return html`<fieldset class="filter"><legend>${t(`shop.filter.${name}`)}</legend>
    ${shown.map((one) => html`<label class="filter-value" key=${one.value}><input type="checkbox" checked=${isChosen(one.value)} onChange=${() => onToggle(one.value)} /><span class="grow one-line">${name === "category" ? categoryName(one.value) : one.label}</span><span class="faint numbers">${formatNumber(one.count)}</span></label>`)}
    ${values.length > MAX_SHOWN && html`<${Button} small kind="quiet" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>${t(isWhole ? "shop.filter.fewer" : "shop.filter.more", { number: values.length - MAX_SHOWN })}<//>`}
  </fieldset>`;
}

function Prices({ asked, ranges, set }) {
  const [least, setLeast] = useState(asked.min_price ?? "");
  const [most, setMost] = useState(asked.max_price ?? "");
  const apply = (event) => {
    event.preventDefault();
    const [low, high] = [least, most].map((text) => String(text).replace(/\D/g, ""));
    const isTurned = low && high && Number(low) > Number(high);
    set({ min_price: isTurned ? high : low, max_price: isTurned ? low : high });
  };
  const isRange = (range) => String(range.least ?? "") === (asked.min_price ?? "") && String(range.most ?? "") === (asked.max_price ?? "");
  const input = (name, value, setValue) => html`<${Field} label=${t(`shop.filter.${name}`)}>${(attributes) => html`<input class="input numbers" inputmode="numeric" value=${value} onInput=${(event) => setValue(event.target.value)} ...${attributes} />`}<//>`;
  return html`<fieldset class="filter"><legend>${t("shop.filter.price")}</legend>
    ${ranges.map((range) => html`<label class="filter-value" key=${range.least}><input type="checkbox" checked=${isRange(range)}
      onChange=${() => set(isRange(range) ? { min_price: null, max_price: null } : { min_price: range.least, max_price: range.most })} /><span class="grow">${rangeOf(range)}</span><span class="faint numbers">${formatNumber(range.count)}</span></label>`)}
    <form class="price-form" onSubmit=${apply}>${input("min_price", least, setLeast)}${input("max_price", most, setMost)}<${Button} small type="submit">${t("shop.filter.apply")}<//></form>
  </fieldset>`;
}

function Choices({ name, values, chosen, set }) {
  return html`<fieldset class="filter"><legend>${t(`shop.filter.${name}`)}</legend>
    ${values.map((value) => html`<label class="filter-value" key=${value}><input type="checkbox" checked=${chosen === value} onChange=${() => set({ [name]: chosen === value ? null : value })} /><span class="grow">${wordOr(`shop.value.${name}.${value}`, String(value))}</span></label>`)}
  </fieldset>`;
}

function rangeOf({ least, most }) {
  if (most === null) return t("shop.price.from", { least: `Rp ${formatShort(least)}` });
  if (!least) return t("shop.price.to", { most: formatRupiah(most) });
  return `Rp ${formatShort(least)} – ${formatShort(most + 1)}`;
}

const toggled = (values = [], value) => (values.includes(value) ? values.filter((one) => one !== value) : [...values, value]);
