/** What a sheet would import: its columns with their fields, its wrong cells to mend, its first rows. */

import { html } from "../../app/view.js";
import { counted, formatBytes, formatNumber, t } from "../../app/words.js";
import { Badge, Button, Icon, Note } from "../../design/components.js";
import { SheetTable } from "./sheet_table.js";
import { check, closeSheet, columns, edits, file, importSheet, isChanged, problems, report, stage } from "./sheet.js";

export function SheetPreview() {
  const { name, size } = file.value;
  const isBusy = stage.value === "reading" || stage.value === "importing";
  return html`<section class="card stack" aria-label=${name} aria-busy=${isBusy}>
    <div class="row-wrap"><${Icon} name="file-spreadsheet" /><strong class="one-line">${name}</strong><span class="faint numbers">${formatBytes(size)}</span><div class="grow"></div><${Button} small icon="x" onClick=${closeSheet}>${t(stage.value === "done" ? "sheets.next" : "sheets.close")}<//></div>
    ${isBusy && html`<p class="row soft" role="status"><${Icon} name="loader-circle" spin />${t(`sheets.${stage.value}`)}</p>`}
    ${stage.value === "done" && html`<${Done} />`}
    ${stage.value === "background" && html`<${Note} kind="info" role="status">${t("sheets.background")}<//>`}
    ${report.value?.rows && stage.value !== "done" && stage.value !== "background" && html`<${Checked} isBusy=${isBusy} />`}
  </section>`;
}

function Done() {
  const { created, updated, unchanged, errors } = report.value;
  return html`<${Note} kind="good" role="status">${t("sheets.done")} ${numbersOf({ created, updated, unchanged })}<//>
    ${errors.length > 0 && html`<${Note} kind="warn">${counted("sheets.left.out", new Set(errors.map((one) => one.row)).size)}<//>`}
    <div class="row"><a class="button" href="#/goods"><${Icon} name="package" />${t("sheets.to.goods")}</a></div>`;
}

export const numbersOf = ({ created, updated, unchanged }) => t("sheets.numbers", { created: formatNumber(created), updated: formatNumber(updated), unchanged: formatNumber(unchanged) });

function Checked({ isBusy }) {
  const { num_rows: rows, created, updated, unchanged, rows: shown } = report.value;
  const wrong = problems.value;
  const wrongRows = shown.filter((one) => wrong.has(one.row));
  const others = shown.filter((one) => !wrong.has(one.row));
  const notShown = wrong.size - wrongRows.length;
  const isMapped = columns.value.some((one) => one.field);
  return html`<div class="row-wrap sheet-numbers" role="status"><${Badge}>${counted("sheets.rows", rows)}<//><${Badge} kind="good">${counted("sheets.created", created)}<//><${Badge} kind="info">${counted("sheets.updated", updated)}<//><${Badge}>${counted("sheets.unchanged", unchanged)}<//>
      ${wrong.size > 0 && html`<${Badge} kind="bad" icon="circle-alert">${counted("sheets.wrong", wrong.size)}<//>`}${edits.value.size > 0 && html`<${Badge} kind="accent" icon="pencil">${counted("sheets.mended", edits.value.size)}<//>`}</div>
    ${!isMapped && html`<${Note} kind="warn">${t("sheets.no.column")}<//>`}
    ${notShown > 0 && html`<${Note} kind="warn">${counted("sheets.not.shown", notShown)}<//>`}
    <p class="soft">${t("sheets.columns.how")}</p>
    ${wrongRows.length > 0 && html`<h2>${t("sheets.to.mend")}</h2><p class="soft">${t("sheets.to.mend.how")}</p><${SheetTable} label=${t("sheets.to.mend")} rows=${wrongRows} mends />`}
    <details class="sheet-rest" open=${!wrongRows.length}><summary>${t(wrongRows.length ? "sheets.right" : "sheets.first")}</summary><${SheetTable} label=${t("sheets.first")} rows=${others} /></details>
    <div class="row-wrap sheet-actions">
      ${isChanged.value && html`<${Button} icon="refresh-cw" disabled=${isBusy} onClick=${check}>${t("sheets.check")}<//>`}
      <div class="grow"></div>
      ${wrong.size > 0 && !isChanged.value && created + updated > 0 && html`<${Button} disabled=${isBusy} onClick=${() => importSheet(true)}>${t("sheets.import.others")}<//>`}
      <${Button} kind="primary" icon="upload" disabled=${isBusy || !isMapped || (wrong.size > 0 && !isChanged.value)} onClick=${() => importSheet(false)}>${t("sheets.import")}<//>
    </div>`;
}
