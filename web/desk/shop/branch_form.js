/** One place of the shop: what it is called, where it is, and when it is open. */

import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Field, Note, Switch } from "../../design/components.js";
import { keyFor, marketJson } from "../../market/market_calls.js";
import { fieldMessages, messageOf } from "../own_shop/messages_of.js";
import { PlaceFields } from "../own_shop/place_fields.js";
import { HoursFields, hoursForm, hoursSent } from "./hours_fields.js";
import { profile } from "./own_profile.js";

const TEXTS = ["name", "address", "city", "province"];
const NUMBERS = ["latitude", "longitude"];

/** `branch`: null for a new one, whose hours begin as those of the shop. */
export function BranchForm({ path, branch, onSaved, onBack, onStale }) {
  const [given, setGiven] = useState(() => Object.fromEntries([...TEXTS, ...NUMBERS].map((name) => [name, String(branch?.[name] ?? "")])));
  const [isShown, setShown] = useState(branch?.shows_place ?? false);
  const [hours, setHours] = useState(() => hoursForm(branch ?? profile.value));
  const [errors, setErrors] = useState({});
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const form = useRef(null);
  const key = useRef({ text: null, name: null });
  useEffect(() => { form.current.elements.name.focus(); }, []);
  const set = (changes) => setGiven((before) => ({ ...before, ...changes }));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    setErrors({});
    const json = { ...sent(given), shows_place: isShown, ...hoursSent(hours, branch?.time_zone) };
    try {
      if (branch) await marketJson(`${path}/${branch.id}`, { method: "PUT", json: { ...json, version: branch.version } });
      else await marketJson(path, { method: "POST", json, headers: { "Idempotency-Key": keyFor(key.current, JSON.stringify(json)) } });
      onSaved();
    } catch (fault) {
      setErrors(fieldMessages(fault));
      setError(messageOf(fault));
      setBusy(false);
      if (fault.status === 412) onStale();
    }
  };
  const input = (name, more = {}) => html`<${Field} label=${t(name === "name" ? "branches.name" : `desk.shop.${name}`)} error=${errors[name]}>${(attributes) => html`<input class="input" name=${name} value=${given[name]} ...${more} onInput=${(event) => set({ [name]: event.target.value })} ...${attributes} />`}<//>`;
  return html`<form ref=${form} class="card stack own-form" onSubmit=${submit}>
    <h2>${branch ? t("branches.change", { name: branch.name }) : t("branches.new")}</h2>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${input("name", { required: true, autocomplete: "off", maxlength: 200 })}
    ${input("address", { autocomplete: "street-address", maxlength: 500 })}
    <div class="two">${input("city", { required: true, autocomplete: "address-level2" })}${input("province", { autocomplete: "address-level1" })}</div>
    <${PlaceFields} input=${input} set=${set} help=${t("branches.place.help")} />
    <${Switch} label=${t("branches.shows_place")} checked=${isShown} onChange=${setShown} />
    <${HoursFields} given=${hours} onChange=${setHours} />
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onBack}>${t("cancel")}<//><${Button} kind="primary" type="submit" disabled=${isBusy}>${t("save")}<//></div>
  </form>`;
}

/** A comma is how Indonesia writes decimals; what is empty is cleared. */
function sent(given) {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => {
    const number = Number(value.trim().replace(",", "."));
    return [name, NUMBERS.includes(name) && Number.isFinite(number) ? number : value.trim() || null];
  }));
}
