/** What a product costs, and what it costs otherwise, while a promotion lowers the price. */

import { Badge } from "../../design/components.js";
import { html } from "../../app/view.js";
import { formatRupiah, language, t } from "../../app/words.js";

const ZONES = { WIB: "Asia/Jakarta", WITA: "Asia/Makassar", WIT: "Asia/Jayapura" };

/** The discount is counted from the lowest price of the 30 days before: without one there is none to show. */
export function Price({ product, large = false }) {
  const promotion = product.promotion;
  return html`<p class=${large ? "product-price large numbers" : "product-price numbers"}>${formatRupiah(product.price)}
    ${promotion && html` <span class="price-before"><span class="visually-hidden">${t("shop.promotion.normally")} </span><s>${formatRupiah(promotion.normal_price)}</s></span>`}
    ${promotion?.discount_percent && html` <${Badge} kind="good" icon="tag">${t("shop.promotion.percent", { percent: promotion.discount_percent })}<//>`}</p>`;
}

/** `zone`: of the shop, as it counts its days. */
export function PromotionFacts({ promotion, zone }) {
  const lowest = { price: formatRupiah(promotion.lowest_price_30d) };
  const name = ZONES[zone] ? zone : "WIB";
  const until = new Date(promotion.ends_at).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "short", timeZone: ZONES[name] });
  return html`<p class="soft promotion-facts"><small>${t(promotion.discount_percent === null ? "shop.promotion.no.discount" : "shop.promotion.lowest", lowest)} ${t("shop.promotion.until", { until, zone: name })}</small></p>`;
}
