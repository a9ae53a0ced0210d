/** What the shop may do with an order now, as the table of moves says. */

import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Field } from "../../design/components.js";
import { WriteButton } from "../../market/talks/write_button.js";
import { moveOrder, refuseReturn } from "../../market/orders/order_calls.js";

const ICONS = { accepted: "check", refused: "x", paid: "credit-card", handed_over: "store", shipped: "truck", cancelled: "ban" };
const DANGEROUS = ["refused", "cancelled"];

export function ShopActions({ order, ask }) {
  const isAsked = order.return_asked_at && !order.return_refused_at && order.may_become.includes("returned");
  const shown = Object.keys(ICONS).filter((state) => order.may_become.includes(state));
  return html`<div class="order-actions">
    ${shown.map((state, index) => html`<${Button} key=${state} kind=${DANGEROUS.includes(state) ? "danger" : index === 0 ? "primary" : ""} icon=${ICONS[state]} onClick=${() => ask(questionOf(order, state))}>${t(`orders.${state}.do`)}<//>`)}
    ${isAsked && html`<${Button} kind="primary" icon="undo-2" onClick=${() => ask(returnOf(order))}>${t("orders.returned.do")}<//><${Button} onClick=${() => ask(refusalOf(order))}>${t("orders.return.refuse.do")}<//>`}
    <${WriteButton} path=${`api/orders/${order.id}/talk`} label=${t("talk.write.buyer")} about=${t("order.number", { number: order.number })} />
  </div>`;
}

function questionOf(order, state) {
  const common = { title: t(`orders.${state}.title`, { number: order.number }), text: t(`orders.${state}.text`), button: t(`orders.${state}.do`) };
  if (DANGEROUS.includes(state)) return { ...common, danger: true, reason: "needed", work: (reason) => moveOrder(order, state, { reason }) };
  if (state === "shipped") return { ...common, given: { carrier: "", tracking: "" }, fields: shippingFields, work: (_, given) => moveOrder(order, state, Object.fromEntries(Object.entries(given).filter(([, text]) => text.trim()).map(([name, text]) => [name, text.trim()]))) };
  if (state === "accepted") return { ...common, given: Object.fromEntries(order.lines.map((one) => [one.position, one.ordered])), fields: quantityFields(order), work: (_, given) => moveOrder(order, state, { lines: fewer(order, given) }) };
  return { ...common, work: () => moveOrder(order, state) };
}

function returnOf(order) {
  const given = Object.fromEntries(order.lines.map((one) => [one.position, one.quantity]));
  return {
    title: t("orders.returned.title", { number: order.number }), text: t("orders.returned.text"), button: t("orders.returned.do"), reason: "needed", given: { ...given, restock: true },
    fields: (values, set) => html`${quantityFields(order, "quantity")(values, set)}<label class="order-choice"><input type="checkbox" checked=${values.restock} onChange=${(event) => set({ ...values, restock: event.target.checked })} /><span>${t("orders.returned.restock")}</span></label>`,
    work: (reason, { restock, ...values }) => moveOrder(order, "returned", { reason, lines: order.lines.filter((one) => values[one.position] > 0).map((one) => ({ position: one.position, quantity: values[one.position], restock })) }),
  };
}

const refusalOf = (order) => ({ title: t("orders.return.refuse.title", { number: order.number }), text: t("orders.return.refuse.text"), button: t("orders.return.refuse.do"), reason: "needed", work: (reason) => refuseReturn(order, reason) });

const shippingFields = (given, set) => ["carrier", "tracking"].map((name) => html`<${Field} key=${name} label=${t(`orders.${name}`)}>${(attributes) => html`<input class="input" maxlength="100" autocomplete="off" value=${given[name]} onInput=${(event) => set({ ...given, [name]: event.target.value })} ...${attributes} />`}<//>`);

/** How many of each line; a shop may give fewer than were ordered. */
function quantityFields(order, most = "ordered") {
  return (given, set) => order.lines.map((one) => html`<${Field} key=${one.position} label=${t("orders.give", { name: one.name, number: one[most] })}>${(attributes) => html`<input class="input numbers" type="number" min="0" max=${one[most]} required value=${given[one.position]} onInput=${(event) => set({ ...given, [one.position]: Number(event.target.value) })} ...${attributes} />`}<//>`);
}

const fewer = (order, given) => order.lines.filter((one) => given[one.position] < one.ordered).map((one) => ({ position: one.position, quantity: given[one.position] }));
