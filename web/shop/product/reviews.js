/** What buyers say of a product. */

import { Badge, Button, Icon, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { marketJson } from "../account/market_calls.js";

const PAGE = 10;

export function Reviews({ productId }) {
  const [seen, setSeen] = useState(null);
  const [error, setError] = useState("");
  const read = async (before) => {
    try {
      const more = await marketJson(`api/products/${productId}/reviews?${new URLSearchParams({ ...(before && { before: before.id }), limit: PAGE })}`);
      setSeen((shown) => ({ items: [...(before ? shown.items : []), ...more], hasMore: more.length === PAGE }));
    } catch (fault) {
      setError(fault.message);
    }
  };
  useEffect(() => { read(null); }, [productId]);
  return html`<section class="card"><header><h3>${t("shop.product.reviews")}</h3></header>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${seen && !seen.items.length && html`<p class="soft">${t("shop.no.reviews")}</p>`}
    ${seen?.items.map((one) => html`<article class="review" key=${one.id}>
      <div class="row-wrap"><span class="stars" role="img" aria-label=${t("shop.stars", { number: one.rating })}>${[1, 2, 3, 4, 5].map((number) => html`<${Icon} name="star" key=${number} />`).slice(0, one.rating)}</span>
        <strong>${one.title}</strong>${one.verified_purchase && html`<${Badge} kind="good" icon="check">${t("shop.verified")}<//>`}</div>
      ${one.body && html`<p>${one.body}</p>`}
      <p class="faint"><small>${one.author ?? t("shop.account.anybody")} · ${formatDay(new Date(one.created_at))}</small></p>
    </article>`)}
    ${seen?.hasMore && html`<${Button} small onClick=${() => read(seen.items.at(-1))}>${t("shop.more")}<//>`}
  </section>`;
}
