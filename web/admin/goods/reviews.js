/** Reviews of all goods: hidden ones, and the newest that everybody sees. */

import { addressOf } from "../../app/addresses.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Badge, Button, Icon, Tabs } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { ask } from "../lists/question.js";

const STATES = ["published", "hidden"];

export function Reviews({ query }) {
  const [status, setStatus] = useState(STATES.includes(query.status) ? query.status : "published");
  const pages = usePages(`api/admin/reviews?status=${status}&limit=30`);
  return html`<${PartHead} title=${t("admin.reviews")} about=${t("admin.reviews.about")} />
    <${Tabs} label=${t("admin.status")} selected=${status} onSelect=${setStatus} tabs=${STATES.map((id) => ({ id, label: t(`admin.reviews.${id}`) }))} />
    <div id=${`panel-${status}`} role="tabpanel" aria-label=${t(`admin.reviews.${status}`)}>
      <${PagedList} pages=${pages} label=${t("admin.reviews")} empty=${t(`admin.reviews.${status}.none`)}>${(one) => html`<${Review} one=${one} onGone=${() => pages.replace(one.id, null)} />`}<//>
    </div>`;
}

function Review({ one, onGone }) {
  const next = one.status === "hidden" ? "published" : "hidden";
  const change = () => ask({
    title: t(`admin.review.${next}.title`),
    text: t(`admin.review.${next}.text`),
    button: t(`admin.review.${next}.do`),
    danger: next === "hidden",
    reason: "wanted",
    done: t("admin.done"),
    work: async (reason) => {
      await marketJson(`api/reviews/${one.id}/status`, { method: "PUT", json: { status: next, reason } });
      onGone();
    },
  });
  return html`<article class="admin-row">
    <div class="grow stack"><div class="row-wrap"><span class="stars" role="img" aria-label=${t("admin.stars", { number: one.rating })}>${[1, 2, 3, 4, 5].slice(0, one.rating).map((number) => html`<${Icon} name="star" key=${number} />`)}</span>
        ${one.title && html`<h2 class="admin-name">${one.title}</h2>`}${one.verified_purchase && html`<${Badge} kind="good" icon="check">${t("admin.verified")}<//>`}</div>
      ${one.body && html`<p>${one.body}</p>`}
      <p class="faint"><small>${one.author} · <${Moment} at=${one.created_at} /> · <a href=${`${addressOf("shop")}#/p/${one.product_id}`}>${one.product_name}</a></small></p></div>
    <div class="admin-acts"><${Button} small kind=${next === "hidden" ? "danger" : ""} icon=${next === "hidden" ? "eye-off" : "eye"} onClick=${change}>${t(`admin.review.${next}.do`)}<//></div>
  </article>`;
}
