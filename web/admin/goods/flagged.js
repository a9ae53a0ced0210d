/** Goods whose texts read like orders to a language model: what they say, and two ways to end it. */

import { addressOf } from "../../app/addresses.js";
import { html, useEffect, useState } from "../../app/view.js";
import { t, wordOr } from "../../app/words.js";
import { Badge, Button } from "../../design/components.js";
import { marketCall, marketJson } from "../../market/market_calls.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { ask } from "../lists/question.js";
import { markedParts, ruleAndExcerpt } from "./marked_text.js";

const PAGE = 20;

export function FlaggedGoods() {
  const pages = usePages(`api/admin/flagged-products?limit=${PAGE}`);
  return html`<${PartHead} title=${t("admin.flagged")} about=${t("admin.flagged.about")} />
    <${PagedList} pages=${pages} label=${t("admin.flagged")} empty=${t("admin.flagged.none")} keyOf=${(one) => one.product_id}>${(one) => html`<${Flagged} one=${one} onGone=${pages.reload} />`}<//>`;
}

function Flagged({ one, onGone }) {
  const [product, setProduct] = useState(null);
  const { rule, excerpt } = ruleAndExcerpt(one.reason);
  useEffect(() => { marketJson(`api/products/${one.product_id}`).then(setProduct, () => {}); }, []);
  const act = (name, path, danger) => () => ask({
    title: t(`admin.flagged.${name}.title`, { name: one.name }),
    text: t(`admin.flagged.${name}.text`),
    button: t(`admin.flagged.${name}`),
    danger,
    done: t("admin.done"),
    work: async () => { await marketCall(path, { method: "DELETE" }); onGone(); },
  });
  return html`<article class="admin-row">
    <div class="grow stack"><div class="row-wrap"><h2 class="admin-name"><a href=${`${addressOf("shop")}#/p/${one.product_id}`}>${one.name}</a></h2><${Badge} kind="warn" icon="flag">${wordOr(`admin.rule.${rule.replaceAll(" ", "_")}`, rule)}<//></div>
      <p class="faint"><small>${one.business_name} · <${Moment} at=${one.updated_at} /></small></p>
      ${product && html`<blockquote class="admin-quote">${textsOf(product).map((text) => html`<p key=${text}>${markedParts(text, excerpt).map((part) => (part.isMarked ? html`<mark>${part.text}</mark>` : part.text))}</p>`)}</blockquote>`}</div>
    <div class="admin-acts"><${Button} small icon="check" onClick=${act("clear", `api/admin/flagged-products/${one.product_id}`, false)}>${t("admin.flagged.clear")}<//>
      <${Button} small kind="danger" icon="trash-2" onClick=${act("delete", `api/products/${one.product_id}`, true)}>${t("admin.flagged.delete")}<//></div>
  </article>`;
}

/** Each text that a seller writes. */
function textsOf({ name, brand, description, tags, attributes }) {
  const more = Object.entries(attributes).map(([key, value]) => `${key}: ${value}`);
  return [name, brand, description, tags, ...more].filter(Boolean);
}
