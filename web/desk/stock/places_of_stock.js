/** What lies at each place of the shop, and moving units from one to another. */

import { html, useRef, useState } from "../../app/view.js";
import { formatNumber, t } from "../../app/words.js";
import { Button, Field, Note, toast } from "../../design/components.js";
import { keyFor } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { moveUnits } from "./movements.js";

export function PlaceChoice({ label, places, value, onChange }) {
  return html`<${Field} label=${label}>${(attributes) => html`<select class="select" value=${String(value)} onChange=${(event) => onChange(Number(event.target.value))} ...${attributes}>${places.map((one) => html`<option key=${one.branch_id} value=${String(one.branch_id)} selected=${one.branch_id === value}>${one.name}</option>`)}</select>`}<//>`;
}

export function PlacesOfStock({ product, places, onMoved }) {
  return html`<section class="stack stock-places" aria-label=${t("stock.places")}><h3>${t("stock.places")}</h3>
    <table class="table"><thead><tr><th scope="col">${t("stock.place")}</th><th scope="col">${t("stock.place.on.hand")}</th><th scope="col">${t("stock.place.reserved")}</th></tr></thead>
      <tbody>${places.map((one) => html`<tr key=${one.branch_id}><th scope="row">${one.name}</th><td class="numbers">${formatNumber(one.on_hand)}</td><td class="numbers">${formatNumber(one.reserved)}</td></tr>`)}</tbody></table>
    <${TransferForm} product=${product} places=${places} onMoved=${onMoved} /></section>`;
}

/** What is held stays where it is. */
function TransferForm({ product, places, onMoved }) {
  const [source, setSource] = useState(places[0].branch_id);
  const [target, setTarget] = useState(places[1].branch_id);
  const [units, setUnits] = useState("1");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const key = useRef({ text: null, name: null });
  const free = places.find((one) => one.branch_id === source)?.available_quantity ?? 0;
  const submit = async (event) => {
    event.preventDefault();
    const json = { quantity: Number(units), from_branch_id: source, to_branch_id: target };
    setBusy(true);
    setError("");
    try {
      onMoved(await moveUnits(product.id, json, keyFor(key.current, JSON.stringify(json))));
      key.current.text = null; // the same again is another transfer
      toast(t("stock.moved", { number: formatNumber(json.quantity), name: product.name }));
    } catch (fault) {
      setError(messageOf(fault));
    }
    setBusy(false);
  };
  return html`<form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <div class="two"><${PlaceChoice} label=${t("stock.move.from")} places=${places} value=${source} onChange=${setSource} /><${PlaceChoice} label=${t("stock.move.to")} places=${places} value=${target} onChange=${setTarget} /></div>
    <div class="stock-move"><${Field} label=${t("stock.move.units")}>${(attributes) => html`<input class="input numbers" type="number" inputmode="numeric" min="1" max=${Math.max(free, 1)} step="1" required value=${units} onInput=${(event) => setUnits(event.target.value)} ...${attributes} />`}<//><${Button} icon="truck" type="submit" disabled=${isBusy || !free || source === target}>${t("stock.move.do")}<//></div>
  </form>`;
}
