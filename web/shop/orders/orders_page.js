/** What the buyer has ordered, newest first, and what he may do with each. */

import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Icon, Note } from "../../design/components.js";
import { account, isOpen } from "../../market/account.js";
import { MoveDialog } from "../../market/orders/move_dialog.js";
import { askReturn, fault, moveOrder, orders, readOrders } from "../../market/orders/order_calls.js";
import { OrderCard } from "../../market/orders/order_card.js";
import { SignInNote } from "../../market/sign_in_note.js";
import { WriteButton } from "../../market/talks/write_button.js";
import { PayBox } from "./pay_box.js";
import { listHash } from "../address/place.js";

const PATH = "api/orders";
const CAME = ["handed_over", "shipped", "received"];

export function OrdersPage() {
  const [asked, setAsked] = useState(null);
  const who = account.value;
  useEffect(() => { if (who || isOpen) readOrders(PATH); }, [who]);
  if (who === null && !isOpen) return html`<${SignInNote} icon="shopping-bag" title=${t("orders")} about=${t("order.sign.in")} />`;
  const found = orders.value;
  return html`<section class="stack"><h2>${t("orders")}</h2>
    ${fault.value && html`<${Note} kind="bad" role="alert">${fault.value.message}<//>`}
    ${!found && !fault.value && html`<p class="soft" role="status">${t("order.loading")}</p>`}
    ${found && !found.items.length && html`<div class="nothing"><${Icon} name="shopping-bag" /><p class="soft">${t("orders.none")}</p></div>`}
    <div class="order-list">${found?.items.map((one) => html`<${OrderCard} key=${one.id} order=${one} title=${html`<a href=${listHash({ supplier_id: String(one.supplier_id) }, false)}>${one.shop_name}</a>`}><${BuyerActions} order=${one} ask=${setAsked} /><//>`)}</div>
    ${found?.hasMore && html`<div><${Button} icon="chevron-down" onClick=${() => readOrders(PATH, {}, true)}>${t("order.more")}<//></div>`}
    ${asked && html`<${MoveDialog} asked=${asked} onClose=${() => setAsked(null)} />`}
  </section>`;
}

function BuyerActions({ order, ask }) {
  const may = (state) => order.may_become.includes(state);
  const question = (name, work, more = {}) => () => ask({ title: t(`order.${name}.title`, { number: order.number }), text: t(`order.${name}.text`), button: t(`order.${name}.do`), work, ...more });
  const isDue = order.state === "accepted" && order.payment_method !== "cash";
  const mayReturn = CAME.includes(order.state) && order.return_days > 0 && !order.return_asked_at;
  return html`${isDue && html`<${PayBox} order=${order} />`}<div class="order-actions">
    ${may("received") && html`<${Button} kind="primary" icon="check" onClick=${question("receive", () => moveOrder(order, "received"))}>${t("order.receive.do")}<//>`}
    ${mayReturn && html`<${Button} icon="undo-2" onClick=${question("return", (reason) => askReturn(order, reason), { reason: "needed" })}>${t("order.return.do")}<//>`}
    ${may("cancelled") && html`<${Button} kind="danger" icon="x" onClick=${question("cancel", (reason) => moveOrder(order, "cancelled", reason ? { reason } : {}), { reason: "wanted", danger: true })}>${t("order.cancel.do")}<//>`}
    <${WriteButton} path=${`api/orders/${order.id}/talk`} label=${t("talk.write.shop")} about=${t("order.number", { number: order.number })} />
  </div>`;
}
