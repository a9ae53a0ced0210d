/** What comes by mail, and when: of an account, or of a shop. */

import { html, useEffect, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Field, Note, Switch, toast } from "../design/components.js";
import { marketJson } from "./market_calls.js";

export const GROUPS = ["orders", "messages", "holds", "prices", "stock", "reviews", "account"];
const OF_SHOPS = ["stock", "reviews", "account"];
const DIGESTS = ["now", "hourly", "daily"];
const LANGUAGES = ["", "id", "en"];
const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

export function NoticePreferences({ path, isShop = false, level = "h3" }) {
  const [given, setGiven] = useState(null);
  const [error, setError] = useState("");
  const attempt = async (work) => {
    setError("");
    try {
      setGiven(formOf(await work()));
      return true;
    } catch (fault) {
      setError(fault.message);
      return false;
    }
  };
  useEffect(() => { attempt(() => marketJson(path)); }, []);
  const save = async (event) => {
    event.preventDefault();
    if (await attempt(() => marketJson(path, { method: "PUT", json: bodyOf(given, isShop) }))) toast(t("notices.saved"));
  };
  const set = (name, value) => setGiven({ ...given, [name]: value });
  const tick = (group, isOn) => set("mail", GROUPS.filter((one) => (one === group ? isOn : given.mail.includes(one))));
  const chosen = (name, label, values, said) => html`<${Field} label=${t(label)}>${(attributes) => html`<select class="select" name=${name} value=${String(given[name])} onChange=${(event) => set(name, event.target.value)} ...${attributes}>${values.map((one) => html`<option value=${String(one)} selected=${String(one) === String(given[name])}>${said(one)}</option>`)}</select>`}<//>`;
  const input = (name, label, more = {}) => html`<${Field} label=${t(label)} help=${more.help}>${(attributes) => html`<input class="input" name=${name} value=${given[name]} ...${{ ...more, help: undefined }} onInput=${(event) => set(name, event.target.value)} ...${attributes} />`}<//>`;
  return html`<section class="card own-panel"><header role="presentation"><${level} class="grow">${t("notices")}<//></header>
    <div class="stack"><p class="soft">${t("notices.about")}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${given && html`<form class="stack" onSubmit=${save}>
      ${!given.email_confirmed && html`<${Note} kind="warn">${t("notices.unconfirmed")}<//>`}
      ${GROUPS.filter((one) => isShop || !OF_SHOPS.includes(one)).map((one) => html`<${Switch} key=${one} label=${t(`notices.group.${one}`)} checked=${given.mail.includes(one)} onChange=${(isOn) => tick(one, isOn)} />`)}
      ${chosen("digest", "notices.digest", DIGESTS, (one) => t(`notices.digest.${one}`))}
      ${given.digest === "daily" && chosen("digest_hour", "notices.hour", HOURS, (hour) => `${String(hour).padStart(2, "0")}:00`)}
      <fieldset class="place stack"><legend>${t("notices.quiet", { zone: given.zone })}</legend><div class="row-wrap">${input("from", "notices.quiet.from", { type: "time" })}${input("until", "notices.quiet.until", { type: "time" })}</div></fieldset>
      ${chosen("language", "notices.language", LANGUAGES, (one) => t(`notices.language.${one || "both"}`))}
      ${isShop && input("low", "notices.low", { inputmode: "numeric", help: t("notices.low.help") })}
      <div class="row"><div class="grow"></div><${Button} type="submit">${t("save")}<//></div></form>`}</div></section>`;
}

function formOf(kept) {
  return {
    ...kept,
    from: kept.quiet_hours?.from ?? "",
    until: kept.quiet_hours?.until ?? "",
    language: kept.language ?? "",
    low: kept.low_stock_below ?? "",
    zone: kept.time_zone_in_use,
  };
}

function bodyOf(given, isShop) {
  return {
    mail: given.mail,
    digest: given.digest,
    digest_hour: Number(given.digest_hour),
    quiet_hours: given.from && given.until ? { from: given.from, until: given.until } : null,
    time_zone: given.time_zone,
    language: given.language || null,
    low_stock_below: isShop ? Number(String(given.low).replace(/\D/g, "")) || null : given.low_stock_below,
  };
}
