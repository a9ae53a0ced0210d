/** One's own account: profile, what the assistant shall prefer, where one is signed in, the data that is kept, and its end. */

import { Button, Dialog, Field, Note, toast } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatDay, formatTime, t } from "../../app/words.js";
import { goTo } from "../address/place.js";
import { account, actingAs, learnAccount, signOut } from "../../market/account.js";
import { fieldFaults } from "../../market/field_faults.js";
import { NoticePreferences } from "../../market/notice_preferences.js";
import { SignInNote } from "../../market/sign_in_note.js";
import { keepTokens, marketCall, marketJson, tokens } from "../../market/market_calls.js";

export function AccountPage() {
  const who = account.value;
  if (who === undefined) return null;
  if (!who) return html`<${SignInNote} icon="user" title=${t("account")} about=${t("account.sign.in")} />`;
  return html`<section class="account-page stack"><h2>${t("account.of", { name: who.name })}</h2>
    ${who.email_confirmed === false && html`<${ConfirmEmail} />`}
    <${Preferences} />
    ${tokens.value && html`<${Profile} who=${who} /><${NoticePreferences} path="api/notices/preferences" /><${NewPassword} /><${Sessions} /><${Data} who=${who} />`}
  </section>`;
}

/** Runs what a button or form does: `[attempt, error]`. */
function useAttempt() {
  const [error, setError] = useState("");
  const attempt = async (work) => {
    setError("");
    try {
      return await work();
    } catch (fault) {
      setError(fieldFaults(fault).password ?? fault.message);
      return undefined;
    }
  };
  return [attempt, error && html`<${Note} kind="bad" role="alert">${error}<//>`];
}

function ConfirmEmail() {
  const [attempt, error] = useAttempt();
  const send = () => attempt(async () => {
    await marketCall("api/auth/email/confirmation", { method: "POST" });
    toast(t("account.sent.confirmation"), "send");
  });
  return html`${error}<${Note} kind="warn"><div class="row-wrap"><span class="grow">${t("account.unconfirmed")}</span><${Button} small onClick=${send}>${t("account.confirm.again")}<//></div><//>`;
}

const textOf = (given, set, name, label, more = {}) => html`<${Field} label=${t(label)}>${(attributes) => html`<input class="input" ...${more} value=${given[name] ?? ""} onInput=${(event) => set({ ...given, [name]: event.target.value })} ...${attributes} />`}<//>`;

function Profile({ who }) {
  const [given, setGiven] = useState({ name: who.name, phone: who.phone ?? "", city: who.city ?? "" });
  const [attempt, error] = useAttempt();
  const save = (event) => {
    event.preventDefault();
    attempt(async () => {
      await marketCall("api/users/me", { method: "PUT", json: { name: given.name, phone: given.phone || null, city: given.city || null } });
      await learnAccount();
      toast(t("shop.saved"));
    });
  };
  return html`<section class="card"><header><h3>${t("account.profile")}</h3></header><form class="stack" onSubmit=${save}>${error}
    ${textOf(given, setGiven, "name", "account.name", { required: true, autocomplete: "name" })}
    ${textOf(given, setGiven, "phone", "account.phone", { type: "tel", autocomplete: "tel" })}
    ${textOf(given, setGiven, "city", "shop.filter.city", { autocomplete: "address-level2" })}
    <div class="row"><div class="grow"></div><${Button} type="submit">${t("save")}<//></div></form></section>`;
}

/** They break ties, and never hide a product. */
function Preferences() {
  const [given, setGiven] = useState(null);
  const [attempt, error] = useAttempt();
  const path = `api/users/me/preferences?${new URLSearchParams(actingAs())}`;
  useEffect(() => {
    attempt(async () => {
      const kept = await marketJson(path);
      setGiven({ brands: kept.brands.join(", "), max_price: kept.max_price ?? "", city: kept.city ?? "", condition: kept.condition ?? "" });
    });
  }, []);
  const save = (event) => {
    event.preventDefault();
    const brands = given.brands.split(",").map((name) => name.trim()).filter(Boolean);
    const json = { brands, max_price: Number(String(given.max_price).replace(/\D/g, "")) || null, city: given.city || null, condition: given.condition || null };
    attempt(async () => { await marketCall(path, { method: "PUT", json }); toast(t("shop.saved")); });
  };
  return html`<section class="card"><header><h3>${t("shop.preferences")}</h3></header><p class="soft">${t("shop.preferences.about")}</p>${error}
    ${given && html`<form class="stack" onSubmit=${save}>
      ${textOf(given, setGiven, "brands", "shop.preferences.brands", { placeholder: "Asus, Lenovo" })}
      ${textOf(given, setGiven, "max_price", "shop.preferences.max_price", { inputmode: "numeric" })}
      ${textOf(given, setGiven, "city", "shop.filter.city")}
      <${Field} label=${t("shop.filter.condition")}>${(attributes) => html`<select class="select" value=${given.condition} onChange=${(event) => setGiven({ ...given, condition: event.target.value })} ...${attributes}>
        ${["", "new", "used"].map((name) => html`<option value=${name} selected=${name === given.condition}>${name ? t(`shop.value.condition.${name}`) : t("shop.any")}</option>`)}</select>`}<//>
      <div class="row"><div class="grow"></div><${Button} type="submit">${t("save")}<//></div></form>`}</section>`;
}

