/** The prices of a product over time, as steps: a price holds until the next one. The same numbers stand in a table. */

import { html } from "../../app/view.js";
import { formatDay, formatRupiah, t } from "../../app/words.js";

const WIDTH = 600;
const HEIGHT = 120;
const MARGIN = 8;

/** `prices`: newest first, as the server has them. */
export function PriceChart({ prices, until = Date.now() }) {
  const points = [...prices].reverse().map((one) => ({ at: Date.parse(one.valid_from), price: one.price }));
  if (points.length < 2) return html`<p class="soft">${points.length ? t("shop.price.never", { day: formatDay(new Date(points[0].at)) }) : t("shop.price.unknown")}</p>`;
  const least = Math.min(...points.map((one) => one.price));
  const most = Math.max(...points.map((one) => one.price));
  const span = Math.max(1, until - points[0].at);
  const x = (at) => MARGIN + ((at - points[0].at) / span) * (WIDTH - 2 * MARGIN);
  const y = (price) => HEIGHT - MARGIN - ((price - least) / Math.max(1, most - least)) * (HEIGHT - 2 * MARGIN);
  const steps = points.map((one, number) => `${number ? `H${x(one.at).toFixed(1)} V` : `M${x(one.at).toFixed(1)} `}${y(one.price).toFixed(1)}`).join(" ");
  return html`<figure class="price-chart"><figcaption class="soft">${t("shop.price.between", { least: formatRupiah(least), most: formatRupiah(most) })}</figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-hidden="true" preserveAspectRatio="none"><path d=${`${steps} H${x(until).toFixed(1)}`} /></svg>
    <p class="row faint price-ends"><span>${formatDay(new Date(points[0].at))}</span><span class="grow"></span><span>${formatDay(new Date(until))}</span></p>
    <details><summary>${t("shop.price.table")}</summary><table class="table"><tbody>${prices.map((one) => html`<tr key=${one.valid_from}><td>${formatDay(new Date(one.valid_from))}</td><td class="number">${formatRupiah(one.price)}</td></tr>`)}</tbody></table></details>
  </figure>`;
}
