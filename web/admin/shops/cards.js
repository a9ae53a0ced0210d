/** Shops that showed an identity card: those that wait for a decision, and how others ended. */

import { addressOf } from "../../app/addresses.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Badge, Button, Tabs } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { ask } from "../lists/question.js";

const STATES = ["doubtful", "verified", "refused"];
const KINDS = { doubtful: "warn", verified: "good", refused: "bad" };

export function Cards({ query }) {
  const [status, setStatus] = useState(STATES.includes(query.status) ? query.status : "doubtful");
  const pages = usePages(`api/admin/verifications?status=${status}&limit=30`);
  const keyOf = (one) => one.supplier_id;
  return html`<${PartHead} title=${t("admin.cards")} about=${t("admin.cards.about")} />
    <${Tabs} label=${t("admin.status")} selected=${status} onSelect=${setStatus} tabs=${STATES.map((id) => ({ id, label: t(`admin.cards.${id}`) }))} />
    <div id=${`panel-${status}`} role="tabpanel" aria-label=${t(`admin.cards.${status}`)}>
      <${PagedList} pages=${pages} label=${t("admin.cards")} empty=${t(`admin.cards.${status}.none`)} keyOf=${keyOf}>${(one) => html`<${ShownCard} one=${one} onDecided=${pages.reload} />`}<//>
    </div>`;
}

function ShownCard({ one, onDecided }) {
  const decide = (verb, status) => ask({
    title: t(`admin.cards.${verb}.title`, { name: one.business_name }),
    text: t(`admin.cards.${verb}.text`),
    button: t(`admin.cards.${verb}.do`),
    danger: status === "refused",
    reason: "needed",
    done: t("admin.done"),
    work: async (reason) => {
      await marketJson(`api/admin/verifications/${one.supplier_id}`, { method: "PUT", json: { status, reason } });
      onDecided();
    },
  });
  const others = one.shown_before_by.map((id) => `#${id}`).join(", ");
  return html`<article class="admin-row"><div class="grow">
      <div class="row-wrap"><h2 class="admin-name"><a href=${`${addressOf("shop")}#/?supplier_id=${one.supplier_id}`}>${one.business_name}</a> <span class="faint numbers">#${one.supplier_id}</span></h2>
        <${Badge} kind=${KINDS[one.status]}>${t(`admin.cards.${one.status}`)}<//></div>
      <p class="row-wrap">${one.doubts.map((doubt) => html`<${Badge} key=${doubt} kind="warn">${t(`admin.cards.doubt.${doubt}`, { name: one.name })}<//>`)}</p>
      ${others && html`<p class="soft">${t("admin.cards.others", { shops: others })}</p>`}
      ${one.decided_reason && html`<p>${one.decided_reason}</p>`}
      <p class="faint"><small>${one.name} · <${Moment} at=${one.checked_at} />${one.decided_by ? html` · ${t("admin.ended.by", { name: one.decided_by })} <${Moment} at=${one.decided_at} />` : ""}</small></p></div>
    <div class="admin-acts">
      ${one.status !== "verified" && html`<${Button} small icon="shield-check" onClick=${() => decide("verify", "verified")}>${t("admin.cards.verify.do")}<//>`}
      ${one.status !== "refused" && html`<${Button} small kind="danger" icon="ban" onClick=${() => decide("refuse", "refused")}>${t("admin.cards.refuse.do")}<//>`}</div>
  </article>`;
}
