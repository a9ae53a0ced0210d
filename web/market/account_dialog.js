/** Signing in, registering, and asking for a new password. */

import { Button, Dialog, Field, Note } from "../design/components.js";
import { html, useEffect, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { accountForm, readConsent, register, sendReset, signIn } from "./account.js";
import { fieldFaults, MIN_PASSWORD } from "./field_faults.js";

export function AccountDialog() {
  const form = accountForm.value;
  if (!form) return null;
  return html`<${Dialog} title=${t(`account.${form}`)} onClose=${() => { accountForm.value = null; }}><${AccountForm} form=${form} key=${form} /><//>`;
}

function AccountForm({ form }) {
  const [given, setGiven] = useState({ name: "", email: "", password: "" });
  const [error, setError] = useState("");
  const [faults, setFaults] = useState({});
  const [isSent, setSent] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [consent, setConsent] = useState(null);
  useEffect(() => { if (form === "register") readConsent().then(setConsent, () => {}); }, []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    setFaults({});
    try {
      await send(form, given);
      if (form === "forgot") setSent(true);
      else accountForm.value = null;
    } catch (fault) {
      const found = fieldFaults(fault);
      setFaults(found);
      if (!Object.keys(found).length) setError(fault.message);
    }
    setBusy(false);
  };
  const input = (name, type, autocomplete, more = {}) => html`<${Field} label=${t(`account.${name}`)} help=${more.help} error=${faults[name]}>${(attributes) => html`<input class="input" type=${type} name=${name} required
    autocomplete=${autocomplete} minlength=${more.minlength} value=${given[name]} onInput=${(event) => setGiven({ ...given, [name]: event.target.value })} ...${attributes} />`}<//>`;
  if (isSent) return html`<${Note} kind="good" role="status">${t("account.sent")}<//>`;
  return html`<form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${form === "register" && input("name", "text", "name")}
    ${input("email", "email", "username")}
    ${form === "login" && input("password", "password", "current-password")}
    ${form === "register" && input("password", "password", "new-password", { minlength: MIN_PASSWORD, help: t("account.password.help", { number: MIN_PASSWORD }) })}
    ${consent?.url && html`<p class="soft"><small>${t("account.consent")} <a href=${consent.url} rel="noopener noreferrer" target="_blank">${t("account.notice")}</a></small></p>`}
    <div class="row-wrap account-acts">
      ${form !== "login" && html`<${Button} kind="quiet" onClick=${() => { accountForm.value = "login"; }}>${t("account.login")}<//>`}
      ${form === "login" && html`<${Button} kind="quiet" onClick=${() => { accountForm.value = "register"; }}>${t("account.register")}<//><${Button} kind="quiet" onClick=${() => { accountForm.value = "forgot"; }}>${t("account.forgot")}<//>`}
      <div class="grow"></div>
      <${Button} kind="primary" type="submit" disabled=${isBusy}>${t(`account.${form}.do`)}<//>
    </div>
  </form>`;
}

function send(form, { name, email, password }) {
  if (form === "forgot") return sendReset(email);
  return form === "login" ? signIn(email, password) : register({ name, email, password });
}
