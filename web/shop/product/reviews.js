/** What buyers say of a product. */

import { Badge, Button, Field, Icon, Note, toast } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { account } from "../../market/account.js";
import { formatDay, t } from "../../app/words.js";
import { marketCall, marketJson, tokens } from "../../market/market_calls.js";

const PAGE = 10;

/** Of a variant, those of all variants of its group. */
export function Reviews({ productId, groupId }) {
  const [seen, setSeen] = useState(null);
  const [error, setError] = useState("");
  const read = async (before) => {
    try {
      const more = await marketJson(`api/products/${productId}/reviews?${new URLSearchParams({ ...(groupId && { variants: "all" }), ...(before && { before: before.id }), limit: PAGE })}`);
      setSeen((shown) => ({ items: [...(before ? shown.items : []), ...more], hasMore: more.length === PAGE }));
    } catch (fault) {
      setError(fault.message);
    }
  };
  useEffect(() => { read(null); }, [groupId ?? productId]);
  return html`<section class="card"><header><h3>${t("shop.product.reviews")}</h3></header>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${account.value && tokens.value && seen && html`<${OwnReview} productId=${productId} onDone=${() => read(null)} />`}
    ${seen && !seen.items.length && html`<p class="soft">${t("shop.no.reviews")}</p>`}
    ${seen?.items.map((one) => html`<article class="review" key=${one.id}>
      <div class="row-wrap"><span class="stars" role="img" aria-label=${t("shop.stars", { number: one.rating })}>${[1, 2, 3, 4, 5].map((number) => html`<${Icon} name="star" key=${number} />`).slice(0, one.rating)}</span>
        <strong>${one.title}</strong>${one.verified_purchase && html`<${Badge} kind="good" icon="check">${t("shop.verified")}<//>`}</div>
      ${one.body && html`<p>${one.body}</p>`}
      <p class="faint"><small>${one.author ?? t("account.anybody")} · ${formatDay(new Date(one.created_at))}</small></p>
      ${one.answer && html`<div class="review-answer"><p><strong>${t("shop.review.answer")}</strong> <span class="faint"><small>${formatDay(new Date(one.answer.updated_at))}</small></span></p><p>${one.answer.body}</p></div>`}
    </article>`)}
    ${seen?.hasMore && html`<${Button} small onClick=${() => read(seen.items.at(-1))}>${t("shop.more")}<//>`}
  </section>`;
}

function OwnReview({ productId, onDone }) {
  const [isOpen, setOpen] = useState(false);
  const [given, setGiven] = useState({ rating: 5, title: "", body: "" });
  const [error, setError] = useState("");
  const send = async (event) => {
    event.preventDefault();
    setError("");
    try {
      await marketCall(`api/products/${productId}/reviews`, { method: "POST", json: { rating: given.rating, title: given.title || null, body: given.body || null } });
      setOpen(false);
      toast(t("shop.review.thanks"));
      onDone();
    } catch (fault) {
      setError(fault.message);
    }
  };
  if (!isOpen) return html`<${Button} icon="pencil" onClick=${() => setOpen(true)}>${t("shop.review.write")}<//>`;
  const change = (name) => (event) => setGiven({ ...given, [name]: event.target.value });
  return html`<form class="stack review" onSubmit=${send}>${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <fieldset class="filter rating"><legend>${t("shop.filter.min_rating")}</legend><div class="row-wrap">${[1, 2, 3, 4, 5].map((number) => html`<label class="row" key=${number}><input type="radio" name="rating" checked=${given.rating === number}
      onChange=${() => setGiven({ ...given, rating: number })} aria-label=${t("shop.stars", { number })} />${number}</label>`)}</div></fieldset>
    <${Field} label=${t("shop.review.title")}>${(attributes) => html`<input class="input" maxlength="100" value=${given.title} onInput=${change("title")} ...${attributes} />`}<//>
    <${Field} label=${t("shop.review.body")}>${(attributes) => html`<textarea class="textarea" rows="3" maxlength="2000" value=${given.body} onInput=${change("body")} ...${attributes}></textarea>`}<//>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${() => setOpen(false)}>${t("cancel")}<//><${Button} kind="primary" type="submit">${t("shop.review.send")}<//></div></form>`;
}