function NewPassword() {
  const [given, setGiven] = useState({ old: "", next: "" });
  const [attempt, error] = useAttempt();
  const save = (event) => {
    event.preventDefault();
    attempt(async () => {
      await marketCall("api/auth/password", { method: "POST", json: { password: given.next, old_password: given.old || null } });
      setGiven({ old: "", next: "" });
      toast(t("account.password.changed"));
    });
  };
  return html`<section class="card"><header><h3>${t("account.password")}</h3></header><form class="stack" onSubmit=${save}>${error}
    ${textOf(given, setGiven, "old", "account.password.old", { type: "password", autocomplete: "current-password" })}
    ${textOf(given, setGiven, "next", "account.password.new", { type: "password", autocomplete: "new-password", required: true, minlength: 8 })}
    <div class="row"><div class="grow"></div><${Button} type="submit">${t("save")}<//></div></form></section>`;
}

function Sessions() {
  const [all, setAll] = useState([]);
  const [attempt, error] = useAttempt();
  const read = () => attempt(async () => setAll(await marketJson("api/auth/sessions")));
  useEffect(() => { read(); }, []);
  const end = (path) => attempt(async () => { await marketCall(path, { method: "DELETE" }); await read(); });
  return html`<section class="card"><header><h3 class="grow">${t("shop.sessions")}</h3>${all.length > 1 && html`<${Button} small onClick=${() => end("api/auth/sessions")}>${t("shop.sessions.end.others")}<//>`}</header>${error}
    <ul class="sessions">${all.map((one) => html`<li class="row-wrap" key=${one.id}><span class="grow one-line" title=${one.agent}>${one.agent ?? t("shop.sessions.unknown")}</span>
      <span class="faint">${formatDay(new Date(one.refreshed_at ?? one.signed_in_at))}, ${formatTime(new Date(one.refreshed_at ?? one.signed_in_at))}</span>
      ${one.is_current ? html`<span class="soft">${t("shop.sessions.here")}</span>` : html`<${Button} small onClick=${() => end(`api/auth/sessions/${one.id}`)}>${t("shop.sessions.end")}<//>`}</li>`)}</ul></section>`;
}

/** Everything that is kept of one, as a file; and its erasure. */
function Data({ who }) {
  const [isErasing, setErasing] = useState(false);
  const [attempt, error] = useAttempt();
  const save = () => attempt(async () => {
    const blob = await (await marketCall("api/users/me/export")).blob();
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: "my-data.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  return html`<section class="card"><header><h3>${t("shop.data")}</h3></header><p class="soft">${t("shop.data.about")}</p>${error}
    <div class="row-wrap"><${Button} icon="download" onClick=${save}>${t("shop.data.export")}<//><${Button} icon="log-out" onClick=${() => signOut()}>${t("account.logout")}<//><div class="grow"></div>
      <${Button} kind="danger" icon="trash-2" onClick=${() => setErasing(true)}>${t("shop.data.erase")}<//></div>
    ${isErasing && html`<${Erase} who=${who} onClose=${() => setErasing(false)} />`}</section>`;
}

function Erase({ who, onClose }) {
  const [given, setGiven] = useState({ password: "" });
  const [attempt, error] = useAttempt();
  const erase = (event) => {
    event.preventDefault();
    attempt(async () => {
      await marketCall("api/users/me", { method: "DELETE", json: who.has_password === false ? {} : { password: given.password } });
      keepTokens(null);
      onClose();
      goTo("#/");
      await learnAccount();
      toast(t("shop.data.erased"), "trash-2");
    });
  };
  return html`<${Dialog} title=${t("shop.data.erase")} onClose=${onClose}><form class="stack" onSubmit=${erase}>${error}<p>${t("shop.data.erase.about")}</p>
    ${who.has_password !== false && textOf(given, setGiven, "password", "account.password", { type: "password", required: true, autocomplete: "current-password" })}
    <div class="row"><div class="grow"></div><${Button} kind="danger" type="submit">${t("shop.data.erase.do")}<//></div></form><//>`;
}
