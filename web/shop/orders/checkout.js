/** Ordering: how the goods come, what that costs, how it is paid, and the one press that asks the shop. */

import { html, useEffect, useState } from "../../app/view.js";
import { formatRupiah, t, wordOr } from "../../app/words.js";
import { Button, Dialog, Field, Icon, Note, toast } from "../../design/components.js";
import { account } from "../../market/account.js";
import { marketJson } from "../../market/market_calls.js";
import { makeOrder } from "../../market/orders/order_calls.js";
import { locate, near } from "../address/near.js";
import { goTo } from "../address/place.js";
import { placeName } from "../goods/place_name.js";

const ADDRESS = [["name", "name", 200], ["phone", "tel", 32], ["street", "street-address", 500], ["city", "address-level2", 100], ["postal_code", "postal-code", 10]];
const OPTIONAL = ["postal_code"];

/** `place`: the place of the shop that has them, if there are several. `goods`: `[{ product_id, quantity, name, price }]` that are not held yet, or `[{ reservation_id, ... }]` that are. */
export function CheckoutDialog({ shopId, goods, place, onClose }) {
  const [quote, setQuote] = useState(null);
  const [delivery, setDelivery] = useState(null);
  const [method, setMethod] = useState("cash");
  const [address, setAddress] = useState({ name: account.value?.name ?? "", phone: "", street: "", city: "", postal_code: "" });
  const [note, setNote] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const at = near.value;
  const from = place ? { branch_id: place.branch_id } : {};
  useEffect(() => {
    marketJson(`api/suppliers/${shopId}/order-quote?${new URLSearchParams({ ...at, ...from })}`).then((found) => {
      setQuote(found);
      setDelivery((chosen) => chosen ?? found.deliveries.find((one) => one.fee !== null)?.delivery ?? null);
    }, (fault) => setError(fault.message));
  }, [at, place?.branch_id]);
  const offer = quote?.deliveries.find((one) => one.delivery === delivery);
  const methods = (quote?.payment_methods ?? []).filter((one) => one !== "cash" || delivery !== "expedition");
  const chosenMethod = methods.includes(method) ? method : methods[0];
  const items = goods.reduce((sum, one) => sum + one.price * one.quantity, 0);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    const where = delivery === "pickup" ? null : { ...Object.fromEntries(Object.entries(address).map(([name, text]) => [name, text.trim() || null])), ...(at ?? {}) };
    try {
      await makeOrder({
        ...from,
        reservations: goods.flatMap((one) => one.reservation_id ?? []),
        items: goods.filter((one) => !one.reservation_id).map(({ product_id, quantity }) => ({ product_id, quantity })),
        place: { delivery, payment_method: chosenMethod, ...(where && { address: where }), ...(note.trim() && { note: note.trim() }) },
      });
      toast(t("order.placed.done"));
      onClose();
      goTo("#/orders");
    } catch (fault) {
      setError(fault.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${t("order.checkout")} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <ul class="order-lines">${goods.map((one) => html`<li key=${one.product_id}><span class="grow">${one.name}</span><span class="numbers soft">${one.quantity} × ${formatRupiah(one.price)}</span></li>`)}</ul>
    ${place?.name && html`<p class="soft order-how"><${Icon} name="map-pin" /> ${t("shop.places.from", { place: placeName(place) })}</p>`}
    ${!quote && !error && html`<p class="soft" role="status">${t("order.loading")}</p>`}
    ${quote && !quote.takes_orders && html`<${Note} kind="warn">${t("order.not.taken")}<//>`}
    ${quote?.takes_orders && html`
      <fieldset class="filter"><legend>${t("order.delivery")}</legend>${quote.deliveries.map((one) => html`<label class="order-choice" key=${one.delivery}><input type="radio" name="delivery" disabled=${one.fee === null} checked=${delivery === one.delivery} onChange=${() => setDelivery(one.delivery)} />
        <span class="grow">${t(`order.delivery.${one.delivery}`)}${one.fee === null && html`<small class="soft">${t(one.delivery === "courier" && !at ? "order.delivery.where" : `order.delivery.${one.delivery}.none`)}</small>`}</span>${one.fee !== null && html`<span class="numbers">${one.fee ? formatRupiah(one.fee) : t("order.free")}</span>`}</label>`)}</fieldset>
      ${!at && quote.deliveries.some((one) => one.delivery === "courier" && one.fee === null) && html`<div><${Button} small icon="map-pin" onClick=${() => locate().catch(() => setError(t("shop.near.failed")))}>${t("order.locate")}<//></div>`}
      ${delivery && delivery !== "pickup" && html`<div class="checkout-address">${ADDRESS.map(([name, autocomplete, most]) => html`<div key=${name} class=${name === "street" || name === "name" ? "wide" : ""}><${Field} label=${t(`order.address.${name}`)}>${(attributes) => html`<input class="input" required=${!OPTIONAL.includes(name)} maxlength=${most} autocomplete=${autocomplete} type=${autocomplete === "tel" ? "tel" : "text"} value=${address[name]} onInput=${(event) => setAddress({ ...address, [name]: event.target.value })} ...${attributes} />`}<//></div>`)}</div>`}
      <fieldset class="filter"><legend>${t("order.payment")}</legend>${methods.map((one) => html`<label class="order-choice" key=${one}><input type="radio" name="payment" checked=${chosenMethod === one} onChange=${() => setMethod(one)} /><span class="grow">${wordOr(`order.payment.${one}`, one)}</span></label>`)}</fieldset>
      <${Field} label=${t("order.note")}>${(attributes) => html`<textarea class="textarea" rows="2" maxlength="500" value=${note} onInput=${(event) => setNote(event.target.value)} ...${attributes}></textarea>`}<//>
      <p class="checkout-total"><strong class="grow">${t("order.total")}</strong><strong class="numbers">${formatRupiah(items + (offer?.fee ?? 0))}</strong></p>
      <p class="faint"><small>${t("order.checkout.about", { accept: quote.accept_hours, pay: quote.pay_hours, goods: quote.handover_hours })}</small></p>
      <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" icon="shopping-bag" type="submit" disabled=${isBusy || !offer || offer.fee === null || !chosenMethod}>${t("order.place.do")}<//></div>`}
  </form><//>`;
}
