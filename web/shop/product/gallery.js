/** All pictures of a product: one large, the others to choose from. */

import { html, useState } from "../../app/view.js";
import { addressOf } from "../../app/addresses.js";
import { t } from "../../app/words.js";
import { Picture } from "../goods/product_card.js";

export function Gallery({ product }) {
  const [at, setAt] = useState(0);
  const pictures = product.pictures ?? [];
  const shown = pictures[at] ?? pictures[0];
  if (!shown) return html`<${Picture} product=${product} />`;
  return html`<div class="gallery">
    <img class="product-picture" src=${addressOf(shown.urls.large)} width=${shown.width} height=${shown.height} alt=${shown.alt ?? t("shop.picture.of", { name: product.name })} decoding="async" />
    ${pictures.length > 1 && html`<ul class="row-wrap thumbnails">${pictures.map((one, number) => html`<li key=${one.id}><button type="button" aria-pressed=${number === at}
      aria-label=${t("shop.picture.show", { number: number + 1 })} onClick=${() => setAt(number)}><img src=${addressOf(one.urls.small)} alt="" loading="lazy" decoding="async" /></button></li>`)}</ul>`}
  </div>`;
}
