/** What limits the search: what was chosen, and what was read in the text. Each can be taken away where that is possible. */

import { Icon } from "../../design/components.js";
import { html } from "../../app/view.js";
import { formatRupiah, t, wordOr } from "../../app/words.js";
import { changed, goTo, listHash, MANY } from "../address/place.js";
import { categoryName } from "../../market/categories.js";
import { found, readings } from "./found.js";

const MONEY = new Set(["min_price", "max_price", "total_price"]);
const IN_SENTENCES = { brands: "brand", cities: "city", provinces: "province", exclude_brands: "exclude_brand", exclude_cities: "exclude_city", exclude_terms: "exclude", order_by: "sort" };
const NOT_READ = new Set(["no_goods_of", "near_cities"]); // said in a sentence of its own, or a way to read another one
const NOT_CHIPS = new Set(["q", "sort", "user_lat", "user_lon"]);

export function FilterChips({ asked }) {
  const chosen = Object.entries(asked).filter(([name]) => !NOT_CHIPS.has(name)).flatMap(([name, value]) => [value].flat().map((one) => ({ name, value: one, without: withoutValue(asked, name, one) })));
  const read = found.value?.asked === asked ? understood(asked, found.value.understood) : [];
  if (!chosen.length && !read.length) return null;
  return html`<ul class="filter-chips" aria-label=${t("shop.filters.active")}>${[...chosen, ...read].map((chip) => html`<li key=${`${chip.name}${chip.value}${Boolean(chip.words)}`}><${Chip} ...${chip} /></li>`)}</ul>`;
}

function Chip({ name, value, words, without }) {
  const label = labelOf(name, value);
  const title = words ? t("shop.chip.read", { words }) : undefined;
  if (!without) return html`<span class="filter-chip" title=${title}>${words && html`<${Icon} name="sparkles" />`}${label}</span>`;
  return html`<button type="button" class="filter-chip" title=${title} aria-label=${t("shop.chip.remove", { name: label })} onClick=${() => goTo(listHash(without))}>
    ${words && html`<${Icon} name="sparkles" />`}<span>${label}</span><${Icon} name="x" /></button>`;
}

/** A filter that was read in the text goes with its words, where they stand there as they were read. */
function understood(asked, said) {
  return Object.entries(said ?? {}).filter(([name]) => !NOT_READ.has(name)).flatMap(([name, value]) => {
    const words = readings.value.find((one) => one.field === name)?.words ?? "";
    const shorter = words && withoutWords(asked.q, words);
    const without = shorter ? changed(asked, { q: shorter }) : null;
    return [value].flat().map((one) => ({ name: IN_SENTENCES[name] ?? name, value: one, words: words || asked.q, without }));
  });
}

function withoutWords(text, words) {
  const at = text.toLowerCase().indexOf(words.toLowerCase());
  return at < 0 ? null : `${text.slice(0, at)} ${text.slice(at + words.length)}`.replace(/\s+/g, " ").trim();
}

function withoutValue(asked, name, value) {
  return changed(asked, { [name]: MANY.includes(name) ? asked[name].filter((one) => one !== value) : null });
}

export function labelOf(name, value) {
  const shown = MONEY.has(name) ? formatRupiah(value) : name === "category" ? categoryName(value) : wordOr(`shop.value.${name}.${value}`, String(value));
  return wordOr(`shop.chip.${name}`, `${name}: ${shown}`, { value: shown });
}
