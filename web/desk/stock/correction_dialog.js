/** Corrects what is on hand, with the reason that the ledger keeps. */

import { html, useEffect, useRef, useState } from "../../app/view.js";
import { counted, formatNumber, t } from "../../app/words.js";
import { Button, Dialog, Field, Note, toast } from "../../design/components.js";
import { keyFor } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { correct, readPlaces, readProduct } from "./movements.js";
import { PlaceChoice, PlacesOfStock } from "./places_of_stock.js";
import { ProductPicker } from "./product_picker.js";

const REASONS = ["damaged", "lost", "found", "returned", "sold"];
const MAX_CHARS = 200;

/** `product`: `{ id, name }`, or null to choose one. */
export function CorrectionDialog({ product: given, onClose }) {
  const [product, setProduct] = useState(given);
  const [error, setError] = useState("");
  useEffect(() => {
    if (given) readProduct(given.id).then(setProduct, (fault) => setError(messageOf(fault)));
  }, []);
  return html`<${Dialog} title=${t("stock.correct")} onClose=${onClose}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${product ? html`<${CorrectionForm} product=${product} onClose=${onClose} onOther=${given ? undefined : () => setProduct(null)} key=${product.id} />` : html`<${ProductPicker} onChoose=${setProduct} autofocus />`}
  <//>`;
}

function CorrectionForm({ product, onClose, onOther }) {
  const [sign, setSign] = useState(-1);
  const [units, setUnits] = useState("1");
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [places, setPlaces] = useState(null);
  const [branch, setBranch] = useState(0);
  useEffect(() => { readPlaces(product.id).then(setPlaces, (fault) => setError(messageOf(fault))); }, []);
  const at = places?.find((one) => one.branch_id === branch);
  const key = useRef({ text: null, name: null });
  const onHand = product.stock_quantity;
  const before = at ? at.on_hand : onHand;
  const delta = sign * Math.floor(Number(units));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      const stock = await correct(product.id, { delta, reason: reason.trim(), ...(at && { branch_id: branch }) }, keyFor(key.current, `${product.id} ${delta} ${branch} ${reason.trim()}`));
      toast(t("stock.corrected", { name: product.name, number: formatNumber(stock.on_hand) }));
      onClose();
    } catch (fault) {
      setError(messageOf(fault));
      setBusy(false);
    }
  };
  const way = (value, name) => html`<label class="row"><input type="radio" name="sign" checked=${sign === value} onChange=${() => setSign(value)} />${t(name)}</label>`;
  return html`<div class="stack"><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <div class="row-wrap"><p class="grow"><strong>${product.name}</strong><br /><span class="soft numbers">${onHand === undefined ? t("desk.loading") : counted("stock.on.hand", onHand)}</span></p>${onOther && html`<${Button} small kind="quiet" onClick=${onOther}>${t("stock.product.other")}<//>`}</div>
    <fieldset class="place row-wrap"><legend class="visually-hidden">${t("stock.way")}</legend>${way(-1, "stock.less")}${way(1, "stock.more")}</fieldset>
    ${places && html`<${PlaceChoice} label=${t("stock.place")} places=${places} value=${branch} onChange=${setBranch} />`}
    <${Field} label=${t("stock.units")}>${(attributes) => html`<input class="input numbers" type="number" inputmode="numeric" min="1" max="1000000000" step="1" required value=${units} onInput=${(event) => setUnits(event.target.value)} ...${attributes} />`}<//>
    <div class="row-wrap" role="group" aria-label=${t("stock.reason.choose")}>${REASONS.map((name) => html`<${Button} small key=${name} aria-pressed=${reason === t(`stock.reason.${name}`)} onClick=${() => setReason(t(`stock.reason.${name}`))}>${t(`stock.reason.${name}`)}<//>`)}</div>
    <${Field} label=${t("stock.reason")}>${(attributes) => html`<input class="input" required maxlength=${MAX_CHARS} value=${reason} onInput=${(event) => setReason(event.target.value)} ...${attributes} />`}<//>
    ${onHand !== undefined && Number.isFinite(delta) && html`<p class="soft numbers" role="status">${t("stock.will.be", { before: formatNumber(before), after: formatNumber(before + delta) })}</p>`}
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit" disabled=${isBusy}>${t("stock.correct.do")}<//></div>
  </form>
  ${places && html`<${PlacesOfStock} product=${product} places=${places} onMoved=${setPlaces} />`}</div>`;
}
