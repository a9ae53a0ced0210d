/** Imports that run, and the last ones: how far they are, and which rows they left out. */

import { html, useState } from "../../app/view.js";
import { counted, formatDay, formatNumber, formatTime, t } from "../../app/words.js";
import { Badge, Button, Meter, Note } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { imports, isRunning, readProblems } from "./imports.js";
import { numbersOf } from "./sheet_preview.js";

const KINDS = { waiting: "info", running: "info", done: "good", failed: "bad" };
const ICONS = { waiting: "clock", running: "loader-circle", done: "check", failed: "circle-alert" };
const MAX_SHOWN = 100;

export function ImportList() {
  const all = imports.value;
  if (!all?.length) return null;
  return html`<section class="stack" aria-label=${t("sheets.imports")}><h2>${t("sheets.imports")}</h2>${all.map((one) => html`<${ImportCard} key=${one.id} job=${one} />`)}</section>`;
}

function ImportCard({ job }) {
  const at = new Date(job.created_at);
  return html`<article class="card stack import-card"><div class="row-wrap"><${Badge} kind=${KINDS[job.status]} icon=${ICONS[job.status]} spin=${job.status === "running"}>${t(`sheets.import.${job.status}`)}<//><strong>${counted("sheets.rows", job.rows)}</strong><span class="soft"><small>${formatDay(at)}, ${formatTime(at)}</small></span></div>
    ${isRunning(job) && html`<${Meter} value=${job.rows ? job.rows_done / job.rows : 0} label=${t("sheets.progress")} /><p class="soft numbers" role="status"><small>${t("sheets.progress.rows", { done: formatNumber(job.rows_done), rows: formatNumber(job.rows) })}</small></p>`}
    <p class="soft numbers">${numbersOf(job)}${job.pictures_left > 0 && html` · ${counted("sheets.pictures.left", job.pictures_left)}`}</p>
    ${job.detail && html`<${Note} kind="bad">${job.detail}<//>`}
    ${!isRunning(job) && job.rows_done > job.created + job.updated + job.unchanged && html`<${LeftOut} id=${job.id} />`}</article>`;
}

/** Read when somebody asks for it: there may be a thousand. */
function LeftOut({ id }) {
  const [rows, setRows] = useState(null);
  const [error, setError] = useState("");
  const read = () => readProblems(id).then(setRows, (fault) => setError(messageOf(fault)));
  if (error) return html`<${Note} kind="bad" role="alert">${error}<//>`;
  if (!rows) return html`<div><${Button} small icon="list" onClick=${read}>${t("sheets.import.problems")}<//></div>`;
  return html`<div class="sheet-scroll scroll" tabindex="0" role="region" aria-label=${t("sheets.import.problems")}><table class="table"><thead><tr><th scope="col" class="number">${t("sheets.row")}</th><th scope="col">${t("sheets.field")}</th><th scope="col">${t("sheets.message")}</th></tr></thead>
    <tbody>${rows.slice(0, MAX_SHOWN).map((one, at) => html`<tr key=${at}><td class="number">${one.row}</td><td>${one.field ?? ""}</td><td>${one.message}</td></tr>`)}</tbody></table></div>`;
}
