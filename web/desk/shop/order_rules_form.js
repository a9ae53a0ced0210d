/** Whether and how the shop takes orders: its courier by distance, expedition, times, taxes. */

import { html, useEffect, useState } from "../../app/view.js";
import { formatRupiah, t } from "../../app/words.js";
import { Button, Field, Note, Switch, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";

const HOURS = { accept_hours: [1, 168], pay_hours: [1, 168], handover_hours: [1, 720], return_days: [0, 30] };

export function OrderRulesForm({ shop }) {
  const path = `api/suppliers/${shop.id}/order-rules`;
  const [given, setGiven] = useState(null);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const read = () => marketJson(path).then((rules) => setGiven(formOf(rules)), (fault) => setError(messageOf(fault)));
  useEffect(() => { read(); }, []);
  if (!given) return error ? html`<${Note} kind="bad" role="alert">${error}<//>` : html`<p class="soft" role="status">${t("desk.loading")}</p>`;
  const set = (changes) => setGiven({ ...given, ...changes });
  const setBand = (index, changes) => set({ bands: given.bands.map((one, at) => (at === index ? { ...one, ...changes } : one)) });
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      setGiven(formOf(await marketJson(path, { method: "PUT", json: bodyOf(given) })));
      toast(t("own.saved"));
    } catch (fault) {
      if (fault.status === 412) await read();
      setError(messageOf(fault));
    }
    setBusy(false);
  };
  const number = (label, value, onInput, more = {}) => html`<${Field} label=${label} help=${more.help}>${(attributes) => html`<input class="input numbers" inputmode="numeric" type="number" value=${value} onInput=${(event) => onInput(event.target.value)} ...${{ ...more, help: undefined }} ...${attributes} />`}<//>`;
  return html`<form class="card stack own-form" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Switch} label=${t("rules.takes_orders")} checked=${given.takes_orders} onChange=${(value) => set({ takes_orders: value })} />
    <p class="soft">${t("rules.about")}</p>
    <div class="two">${Object.entries(HOURS).map(([name, [min, max]]) => number(t(`rules.${name}`), given[name], (value) => set({ [name]: value }), { min, max, required: true, key: name }))}</div>
    <fieldset class="place stack"><legend>${t("rules.courier")}</legend>
      ${given.bands.map((band, index) => html`<div class="band" key=${index}>${number(t("rules.up_to_km"), band.up_to_km, (value) => setBand(index, { up_to_km: value }), { min: 1, max: 1000, required: true })}${number(t("rules.fee"), band.fee, (value) => setBand(index, { fee: value }), { min: 0, required: true })}
        <${Button} icon="trash-2" kind="quiet" label=${t("rules.band.remove", { km: band.up_to_km, fee: formatRupiah(band.fee || 0) })} onClick=${() => set({ bands: given.bands.filter((_, at) => at !== index) })} /></div>`)}
      ${!given.bands.length && html`<p class="faint">${t("rules.courier.none")}</p>`}
      <div><${Button} small icon="plus" onClick=${() => set({ bands: [...given.bands, { up_to_km: "", fee: "" }] })}>${t("rules.band.add")}<//></div></fieldset>
    ${number(t("rules.expedition_fee"), given.expedition_fee, (value) => set({ expedition_fee: value }), { min: 0, help: t("rules.expedition_fee.help") })}
    <div class="two">${number(t("rules.tax_rate"), given.tax_rate, (value) => set({ tax_rate: value }), { min: 0, max: 100, step: "0.01", required: true })}
      <${Field} label=${t("rules.tax_number")}>${(attributes) => html`<input class="input" maxlength="32" value=${given.tax_number} onInput=${(event) => set({ tax_number: event.target.value })} ...${attributes} />`}<//></div>
    <div class="row"><div class="grow"></div><${Button} kind="primary" type="submit" disabled=${isBusy}>${t("save")}<//></div>
  </form>`;
}

/** Taxes are percents on the page, and hundredths of them in the API. */
function formOf(rules) {
  return { ...rules, bands: rules.courier_bands, expedition_fee: rules.expedition_fee ?? "", tax_rate: rules.tax_rate / 100, tax_number: rules.tax_number ?? "" };
}

function bodyOf({ takes_orders, bands, expedition_fee, tax_rate, tax_number, version, ...rest }) {
  const times = Object.fromEntries(Object.keys(HOURS).map((name) => [name, Number(rest[name])]));
  return {
    takes_orders,
    ...times,
    courier_bands: bands.map((one) => ({ up_to_km: Number(one.up_to_km), fee: Number(one.fee) })),
    expedition_fee: expedition_fee === "" ? null : Number(expedition_fee),
    tax_rate: Math.round(Number(tax_rate) * 100),
    tax_number: String(tax_number).trim() || null,
    ...(version > 0 && { version }),
  };
}
