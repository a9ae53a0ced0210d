/** The orders of a shop: those that wait for it first, and what was. */

import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Icon, Note, Tabs } from "../../design/components.js";
import { MoveDialog } from "../../market/orders/move_dialog.js";
import { fault, orders, readOrders } from "../../market/orders/order_calls.js";
import { OrderCard } from "../../market/orders/order_card.js";
import { messageOf } from "../own_shop/messages_of.js";
import { ShopActions } from "./shop_actions.js";

const STATES = ["placed", "accepted", "paid", "shipped", "handed_over", "all"];

export function OrdersPart({ shop }) {
  const [state, setState] = useState(STATES[0]);
  const [asked, setAsked] = useState(null);
  const path = `api/suppliers/${shop.id}/orders`;
  const query = state === "all" ? {} : { state };
  useEffect(() => { readOrders(path, query); }, [state]);
  // An order that the shop has moved leaves the list of its old state, when the list is read again.
  const found = orders.value && { ...orders.value, items: orders.value.items.filter((one) => state === "all" || one.state === state) };
  return html`<h1>${t("desk.orders")}</h1>
    <${Tabs} label=${t("desk.orders")} tabs=${STATES.map((id) => ({ id, label: t(id === "all" ? "orders.tab.all" : `order.state.${id}`) }))} selected=${state} onSelect=${setState} />
    <div class="stack" role="tabpanel" id="panel-${state}" aria-label=${t(state === "all" ? "orders.tab.all" : `order.state.${state}`)}>
      ${fault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${messageOf(fault.value)}</span><${Button} small icon="refresh-cw" onClick=${() => readOrders(path, query)}>${t("desk.again")}<//></div><//>`}
      ${!found && !fault.value && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
      ${found && html`<h2 class="visually-hidden">${t("orders")}</h2>`}
      ${found && !found.items.length && html`<div class="empty"><${Icon} name="inbox" /><h2>${t("orders.desk.none")}</h2><p class="soft">${t("orders.desk.how")}</p></div>`}
      <div class="order-list">${found?.items.map((one) => html`<${OrderCard} key=${one.id} order=${one} title=${one.buyer?.name ?? t("order.buyer.unknown")}><${BuyerContact} buyer=${one.buyer} /><${ShopActions} order=${one} ask=${setAsked} /><//>`)}</div>
      ${found?.hasMore && html`<div><${Button} icon="chevron-down" onClick=${() => readOrders(path, query, true)}>${t("desk.more")}<//></div>`}
    </div>
    ${asked && html`<${MoveDialog} asked=${asked} onClose=${() => setAsked(null)} />`}`;
}

function BuyerContact({ buyer }) {
  if (!buyer?.phone && !buyer?.email) return null;
  return html`<p class="row-wrap">${buyer.phone && html`<a class="button small" href=${`tel:${buyer.phone}`}><${Icon} name="phone" />${buyer.phone}</a>`}
    ${buyer.email && html`<a class="button small" href=${`mailto:${buyer.email}`}><${Icon} name="mail" />${buyer.email}</a>`}</p>`;
}
