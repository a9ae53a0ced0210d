/** The form of a new shop. */

import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Field, Note } from "../../design/components.js";
import { account, readConsent } from "../../market/account.js";
import { fieldMessages, messageOf } from "./messages_of.js";
import { registerShop } from "./own_shop.js";
import { PlaceFields } from "./place_fields.js";

const EMPTY = { business_name: "", name: "", email: "", phone: "", address: "", city: "", province: "", latitude: "", longitude: "" };

export function RegisterShop() {
  const who = account.value;
  const [given, setGiven] = useState({ ...EMPTY, name: who?.name ?? "", city: who?.city ?? "" });
  const [errors, setErrors] = useState({});
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [consent, setConsent] = useState(null);
  useEffect(() => { readConsent().then(setConsent, () => {}); }, []);
  const set = (changes) => setGiven((before) => ({ ...before, ...changes }));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    setErrors({});
    try {
      await registerShop({ ...sent(given), ...(consent?.version && { consent_version: consent.version }) });
    } catch (fault) {
      setErrors(fieldMessages(fault));
      setError(messageOf(fault));
      setBusy(false);
    }
  };
  const input = (name, more = {}) => html`<${Field} label=${t(`desk.shop.${name}`)} help=${more.help} error=${errors[name]}>${(attributes) => html`<input class="input" name=${name} value=${given[name]} ...${{ ...more, help: undefined }}
    onInput=${(event) => set({ [name]: event.target.value })} ...${attributes} />`}<//>`;
  return html`<section class="register-shop stack"><h1>${t("desk.shop.register")}</h1><p class="soft">${t("desk.shop.register.why")}</p>
    <form class="card stack" onSubmit=${submit}>
      ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
      ${input("business_name", { required: true, autocomplete: "organization" })}
      <div class="two">${input("name", { required: true, autocomplete: "name" })}${input("email", { required: true, type: "email", autocomplete: "email", help: t("desk.shop.email.help") })}</div>
      ${input("phone", { type: "tel", autocomplete: "tel" })}
      ${input("address", { autocomplete: "street-address" })}
      <div class="two">${input("city", { required: true, autocomplete: "address-level2" })}${input("province", { autocomplete: "address-level1" })}</div>
      <${PlaceFields} input=${input} set=${set} help=${t("desk.shop.place.help")} />
      ${consent?.url && html`<p class="soft"><small>${t("account.consent")} <a href=${consent.url} rel="noopener noreferrer" target="_blank">${t("account.notice")}</a></small></p>`}
      <div class="row"><div class="grow"></div><${Button} kind="primary" icon="store" type="submit" disabled=${isBusy}>${t("desk.shop.register.do")}<//></div>
    </form></section>`;
}

/** A comma is how Indonesia writes decimals. */
function sent(given) {
  const filled = Object.entries(given).filter(([, value]) => value.trim());
  return Object.fromEntries(filled.map(([name, value]) => [name, name === "latitude" || name === "longitude" ? number(value) : value.trim()]));
}

function number(text) {
  const value = Number(text.replace(",", "."));
  return Number.isFinite(value) ? value : text;
}
