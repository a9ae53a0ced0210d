/** The promotions of a product: those in force or to come, and a new one. Times are those of the shop. */

import { html, useEffect, useState } from "../../app/view.js";
import { formatRupiah, language, t } from "../../app/words.js";
import { Badge, Button, Dialog, Field, Note, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { fieldMessages, messageOf } from "../own_shop/messages_of.js";
import { numberOf } from "./columns.js";
import { refreshRow } from "./goods_list.js";

const ZONES = { WIB: ["Asia/Jakarta", "+07:00"], WITA: ["Asia/Makassar", "+08:00"], WIT: ["Asia/Jayapura", "+09:00"] };
const EMPTY = { price: "", begins_at: "", ends_at: "", max_units: "" };

export function PromotionDialog({ product, shop, onClose }) {
  const zone = ZONES[shop.time_zone] ? shop.time_zone : "WIB";
  const [found, setFound] = useState(null);
  const [given, setGiven] = useState(EMPTY);
  const [errors, setErrors] = useState({});
  const [error, setError] = useState("");
  const read = async () => setFound((await marketJson(`api/suppliers/${shop.id}/promotions?product_id=${product.id}`)).filter((one) => one.state !== "ended"));
  useEffect(() => { read().catch((fault) => setError(messageOf(fault))); }, []);
  const changedBy = async (work, said) => {
    setErrors({});
    setError("");
    try {
      await work();
      toast(t(said), "check");
      await Promise.all([read(), refreshRow(product.id)]);
      return true;
    } catch (fault) {
      const named = fieldMessages(fault);
      setErrors(named);
      setError(Object.keys(named).some((name) => name in EMPTY) ? "" : messageOf(fault));
      return false;
    }
  };
  const submit = async (event) => {
    event.preventDefault();
    const json = sent(given, ZONES[zone][1]);
    if (await changedBy(() => marketJson(`api/products/${product.id}/promotions`, { method: "POST", json }), "goods.promotion.made")) setGiven(EMPTY);
  };
  const end = (one) => changedBy(() => marketJson(`api/promotions/${one.id}/end`, { method: "POST" }), "goods.promotion.ended");
  const input = (name, more = {}) => html`<${Field} label=${t(`goods.promotion.${name}`, { zone })} help=${more.help} error=${errors[name]}>${(attributes) => html`<input class="input" name=${name} value=${given[name]} autocomplete="off" ...${{ ...more, help: undefined }}
    onInput=${(event) => setGiven({ ...given, [name]: event.target.value })} ...${attributes} />`}<//>`;
  return html`<${Dialog} title=${t("goods.promotion.of", { name: product.name })} onClose=${onClose}><div class="stack">
    <p class="soft">${t("goods.promotion.normal", { price: formatRupiah(product.price) })}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${(found ?? []).map((one) => html`<${Promotion} key=${one.id} promotion=${one} zone=${zone} onEnd=${() => end(one)} />`)}
    <form class="stack" onSubmit=${submit}>
      <div class="two">${input("price", { required: true, inputmode: "numeric" })}${input("max_units", { inputmode: "numeric", help: t("goods.promotion.max_units.help") })}</div>
      <div class="two">${input("begins_at", { type: "datetime-local", help: t("goods.promotion.begins_at.help") })}${input("ends_at", { type: "datetime-local", required: true })}</div>
      <div class="row"><span class="grow"></span><${Button} kind="primary" icon="percent" type="submit">${t("goods.promotion.do")}<//></div>
    </form></div><//>`;
}

function Promotion({ promotion, zone, onEnd }) {
  const at = (moment) => new Date(moment).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "short", timeZone: ZONES[zone][0] });
  const units = promotion.max_units && t("goods.promotion.units", { taken: promotion.units_taken, most: promotion.max_units });
  return html`<article class="card stack"><div class="row-wrap"><strong class="numbers">${formatRupiah(promotion.price)}</strong>
      <${Badge} kind=${promotion.state === "running" ? "good" : ""}>${t(`goods.promotion.state.${promotion.state}`)}<//>${promotion.discount_percent && html`<${Badge} icon="tag">−${promotion.discount_percent}%<//>`}
      <span class="grow"></span><${Button} small onClick=${onEnd}>${t("goods.promotion.end")}<//></div>
    <p class="soft"><small>${at(promotion.begins_at)} – ${at(promotion.ends_at)} ${zone}${units && ` · ${units}`}</small></p>
    ${promotion.state === "running" && promotion.discount_percent === null && html`<p class="soft"><small>${t("goods.promotion.no.discount", { price: formatRupiah(promotion.lowest_price_30d) })}</small></p>`}</article>`;
}

function sent(given, offset) {
  const moment = (text) => `${text}:00${offset}`;
  const units = given.max_units.trim();
  return {
    price: numberOf(given.price.trim()) ?? given.price,
    ends_at: moment(given.ends_at),
    ...(given.begins_at && { begins_at: moment(given.begins_at) }),
    ...(units && { max_units: numberOf(units) ?? units }),
  };
}
