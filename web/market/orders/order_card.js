/** One order as both sides see it: what, how much, how it comes, what is to be done and by when, and what happened. */

import { html, useState } from "../../app/view.js";
import { formatDay, formatRupiah, formatTime, t, wordOr } from "../../app/words.js";
import { Badge, Icon } from "../../design/components.js";
import { readOrder } from "./order_calls.js";

export const ORDER_KINDS = { draft: "", placed: "warn", accepted: "info", paid: "info", handed_over: "good", shipped: "good", received: "good", refused: "bad", cancelled: "", expired: "", returned: "warn" };
const DELIVERY_ICONS = { pickup: "store", courier: "truck", expedition: "package" };

/** `children` are what this side may do. */
export function OrderCard({ order, title, children }) {
  const line = (one) => html`<li key=${one.position}><span class="grow">${one.name}${one.quantity < one.ordered && html` <span class="faint">${t("order.line.part", { quantity: one.quantity, ordered: one.ordered })}</span>`}${one.returned > 0 && html` <span class="faint">${t("order.line.returned", { number: one.returned })}</span>`}</span>
    <span class="numbers soft">${one.quantity} × ${formatRupiah(one.unit_price)}</span><span class="numbers order-sum">${formatRupiah(one.total)}</span></li>`;
  return html`<article class="card order-card" aria-label=${t("order.of", { number: order.number })}>
    <header role="presentation"><h3 class="grow">${title}<br /><small class="soft numbers">${t("order.number", { number: order.number })}</small></h3><${Badge} kind=${ORDER_KINDS[order.state]}>${t(`order.state.${order.state}`)}<//></header>
    <ul class="order-lines">${order.lines.map(line)}
      ${order.delivery !== "pickup" && html`<li><span class="grow"><${Icon} name=${DELIVERY_ICONS[order.delivery]} /> ${t(`order.delivery.${order.delivery}`)}</span><span class="numbers order-sum">${formatRupiah(order.delivery_fee)}</span></li>`}
      <li class="order-total"><strong class="grow">${t("order.total")}</strong><strong class="numbers">${formatRupiah(order.total)}</strong></li>
      ${order.tax_included > 0 && html`<li class="faint"><span class="grow">${t("order.tax")}</span><span class="numbers">${formatRupiah(order.tax_included)}</span></li>`}</ul>
    <p class="soft order-how"><${Icon} name=${DELIVERY_ICONS[order.delivery]} /> ${t(`order.delivery.${order.delivery}`)} · ${wordOr(`order.payment.${order.payment_method}`, order.payment_method)}</p>
    ${order.tracking && html`<p><${Icon} name="package" /> ${[order.carrier, order.tracking].filter(Boolean).join(" · ")}</p>`}
    ${order.note && html`<p class="order-note">“${order.note}”</p>`}
    ${order.due_at && html`<p class="order-due"><${Icon} name="clock" /> ${t(`order.due.${order.state}`, { moment: momentOf(order.due_at) })}</p>`}
    ${order.overdue_at && order.state === "paid" && html`<p class="order-due"><${Icon} name="clock" /> ${t("order.overdue", { moment: momentOf(order.overdue_at) })}</p>`}
    ${order.refund_due > 0 && html`<p class="order-due"><${Icon} name="undo-2" /> ${t("order.refund", { price: formatRupiah(order.refund_due) })}</p>`}
    ${order.return_asked_at && order.state !== "returned" && html`<p class="order-due">${t("order.return.asked", { reason: order.return_reason ?? "" })}${order.return_refusal && html`<br />${t("order.return.refused", { reason: order.return_refusal })}`}</p>`}
    ${children}
    <${OrderHistory} id=${order.id} version=${order.version} key=${order.version} />
  </article>`;
}

/** Who did what, and where it goes: read when somebody opens it. */
function OrderHistory({ id }) {
  const [detail, setDetail] = useState(null);
  const [error, setError] = useState("");
  const open = (event) => { if (event.target.open && !detail) readOrder(id).then(setDetail, (fault) => setError(fault.message)); };
  const address = detail?.address;
  return html`<details onToggle=${open}><summary>${t("order.history")}</summary>
    ${error && html`<p class="soft" role="alert">${error}</p>`}
    ${detail && html`<ol class="order-moves">${detail.moves.map((one, index) => html`<li key=${index}><span>${t(`order.state.${one.state}`)}</span> <span class="faint">${t(`order.mover.${one.mover}`)} · ${momentOf(one.at)}</span>${one.reason && html`<br /><span class="soft">${one.reason}</span>`}</li>`)}</ol>`}
    ${address && html`<address class="order-address"><${Icon} name="map-pin" /> ${address.name}, ${address.phone}<br />${address.street}, ${address.city}${address.postal_code ? ` ${address.postal_code}` : ""}</address>`}
  </details>`;
}

export const momentOf = (text) => `${formatDay(new Date(text))}, ${formatTime(new Date(text))}`;
