/** Name, address and ways of delivery. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Field, Note, Switch, toast } from "../../design/components.js";
import { fieldMessages, messageOf } from "../own_shop/messages_of.js";
import { change, profile } from "./own_profile.js";

const TEXTS = ["business_name", "name", "email", "phone", "address", "city", "province"];
const NUMBERS = ["latitude", "longitude", "delivery_radius_km"];
const SWITCHES = ["pickup_enabled", "courier_enabled"];
const REQUIRED = ["business_name", "name", "email", "city", "latitude", "longitude"];

export function ProfileForm() {
  const shop = profile.value;
  const [given, setGiven] = useState(() => formOf(shop));
  const [errors, setErrors] = useState({});
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const set = (name, value) => setGiven({ ...given, [name]: value });
  const submit = async (event) => {
    event.preventDefault();
    const changes = changesOf(given, profile.value);
    if (!Object.keys(changes).length) return toast(t("own.unchanged"), "info");
    setBusy(true);
    setError("");
    setErrors({});
    try {
      await change(changes);
      setGiven(formOf(profile.value));
      toast(t("own.saved"));
    } catch (fault) {
      setErrors(fieldMessages(fault));
      setError(messageOf(fault));
    }
    setBusy(false);
    return undefined;
  };
  const input = (name, more = {}) => html`<${Field} label=${t(`desk.shop.${name}`)} help=${more.help} error=${errors[name]}>${(attributes) => html`<input class="input" name=${name} required=${REQUIRED.includes(name)} value=${given[name]} ...${{ ...more, help: undefined }}
    onInput=${(event) => set(name, event.target.value)} ...${attributes} />`}<//>`;
  return html`<form class="card stack own-form" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${input("business_name", { autocomplete: "organization" })}
    <div class="two">${input("name", { autocomplete: "name" })}${input("phone", { type: "tel", autocomplete: "tel" })}</div>
    ${input("email", { type: "email", autocomplete: "email", help: t("desk.shop.email.help") })}
    ${input("address", { autocomplete: "street-address" })}
    <div class="two">${input("city", { autocomplete: "address-level2" })}${input("province", { autocomplete: "address-level1" })}</div>
    <div class="two">${input("latitude", { inputmode: "decimal" })}${input("longitude", { inputmode: "decimal" })}</div>
    <fieldset class="place stack"><legend>${t("own.delivery")}</legend>
      ${SWITCHES.map((name) => html`<${Switch} key=${name} label=${t(`own.${name}`)} checked=${given[name]} onChange=${(value) => set(name, value)} />`)}
      ${input("delivery_radius_km", { inputmode: "decimal", help: t("own.radius.help") })}</fieldset>
    <div class="row"><div class="grow"></div><${Button} kind="primary" type="submit" disabled=${isBusy}>${t("save")}<//></div>
  </form>`;
}

function formOf(shop) {
  const written = [...TEXTS, ...NUMBERS].map((name) => [name, String(shop[name] ?? "")]);
  return { ...Object.fromEntries(written), ...Object.fromEntries(SWITCHES.map((name) => [name, shop[name]])) };
}

/** Only what differs is sent; what is empty is cleared. A comma is how Indonesia writes decimals. */
function changesOf(given, shop) {
  const before = formOf(shop);
  const changed = Object.keys(given).filter((name) => given[name] !== before[name]);
  return Object.fromEntries(changed.map((name) => [name, sent(name, given[name])]));
}

function sent(name, value) {
  if (typeof value === "boolean") return value;
  const text = value.trim();
  if (!text) return REQUIRED.includes(name) ? text : null;
  const number = Number(text.replace(",", "."));
  return NUMBERS.includes(name) && Number.isFinite(number) ? number : text;
}
