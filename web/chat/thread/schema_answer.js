/** An answer in JSON of a schema: as a form, as JSON, and with a mark that says whether it follows the schema. */

import { Badge, CopyButton, Tabs } from "../../design/components.js";
import { html, useMemo, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { faultsOf } from "../settings/validate.js";

const MAX_ROWS = 500;

/** The schema that the answer's request demanded, or null. */
export function schemaOfAnswer(answer) {
  return answer?.request?.response_format?.json_schema?.schema ?? answer?.request?.text?.format?.schema ?? null;
}

export function SchemaAnswer({ answer }) {
  const [view, setView] = useState("form");
  const schema = schemaOfAnswer(answer);
  const isOver = ["done", "stopped", "failed"].includes(answer.status);
  const { value, faults } = useMemo(() => (isOver ? examined(answer.text, schema) : {}), [answer.text, isOver]);
  if (!isOver) return html`<pre class="schema-json scroll"><code>${answer.text}</code></pre>`;
  const json = value === undefined ? answer.text : JSON.stringify(value, null, 2);
  const shown = value === undefined ? "json" : view;
  return html`<div class="schema-answer">
    <div class="row schema-head">
      ${faults.length ? html`<${Badge} kind="bad" icon="circle-alert">${t("schema.answer.bad")}<//>` : html`<${Badge} kind="good" icon="check">${t("schema.answer.good")}<//>`}
      <div class="grow"></div>
      ${value !== undefined && html`<${Tabs} label=${t("schema.views")} selected=${view} onSelect=${setView} tabs=${[{ id: "form", label: t("schema.answer.form") }, { id: "json", label: "JSON" }]} />`}
      <${CopyButton} text=${json} />
    </div>
    ${shown === "form" ? html`<div role="tabpanel" id="panel-form" aria-label=${t("schema.answer.form")}><${Value} value=${value} schema=${schema} /></div>`
      : html`<pre class="schema-json scroll" tabindex="0" role="tabpanel" id="panel-json" aria-label="JSON"><code>${json}</code></pre>`}
    ${faults.length > 0 && html`<ul class="schema-faults">${faults.map((one) => html`<li><code>${one.place}</code> ${t(`schema.answer.${one.fault}`, { detail: one.detail })}</li>`)}</ul>`}
  </div>`;
}

function examined(text, schema) {
  try {
    const value = JSON.parse(text);
    return { value, faults: faultsOf(value, schema) };
  } catch {
    return { value: undefined, faults: [{ place: "/", fault: "json", detail: "" }] };
  }
}

/** Objects are rows of names and values, lists of objects are tables. */
function Value({ value, schema }) {
  if (Array.isArray(value)) {
    if (!value.length) return html`<span class="faint">${t("schema.answer.none")}</span>`;
    if (value.every((one) => one && typeof one === "object" && !Array.isArray(one))) return html`<${ObjectTable} rows=${value.slice(0, MAX_ROWS)} schema=${schema?.items} />`;
    return html`<ul>${value.slice(0, MAX_ROWS).map((one) => html`<li><${Value} value=${one} schema=${schema?.items} /></li>`)}</ul>`;
  }
  if (value && typeof value === "object") {
    return html`<dl class="schema-form">${Object.entries(value).map(([name, one]) => {
      const described = schema?.properties?.[name];
      return html`<div><dt>${described?.title ?? name}${described?.description && html`<span class="help soft">${described.description}</span>`}</dt><dd><${Value} value=${one} schema=${described} /></dd></div>`;
    })}</dl>`;
  }
  if (value === null) return html`<span class="faint">${t("schema.answer.none")}</span>`;
  if (typeof value === "boolean") return t(value ? "schema.answer.yes" : "schema.answer.no");
  return typeof value === "number" ? html`<span class="numbers">${value}</span>` : String(value);
}

function ObjectTable({ rows, schema }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${t("schema.answer.form")}><table class="table"><thead><tr>${names.map((name) => html`<th scope="col">${schema?.properties?.[name]?.title ?? name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${names.map((name) => html`<td>${name in row ? html`<${Value} value=${row[name]} schema=${schema?.properties?.[name]} />` : ""}</td>`)}</tr>`)}</tbody></table></div>`;
}
