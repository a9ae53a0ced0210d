/** What came and went, what was left after it, and corrections. */

import { html, useLayoutEffect, useState } from "../../app/view.js";
import { formatDay, formatNumber, formatTime, t } from "../../app/words.js";
import { Badge, Button, Icon, Note } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { CorrectionDialog } from "./correction_dialog.js";
import { ask, asked, fault, KINDS, ledger, openLedger, readLedger } from "./movements.js";

const ICONS = { sold: "shopping-bag", returned: "undo-2", correction: "wrench", set: "pencil", import: "file-spreadsheet", initial: "package-plus", transfer: "truck", carried: "archive" };

export function StockPart({ shop }) {
  const [corrected, setCorrected] = useState(undefined);
  useLayoutEffect(() => { openLedger(shop.id); }, []);
  const { kind, product } = asked.value;
  return html`<div class="row-wrap"><h1 class="grow">${t("desk.stock")}</h1><${Button} kind="primary" icon="wrench" onClick=${() => setCorrected(product)}>${t("stock.correct")}<//></div>
    <p class="soft">${t("stock.about")}</p>
    <div class="row-wrap stock-filters">
      <select class="select" aria-label=${t("stock.kind")} value=${kind} onChange=${(event) => ask({ kind: event.target.value })}><option value="">${t("stock.kind.all")}</option>${KINDS.map((name) => html`<option value=${name} selected=${name === kind}>${t(`stock.kind.${name}`)}</option>`)}</select>
      ${product && html`<${Button} small icon="x" onClick=${() => ask({ product: null })} label=${t("stock.product.remove", { name: product.name })}><span class="one-line">${product.name}</span><//>`}
    </div>
    ${fault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${messageOf(fault.value)}</span><${Button} small icon="refresh-cw" onClick=${() => readLedger()}>${t("desk.again")}<//></div><//>`}
    ${!ledger.value && !fault.value && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${ledger.value && html`<${Ledger} isFiltered=${Boolean(kind || product)} />`}
    ${corrected !== undefined && html`<${CorrectionDialog} product=${corrected} onClose=${() => setCorrected(undefined)} />`}`;
}

function Ledger({ isFiltered }) {
  const { items, hasMore } = ledger.value;
  if (!items.length) return html`<div class="empty"><${Icon} name="history" /><h2>${t(isFiltered ? "stock.none.found" : "stock.none")}</h2></div>`;
  return html`<ol class="ledger card" aria-label=${t("desk.stock")}>${items.map((one) => html`<${Movement} movement=${one} key=${one.id} />`)}</ol>
    ${hasMore && html`<div><${Button} icon="chevron-down" onClick=${() => readLedger(true)}>${t("desk.more")}<//></div>`}`;
}

function Movement({ movement }) {
  const at = new Date(movement.at);
  const signed = movement.delta > 0 ? `+${formatNumber(movement.delta)}` : formatNumber(movement.delta).replace("-", "−");
  return html`<li class="movement">
    <div class="movement-what"><button type="button" class="movement-name" onClick=${() => ask({ product: { id: movement.product_id, name: movement.product_name } })}>${movement.product_name}</button>
      <p class="row-wrap"><${Badge} kind=${movement.kind === "sold" ? "good" : ""} icon=${ICONS[movement.kind]}>${t(`stock.kind.${movement.kind}`)}<//>
        ${movement.reason && html`<span>${movement.reason}</span>`}<span class="faint"><small>${formatDay(at)}, ${formatTime(at)}${movement.actor?.startsWith("token:") ? ` · ${t("stock.by.token")}` : ""}</small></span></p></div>
    <p class="movement-number"><span class="faint"><small>${t("stock.change")}</small></span><strong class=${`numbers ${movement.delta < 0 ? "is-less" : "is-more"}`}>${signed}</strong></p>
    <p class="movement-number"><span class="faint"><small>${t("stock.after")}</small></span><strong class="numbers">${movement.on_hand === null ? "–" : formatNumber(movement.on_hand)}</strong></p>
  </li>`;
}
