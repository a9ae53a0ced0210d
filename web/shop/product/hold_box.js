/** Holding a product: how many, the time that is left, and what the shop has answered. */

import { Button, Field, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { now } from "../../design/shell.js";
import { formatRupiah, t } from "../../app/words.js";
import { account, isOpen, requireAccount } from "../../market/account.js";
import { CheckoutDialog } from "../orders/checkout.js";
import { near } from "../address/near.js";
import { placeName } from "../goods/place_name.js";
import { hold, holds, isHeld, readHolds, release, watchHolds } from "./holds.js";
import { bestFor, Places, withUnits } from "./places.js";

export function HoldBox({ product, onChange }) {
  const [isOrdering, setOrdering] = useState(false);
  const [quantity, setQuantity] = useState(1);
  const [branch, setBranch] = useState(null);
  const [error, setError] = useState("");
  const who = account.value;
  useEffect(() => { if (who || isOpen) readHolds().catch(() => {}); }, [who]);
  useEffect(watchHolds, []);
  const mine = (holds.value ?? []).find((one) => one.product_id === product.id);
  const attempt = async (work) => {
    setError("");
    try {
      await work();
      onChange();
    } catch (fault) {
      setError(fault.message);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    if (requireAccount()) attempt(() => hold(product.id, quantity, wish));
  };
  const { places } = product;
  const chosen = withUnits(places).find((one) => one.branch_id === branch);
  const wish = chosen ? { branch_id: branch } : places && near.value ? near.value : {};
  // A hold and an order are of one place, which has all of it.
  const most = places ? Math.max(...(chosen ? [chosen] : places).map((one) => one.available_quantity)) : product.available_quantity;
  const heldAt = mine && places?.find((one) => one.branch_id === mine.branch_id);
  const canHold = product.available_quantity > 0 && !(mine && isHeld(mine));
  const about = { product_id: product.id, name: product.name };
  const goods = mine && isHeld(mine) ? { ...about, reservation_id: mine.id, quantity: mine.quantity, price: mine.unit_price } : canHold ? { ...about, quantity, price: product.price } : null;
  const from = goods?.reservation_id ? (heldAt ?? { branch_id: mine.branch_id }) : (chosen ?? bestFor(places, quantity));
  return html`<div class="hold stack">
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${mine && html`<${HoldState} hold=${mine} at=${heldAt} onRelease=${() => attempt(() => release(mine.id))} />`}
    <${Places} places=${places} chosen=${chosen ? branch : null} onChoose=${canHold ? setBranch : undefined} />
    ${canHold && html`<form class="hold-form" onSubmit=${submit}>
      <${Field} label=${t("shop.hold.quantity")}>${(attributes) => html`<input class="input numbers" type="number" min="1" max=${most} required value=${quantity} onInput=${(event) => setQuantity(Number(event.target.value))} ...${attributes} />`}<//>
      <${Button} kind="primary" icon="shopping-bag" type="submit">${t("shop.hold.do")}<//>
    </form><p class="faint"><small>${t("shop.hold.about")}</small></p>`}
    ${goods && html`<div><${Button} icon="truck" onClick=${() => { if (requireAccount()) setOrdering(true); }}>${t("order.do")}<//></div>`}
    ${isOrdering && goods && html`<${CheckoutDialog} shopId=${product.supplier_id} goods=${[goods]} place=${from} onClose=${() => setOrdering(false)} />`}
  </div>`;
}

/** Of goods that the assistant has found: it offers, and holds nothing itself. */
export function HoldOffer({ product }) {
  const [error, setError] = useState("");
  const who = account.value;
  useEffect(() => { if ((who || isOpen) && !holds.value) readHolds().catch(() => {}); }, [who]);
  const mine = (holds.value ?? []).find((one) => one.product_id === product.id && isHeld(one));
  const attempt = (work) => { setError(""); work().catch((fault) => setError(fault.message)); };
  if (mine) return html`<${HoldState} hold=${mine} onRelease=${() => attempt(() => release(mine.id))} />`;
  if (!product.actions?.some((one) => one.kind === "hold")) return null;
  const label = t("shop.hold.named", { name: product.name });
  return html`${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Button} small icon="shopping-bag" aria-label=${label} onClick=${() => { if (requireAccount()) attempt(() => hold(product.id, 1)); }}>${t("shop.hold.do")}<//>`;
}

/** `at`: the place of the shop where it waits, if there are several. */
export function HoldState({ hold: mine, at, onRelease }) {
  const left = Math.max(0, Math.floor((Date.parse(mine.expires_at) - now.value) / 1000));
  const isRunning = mine.status === "held" && left > 0;
  const state = mine.status === "held" && !isRunning ? "expired" : mine.status === "held" && mine.accepted_at ? "accepted" : mine.status;
  const kind = { held: "info", accepted: "good", committed: "good", ordered: "good", refused: "bad", released: "info", expired: "warn" }[state] ?? "info";
  return html`<${Note} kind=${kind} role="status">
    <p>${t(`shop.hold.${state}`, { number: mine.quantity, price: formatRupiah(mine.unit_price * mine.quantity) })}</p>
    ${at && isRunning && html`<p>${t("shop.hold.at", { place: placeName(at) })}</p>`}
    ${mine.refusal_reason && html`<p>${t("shop.hold.reason", { reason: mine.refusal_reason })}</p>`}
    ${isRunning && html`<p class="row"><span class="numbers countdown" role="timer">${clock(left)}</span><span class="grow"></span>${onRelease && html`<${Button} small onClick=${onRelease}>${t("shop.hold.release")}<//>`}</p>`}
  <//>`;
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
