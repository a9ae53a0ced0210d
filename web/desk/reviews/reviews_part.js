/** Reviews of the shop's goods, those first that wait for an answer. */

import { addressOf } from "../../app/addresses.js";
import { html, useLayoutEffect, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { Badge, Button, Icon, Note, Tabs } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { Answer } from "./answer.js";
import { fault, isUnanswered, openReviews, readReviews, reviews, showUnanswered } from "./shop_reviews.js";

export function ReviewsPart({ shop }) {
  useLayoutEffect(() => { openReviews(shop.id); }, []);
  const tabs = ["unanswered", "all"].map((id) => ({ id, label: t(`reviews.tab.${id}`) }));
  const selected = isUnanswered.value ? "unanswered" : "all";
  return html`<h1>${t("desk.reviews")}</h1>
    <${Tabs} label=${t("desk.reviews")} tabs=${tabs} selected=${selected} onSelect=${(id) => showUnanswered(id === "unanswered")} />
    ${fault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${messageOf(fault.value)}</span><${Button} small icon="refresh-cw" onClick=${() => readReviews()}>${t("desk.again")}<//></div><//>`}
    <div class="stack" role="tabpanel" id="panel-${selected}" aria-label=${t(`reviews.tab.${selected}`)}>
      ${!reviews.value && !fault.value && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
      ${reviews.value && html`<${List} />`}
    </div>`;
}

function List() {
  const { items, hasMore } = reviews.value;
  if (!items.length) return html`<div class="empty"><${Icon} name=${isUnanswered.value ? "circle-check" : "star"} /><h2>${t(isUnanswered.value ? "reviews.none.unanswered" : "reviews.none")}</h2></div>`;
  return html`${items.map((one) => html`<${Review} key=${one.id} review=${one} />`)}
    ${hasMore && html`<div><${Button} icon="chevron-down" onClick=${() => readReviews(true)}>${t("desk.more")}<//></div>`}`;
}

function Review({ review }) {
  const [isWriting, setWriting] = useState(false);
  return html`<article class="card shop-review" aria-label=${t("reviews.of", { author: review.author, product: review.product_name })}>
    <div class="row-wrap"><span class="stars" role="img" aria-label=${t("reviews.stars", { number: review.rating })}>${[1, 2, 3, 4, 5].map((number) => html`<${Icon} key=${number} name="star" />`).slice(0, review.rating)}</span>
      ${review.title && html`<strong>${review.title}</strong>`}${review.verified_purchase && html`<${Badge} kind="good" icon="check">${t("reviews.verified")}<//>`}</div>
    ${review.body && html`<p class="review-body">${review.body}</p>`}
    <p class="faint"><small>${review.author} · ${formatDay(new Date(review.created_at))} · <a href=${`${addressOf("shop")}#/p/${review.product_id}`}>${review.product_name}</a></small></p>
    <${Answer} review=${review} isWriting=${isWriting} setWriting=${setWriting} />
  </article>`;
}
