/** One form for each purpose of a link: `reset` asks for a password, the others for a press of the button. */

import { addressOf } from "../app/addresses.js";
import { call } from "../app/api.js";
import { html, useEffect, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Field, Icon, Note } from "../design/components.js";
import { TopBar } from "../design/shell.js";
import { fieldFaults, MIN_PASSWORD } from "../market/field_faults.js";

const ICONS = { reset: "key-round", confirm: "mail", change: "mail", unsubscribe: "bell" };
const MAX_PASSWORD = 200;

export function LinkPage({ purpose, secret }) {
  const isKnown = Object.hasOwn(ICONS, purpose) && secret;
  const title = t(isKnown ? `link.${purpose}` : "link.incomplete.title");
  useEffect(() => { document.title = title; }, [title]);
  return html`<div class="page"><${TopBar} current="link" />
    <main class="link-page" id="content" tabindex="-1"><${Icon} name=${isKnown ? ICONS[purpose] : "circle-alert"} /><h1>${title}</h1>
      ${isKnown ? html`<${LinkForm} purpose=${purpose} secret=${secret} />` : html`<${Note} kind="warn">${t("link.incomplete")}<//>`}
    </main>
  </div>`;
}

function LinkForm({ purpose, secret }) {
  const [password, setPassword] = useState("");
  const [wrongPassword, setWrongPassword] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isDone, setDone] = useState(false);
  const isReset = purpose === "reset";
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    setWrongPassword("");
    try {
      await send(purpose, secret, password);
      setDone(true);
    } catch (fault) {
      const { password: wrong } = fieldFaults(fault);
      setWrongPassword(wrong ?? "");
      if (!wrong) setError(saidOf(purpose, fault));
    }
    setBusy(false);
  };
  if (isDone) return html`<${Note} kind="good" role="status">${t(`link.${purpose}.done`)}<//><p><a href=${addressOf("shop")}>${t("link.to.shop")}</a></p>`;
  return html`<form class="stack" onSubmit=${submit}>
    <p class="soft">${t(`link.${purpose}.about`)}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${isReset && html`<${Field} label=${t("account.password.new")} help=${t("account.password.help", { number: MIN_PASSWORD })} error=${wrongPassword}>${(attributes) => html`<input class="input" type="password" autocomplete="new-password" required autofocus
      minlength=${MIN_PASSWORD} maxlength=${MAX_PASSWORD} value=${password} onInput=${(event) => setPassword(event.target.value)} ...${attributes} />`}<//>`}
    <div><${Button} kind="primary" type="submit" disabled=${isBusy}>${t(`link.${purpose}.do`)}<//></div>
  </form>`;
}

function send(purpose, secret, password) {
  const post = (path, json) => call(path, { method: "POST", key: null, json });
  if (purpose === "unsubscribe") return post(`api/notices/unsubscribe?${new URLSearchParams({ token: secret })}`);
  return purpose === "reset" ? post("api/auth/password/reset", { token: secret, password }) : post("api/auth/email/confirm", { token: secret });
}

/** A new e-mail may be another's by now, which is a 400, too: the server says which. */
function saidOf(purpose, fault) {
  if (fault.status !== 400 || purpose === "change") return fault.message;
  return t(purpose === "unsubscribe" ? "link.unsubscribe.void" : "link.void");
}
