/** How goods are shown wherever they are: a card, a price, stars, and which are chosen to be compared. */

import { Badge, Icon } from "../../design/components.js";
import { addressOf } from "../../app/addresses.js";
import { html, signal } from "../../app/view.js";
import { counted, formatNumber, formatRupiah, language, t, wordOr } from "../../app/words.js";
import { productHash } from "../address/place.js";
import { placeName } from "./place_name.js";
import { Price } from "./price.js";

const MAX_COMPARED = 4;
const FEW = 5;

/** Ids, in the order in which they were chosen. */
export const compared = signal([]);

export function toggleCompared(id) {
  compared.value = compared.value.includes(id) ? compared.value.filter((one) => one !== id) : [...compared.value, id].slice(-MAX_COMPARED);
}

export function ProductCard({ product, isByMeaning = false, compact = false }) {
  const isChosen = compared.value.includes(product.id);
  return html`<article class=${compact ? "product-card compact" : "product-card"}>
    <a class="product-link" href=${productHash(product.id)}><${Picture} product=${product} compact=${compact} /><h3 class="product-name">${product.name}</h3></a>
    <${Price} product=${product} />
    <${Variants} variants=${product.variants} />
    <div class="row-wrap product-facts">
      <${Stars} rating=${product.rating} number=${product.rating_count} />
      ${product.condition === "used" && html`<${Badge} kind="warn">${t("shop.value.condition.used")}<//>`}
      <${Stock} product=${product} />
      ${isByMeaning && html`<${Badge} kind="info" icon="sparkles">${t("shop.by.meaning")}<//>`}
    </div>
    <p class="product-shop soft one-line"><${Icon} name="store" /> ${product.supplier_name}${product.supplier_verified && html` <${VerifiedMark} />`}</p>
    <p class=${product.place?.branch_id ? "product-place soft" : "product-place soft one-line"}><${Icon} name="map-pin" /> ${product.place?.branch_id ? placeName(product.place) : (product.city ?? t("shop.nowhere"))}${product.distance_km !== null && product.distance_km !== undefined && html` · ${kilometres(product.distance_km)}`}</p>
    ${!compact && html`<label class="product-compare"><input type="checkbox" checked=${isChosen} onChange=${() => toggleCompared(product.id)} aria-label=${t("shop.compare.choose", { name: product.name })} />${t("shop.compare.short")}</label>`}
  </article>`;
}

/** "3 sizes, 2 colours, from Rp 399.000". */
function Variants({ variants }) {
  if (!variants || variants.count < 2) return null;
  const axes = Object.entries(variants.options).filter(([, values]) => values.length > 1);
  const said = axes.map(([name, values]) => `${formatNumber(values.length)} ${wordOr(`shop.axis.${name.toLowerCase()}`, name.replaceAll("_", " "))}`);
  if (variants.price_from < variants.price_to) said.push(t("shop.variants.from", { price: formatRupiah(variants.price_from) }));
  return said.length ? html`<p class="product-variants soft">${said.join(", ")}</p>` : null;
}

/** The first picture of the product, or a tile with the first letters of its name: of one colour for each category. */
export function Picture({ product, compact = false }) {
  const first = product.picture ?? product.pictures?.[0];
  if (first) {
    const small = addressOf(first.urls.small);
    const sizes = `${small} 160w, ${addressOf(first.urls.medium)} 480w`;
    return html`<img class="product-picture" src=${small} srcset=${sizes} sizes=${compact ? "4.5rem" : "(max-width: 30rem) 45vw, 14rem"} alt=${first.alt ?? ""} loading="lazy" decoding="async" />`;
  }
  return html`<span class="product-picture tile" data-hue=${hueOf(product.category ?? "")} aria-hidden="true">${initialsOf(product.name)}</span>`;
}

export function Stars({ rating, number }) {
  if (rating === null || rating === undefined) return html`<span class="faint">${t("shop.no.reviews")}</span>`;
  return html`<span class="stars numbers"><${Icon} name="star" /> ${formatNumber(rating, 1)}${number !== undefined && html` <span class="faint">(${counted("shop.reviews.number", number)})</span>`}</span>`;
}

export function Stock({ product }) {
  const left = product.available_quantity;
  if (!left) return html`<${Badge} kind="bad">${t("shop.sold.out")}<//>`;
  return left <= FEW ? html`<${Badge} kind="warn">${t("shop.only.left", { number: left })}<//>` : null;
}

/** Beside the name of a shop whose person showed an identity card. */
export function VerifiedMark() {
  return html`<span class="verified-mark" title=${t("shop.verified.shop")}><${Icon} name="shield-check" /><span class="visually-hidden">${t("shop.verified.shop")}</span></span>`;
}

export const kilometres = (distance) => `${formatNumber(distance, distance < 10 ? 1 : 0)} km`;

/** The name of an attribute as a shop wrote it: `ram_gb` is "RAM (GB)" where we have a word, else "ram gb". */
export const attributeName = (name) => wordOr(`shop.attribute.${name}`, name.replaceAll("_", " "));
export const attributeText = (value) => (typeof value === "number" ? value.toLocaleString(language.value, { maximumFractionDigits: 2 }) : String(value));

function initialsOf(name) {
  return name.split(/\s+/).slice(0, 2).map((word) => [...word][0] ?? "").join("").toUpperCase();
}

function hueOf(text) {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) % 5;
  return sum + 1;
}
