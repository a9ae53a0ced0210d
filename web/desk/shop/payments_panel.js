/** How the shop is paid: cash, a bank account, its QRIS code, a provider. */

import { html, useEffect, useRef, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { Badge, Button, CopyButton, Field, Icon, Note, Switch, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";

const ACCOUNT = { bank_name: 100, account_number: 50, account_holder: 200 };
const KEYS = { midtrans: ["server_key"], xendit: ["secret_key", "callback_token"] };

export function PaymentsPanel({ shop }) {
  const path = `api/suppliers/${shop.id}/payment-methods`;
  const [methods, setMethods] = useState(null);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => { marketJson(path).then(setMethods, (fault) => setError(messageOf(fault))); }, []);
  const doing = async (work) => {
    setBusy(true);
    setError("");
    try {
      setMethods(await work());
      toast(t("own.saved"));
      return true;
    } catch (fault) {
      setError(messageOf(fault));
      return false;
    } finally {
      setBusy(false);
    }
  };
  const change = (json) => doing(() => marketJson(path, { method: "PUT", json }));
  const upload = (file) => {
    const form = new FormData();
    form.set("file", file, "qris"); // the name of the file is nobody's business
    return doing(() => marketJson(`${path}/qris`, { method: "POST", body: form }));
  };
  return html`<section class="card own-panel stack" aria-busy=${isBusy}><header role="presentation"><${Icon} name="credit-card" /><h2 class="grow">${t("methods")}</h2></header>
    <p class="soft">${t("methods.about")}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${!methods && !error && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${methods && html`<${Switch} label=${t("order.payment.cash")} checked=${methods.cash} onChange=${(value) => change({ cash: value })} />
      <${AccountForm} account=${methods.transfer} isBusy=${isBusy} change=${change} key=${JSON.stringify(methods.transfer)} />
      <${QrisPart} code=${methods.qris} isBusy=${isBusy} upload=${upload} change=${change} />
      <${ProviderForm} provider=${methods.provider} isBusy=${isBusy} change=${change} key=${JSON.stringify(methods.provider)} />`}
  </section>`;
}

function AccountForm({ account, isBusy, change }) {
  const [given, setGiven] = useState(account ?? { bank_name: "", account_number: "", account_holder: "" });
  const submit = (event) => {
    event.preventDefault();
    change({ transfer: given });
  };
  return html`<form onSubmit=${submit}><fieldset class="place stack"><legend>${t("order.payment.transfer")}</legend>
    <div class="two">${Object.entries(ACCOUNT).map(([name, most]) => html`<${Field} key=${name} label=${t(`methods.${name}`)}>${(attributes) => html`<input class="input" required maxlength=${most} autocomplete="off" value=${given[name]} onInput=${(event) => setGiven({ ...given, [name]: event.target.value })} ...${attributes} />`}<//>`)}</div>
    <div class="row-wrap"><${Button} type="submit" icon="check" disabled=${isBusy}>${t("methods.account.save")}<//>${account && html`<${Button} kind="quiet" icon="trash-2" disabled=${isBusy} onClick=${() => change({ transfer: null })}>${t("methods.account.remove")}<//>`}</div></fieldset></form>`;
}

function QrisPart({ code, isBusy, upload, change }) {
  const picker = useRef(null);
  const chosen = (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) upload(file);
  };
  return html`<fieldset class="place stack"><legend>QRIS</legend>
    ${code ? html`<p><strong>${code.merchant_name}</strong> <span class="soft">${code.merchant_city}</span></p>` : html`<p class="faint">${t("methods.qris.none")}</p>`}
    <div class="row-wrap"><input ref=${picker} type="file" accept="image/*" hidden onChange=${chosen} aria-label=${t("methods.qris.upload")} /><${Button} icon="upload" disabled=${isBusy} onClick=${() => picker.current.click()}>${t("methods.qris.upload")}<//>
      ${code && html`<${Button} kind="quiet" icon="trash-2" disabled=${isBusy} onClick=${() => change({ qris: null })}>${t("methods.qris.remove")}<//>`}</div></fieldset>`;
}

/** Keys are sent and never shown again. */
function ProviderForm({ provider, isBusy, change }) {
  const [name, setName] = useState(provider?.provider ?? "midtrans");
  const [environment, setEnvironment] = useState(provider?.environment ?? "production");
  const [keys, setKeys] = useState({});
  const isStored = provider?.provider === name;
  const given = Object.fromEntries(KEYS[name].map((key) => [key, (keys[key] ?? "").trim()]).filter(([, text]) => text));
  const submit = (event) => {
    event.preventDefault();
    change({ provider: { provider: name, environment, ...(Object.keys(given).length && { [name]: given }) } });
  };
  const choice = (label, value, values, set, textOf) => html`<${Field} label=${label}>${(attributes) => html`<select class="select" value=${value} onChange=${(event) => set(event.target.value)} ...${attributes}>${values.map((one) => html`<option key=${one} value=${one} selected=${one === value}>${textOf(one)}</option>`)}</select>`}<//>`;
  return html`<form onSubmit=${submit}><fieldset class="place stack"><legend>${t("order.payment.provider")}</legend>
    ${provider && !provider.keys_are_readable && html`<${Note} kind="warn">${t("methods.keys.lost")}<//>`}
    <div class="two">${choice(t("methods.provider"), name, Object.keys(KEYS), setName, (one) => (one === "midtrans" ? "Midtrans" : "Xendit"))}${choice(t("methods.environment"), environment, ["production", "sandbox"], setEnvironment, (one) => t(`methods.environment.${one}`))}</div>
    ${KEYS[name].map((key) => html`<${Field} key=${`${name}.${key}`} label=${t(`methods.${key}`)} help=${isStored && provider.keys_since ? t("methods.keys.since", { day: formatDay(new Date(provider.keys_since)) }) : undefined}>${(attributes) => html`<input class="input" type="password" autocomplete="off" minlength="8" maxlength="200" required=${!isStored} value=${keys[key] ?? ""} onInput=${(event) => setKeys({ ...keys, [key]: event.target.value })} ...${attributes} />`}<//>`)}
    ${isStored && html`<p class="row-wrap"><span class="soft">${t("methods.callback")}</span> <code class="grow">${provider.callback_url}</code><${CopyButton} text=${provider.callback_url} label=${t("methods.callback.copy")} /></p>`}
    <div class="row-wrap"><${Button} type="submit" icon="check" disabled=${isBusy}>${t("methods.provider.save")}<//>${provider && html`<${Badge} kind="good">${t("methods.provider.on")}<//><${Button} kind="quiet" icon="trash-2" disabled=${isBusy} onClick=${() => change({ provider: null })}>${t("methods.provider.remove")}<//>`}</div></fieldset></form>`;
}
