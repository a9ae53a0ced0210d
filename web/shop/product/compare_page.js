/** Products side by side, as the database has them; what is best in a row is marked. */

import { Icon, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatRupiah, language, t, wordOr } from "../../app/words.js";
import { marketJson } from "../../market/market_calls.js";
import { attributeName, attributeText, kilometres } from "../goods/product_card.js";
import { near, nearParameters } from "../address/near.js";
import { parametersOf, productHash } from "../address/place.js";

export function ComparePage({ ids }) {
  const [seen, setSeen] = useState(null);
  const [error, setError] = useState("");
  const at = near.value;
  useEffect(() => {
    marketJson(`api/products/compare?${parametersOf({ ids: ids.join(), ...nearParameters() })}`).then(setSeen, (fault) => setError(fault.message));
  }, [at, language.value]);
  if (error) return html`<${Note} kind="bad" role="alert">${error} <a href="#/">${t("shop.back")}</a><//>`;
  if (!seen) return html`<p class="soft" role="status">${t("shop.searching")}</p>`;
  return html`<section class="stack"><h2>${t("shop.compare")}</h2><div class="compare scroll" tabindex="0" role="region" aria-label=${t("shop.compare")}><table class="table">
    <thead><tr><td></td>${seen.products.map((one) => html`<th scope="col" key=${one.id}><a href=${productHash(one.id)}>${one.name}</a></th>`)}</tr></thead>
    <tbody>${seen.rows.map((row) => html`<tr key=${row.field}><th scope="row">${labelOf(row)}</th>${row.values.map((value, number) => html`<td class=${row.best === number ? "best" : ""} key=${number}>${shown(row.field, value)}${row.best === number && html` <${Icon} name="check" label=${t("shop.compare.best")} />`}</td>`)}</tr>`)}</tbody>
  </table></div></section>`;
}

/** The server has words for its own columns; what a shop calls an attribute has those of the product page. */
const labelOf = ({ field, label }) => (field.startsWith("attributes.") ? attributeName(field.slice("attributes.".length)) : label);

function shown(field, value) {
  if (value === null || value === undefined) return html`<span class="faint">–</span>`;
  if (field === "price") return formatRupiah(value);
  if (field === "distance_km") return kilometres(value);
  return typeof value === "string" ? wordOr(`shop.value.${field}.${value}`, value) : attributeText(value);
}
