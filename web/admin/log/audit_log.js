/** Who did what, and when. */

import { html, useState } from "../../app/view.js";
import { t, wordOr } from "../../app/words.js";
import { Badge, Button, Field } from "../../design/components.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";

const ENTITIES = ["product", "supplier", "user", "review", "category", "synonym", "reservation", "conversation"];
const NAMES = ["actor", "entity", "entity_id", "action", "since", "until"];
const MAX_CHARS = 100;

export function AuditLog({ query }) {
  const first = Object.fromEntries(NAMES.map((name) => [name, query[name] ?? ""]));
  const [given, setGiven] = useState(first);
  const [asked, setAsked] = useState(first);
  const pages = usePages(`api/audit?${parametersOf(asked)}`);
  const search = (event) => {
    event.preventDefault();
    setAsked(given);
  };
  const change = (name) => (event) => setGiven({ ...given, [name]: event.target.value });
  const field = (name, label, more = {}) => html`<${Field} label=${label}>${(attributes) => html`<input class="input" name=${name} maxlength=${MAX_CHARS} ...${more} value=${given[name]} onInput=${change(name)} ...${attributes} />`}<//>`;
  return html`<${PartHead} title=${t("admin.audit")} about=${t("admin.audit.about")} />
    <form class="audit-form" role="search" aria-label=${t("admin.audit.search")} onSubmit=${search}>
      ${field("actor", t("admin.audit.who"), { placeholder: "user:7", pattern: "(user|supplier):[0-9]+" })}
      <${Field} label=${t("admin.audit.entity")}>${(attributes) => html`<select class="select" name="entity" value=${given.entity} onChange=${change("entity")} ...${attributes}><option value="">${t("admin.audit.any")}</option>${ENTITIES.map((name) => html`<option key=${name} value=${name} selected=${name === given.entity}>${t(`admin.entity.${name}`)}</option>`)}</select>`}<//>
      ${field("entity_id", t("admin.audit.entity_id"))}
      ${field("action", t("admin.audit.action"), { placeholder: "moderate" })}
      ${field("since", t("admin.audit.since"), { type: "date" })}
      ${field("until", t("admin.audit.until"), { type: "date" })}
      <${Button} type="submit" icon="search">${t("admin.search")}<//>
    </form>
    <${PagedList} pages=${pages} label=${t("admin.audit")} empty=${t("admin.audit.none")}>${(one) => html`<${AuditEntry} one=${one} />`}<//>`;
}

/** Days are those of the reader: the last one counts to its end. */
function parametersOf({ since, until, ...given }) {
  const query = Object.entries(given).map(([name, value]) => [name, value.trim()]).filter(([, value]) => value);
  const times = { ...(since && { since: midnight(since, 0) }), ...(until && { until: midnight(until, 1) }) };
  return new URLSearchParams({ ...Object.fromEntries(query), ...times, limit: 50 });
}

function midnight(day, later) {
  const [year, month, date] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later).toISOString();
}

export function AuditEntry({ one }) {
  const changes = Object.entries(one.changes);
  return html`<article class="audit-entry">
    <div class="row-wrap"><${Badge}>${one.action}<//><span>${wordOr(`admin.entity.${one.entity}`, one.entity)} <span class="mono">${one.entity_id}</span></span><span class="grow"></span><span class="faint"><small>${one.actor ?? t("admin.audit.nobody")} · <${Moment} at=${one.at} /></small></span></div>
    ${Boolean(changes.length) && html`<dl class="audit-changes">${changes.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${changeOf(value)}</dd></div>`)}</dl>`}
  </article>`;
}

/** `[before, after]`; of personal data the log says only that it changed. */
function changeOf(value) {
  if (value === true) return t("admin.audit.changed");
  if (!Array.isArray(value) || value.length !== 2) return typeof value === "string" ? value : JSON.stringify(value);
  const [before, after] = value.map((one) => (one === null ? "–" : typeof one === "string" ? one : JSON.stringify(one)));
  return `${before} → ${after}`;
}
