/** Price and stock of many goods: the rules, and what they make of each before anything is sent. */

import { html, useState } from "../../app/view.js";
import { counted, formatNumber, formatRupiah, t } from "../../app/words.js";
import { Button, Dialog, Field, Icon, Note } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { changeMany, readAnew } from "./bulk_changes.js";
import { amountOf, entriesOf, previewOf, ROUNDINGS } from "./bulk_rules.js";
import { chosen } from "./goods_list.js";

const PRICE_RULES = ["none", "percent", "amount", "value"];
const STOCK_RULES = ["none", "by", "value"];
const MAX_SHOWN = 100;

export function BulkDialog({ onClose }) {
  const [given, setGiven] = useState({ price: "percent", priceAmount: "", step: 100, stock: "none", stockAmount: "" });
  const [refused, setRefused] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const set = (changes) => { setGiven({ ...given, ...changes }); setRefused(null); };
  const priceAmount = amountOf(given.priceAmount, given.price !== "percent");
  const stockAmount = amountOf(given.stockAmount);
  const priceRule = given.price === "none" || priceAmount === null ? null : { how: given.price, amount: priceAmount, step: given.step };
  const stockRule = given.stock === "none" || stockAmount === null ? null : { how: given.stock, amount: stockAmount };
  const rows = previewOf([...chosen.value.values()], priceRule, stockRule);
  const impossible = rows.filter((row) => !row.isPossible).length;
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await changeMany(entriesOf(rows, stockRule), (number) => counted("goods.many.changed", number));
      onClose();
    } catch (error) {
      setRefused({ message: messageOf(error), errors: error.body?.errors ?? [] });
      await readAnew((error.body?.errors ?? []).filter((one) => one.field === "version").map((one) => one.id));
      setBusy(false);
    }
  };
  const footer = html`<${Button} onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit" form="bulk-form" disabled=${isBusy || !rows.length || impossible > 0}>${rows.length ? counted("goods.bulk.do", rows.length) : t("goods.bulk.nothing")}<//>`;
  return html`<${Dialog} wide title=${counted("goods.bulk.of", chosen.value.size)} onClose=${onClose} footer=${footer}><form id="bulk-form" class="stack" onSubmit=${submit}>
    <div class="bulk-rules">
      <fieldset><legend>${t("goods.field.price")}</legend>
        <${Choice} label=${t("goods.bulk.how")} name="price" values=${PRICE_RULES} chosen=${given.price} onChange=${(price) => set({ price })} />
        ${given.price !== "none" && html`<${Amount} label=${t(`goods.bulk.price.${given.price}.amount`)} name="priceAmount" text=${given.priceAmount} isWrong=${given.priceAmount.trim() && priceAmount === null} onInput=${(text) => set({ priceAmount: text })} />
          <${Field} label=${t("goods.bulk.round")}>${(attributes) => html`<select class="select" onChange=${(event) => set({ step: Number(event.target.value) })} ...${attributes}>${ROUNDINGS.map((step) => html`<option value=${String(step)} selected=${step === given.step}>${step === 1 ? t("goods.bulk.round.none") : formatRupiah(step)}</option>`)}</select>`}<//>`}
      </fieldset>
      <fieldset><legend>${t("goods.field.stock_quantity")}</legend>
        <${Choice} label=${t("goods.bulk.how")} name="stock" values=${STOCK_RULES} chosen=${given.stock} onChange=${(stock) => set({ stock })} />
        ${given.stock !== "none" && html`<${Amount} label=${t(`goods.bulk.stock.${given.stock}.amount`)} name="stockAmount" text=${given.stockAmount} isWrong=${given.stockAmount.trim() && stockAmount === null} onInput=${(text) => set({ stockAmount: text })} />`}
      </fieldset>
    </div>
    ${refused && html`<${Refused} refused=${refused} />`}
    ${impossible > 0 && html`<${Note} kind="warn">${counted("goods.bulk.impossible", impossible)}<//>`}
    <${Preview} rows=${rows} />
  </form><//>`;
}

function Choice({ label, name, values, chosen: value, onChange }) {
  return html`<${Field} label=${label}>${(attributes) => html`<select class="select" name=${name} onChange=${(event) => onChange(event.target.value)} ...${attributes}>${values.map((one) => html`<option value=${one} selected=${one === value}>${t(`goods.bulk.${name}.${one}`)}</option>`)}</select>`}<//>`;
}

function Amount({ label, name, text, isWrong, onInput }) {
  return html`<${Field} label=${label} error=${isWrong && t("goods.bulk.no.number")}>${(attributes) => html`<input class="input numbers" name=${name} inputmode="text" autocomplete="off" value=${text} onInput=${(event) => onInput(event.target.value)} ...${attributes} />`}<//>`;
}

/** Old and new of the first ones. */
function Preview({ rows }) {
  if (!rows.length) return html`<p class="soft">${t("goods.bulk.preview.none")}</p>`;
  const pair = (values, write) => (values ? html`<span class="faint">${write(values[0])}</span> <${Icon} name="arrow-right" label=${t("goods.bulk.becomes")} /> <strong>${write(values[1])}</strong>` : html`<span class="faint">–</span>`);
  return html`<div class="bulk-preview scroll" tabindex="0" role="region" aria-label=${t("goods.bulk.preview")}><table class="table"><thead><tr><th scope="col">${t("goods.field.name")}</th><th scope="col" class="number">${t("goods.field.price")}</th><th scope="col" class="number">${t("goods.field.stock_quantity")}</th></tr></thead>
    <tbody>${rows.slice(0, MAX_SHOWN).map((row) => html`<tr key=${row.product.id} class=${row.isPossible ? "" : "is-impossible"}><th scope="row">${row.product.name}</th><td class="number">${pair(row.price, formatRupiah)}</td><td class="number">${pair(row.stock, formatNumber)}</td></tr>`)}</tbody></table>
    ${rows.length > MAX_SHOWN && html`<p class="soft">${counted("goods.bulk.more", rows.length - MAX_SHOWN)}</p>`}</div>`;
}

/** Which products the server would not change so. They were read anew: the preview shows what they are now. */
function Refused({ refused: { message, errors } }) {
  return html`<${Note} kind="bad" role="alert">${message}${errors.length > 0 && html`<ul>${errors.slice(0, 10).map((one) => html`<li key=${one.id}>${chosen.value.get(one.id)?.name ?? one.id}: ${one.message}</li>`)}</ul>`}<//>`;
}
