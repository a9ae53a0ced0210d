/** Rows of the sheet as they stand in the file, under the choice of what each column is. Wrong cells are fields. */

import { html, useId, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Icon } from "../../design/components.js";
import { cellKey, chooseField, columns, editCell, edits, FIELDS, problems } from "./sheet.js";

/** `mends`: all rows are wrong. */
export function SheetTable({ label, rows, mends = false }) {
  return html`<div class="sheet-scroll scroll" tabindex="0" role="region" aria-label=${label}><table class=${mends ? "table sheet-table mends" : "table sheet-table"}>
    <thead><tr><th scope="col" class="number">${t("sheets.row")}</th>${columns.value.map((column) => html`<th scope="col" key=${column.position}><${ColumnChoice} column=${column} /></th>`)}</tr></thead>
    <tbody>${rows.map((one) => html`<${SheetRow} key=${one.row} row=${one.row} cells=${one.cells} />`)}</tbody></table></div>`;
}

function ColumnChoice({ column }) {
  const name = column.name || t("sheets.column.number", { number: column.position });
  return html`<div class=${column.field ? "sheet-column" : "sheet-column is-ignored"}><span class="one-line" title=${name}>${name}</span>
    <select class="select" aria-label=${t("sheets.column.is", { name })} onChange=${(event) => chooseField(column.position, event.target.value || null)}>
      <option value="" selected=${!column.field}>${t("sheets.column.ignored")}</option>${FIELDS.map((field) => html`<option value=${field} selected=${field === column.field}>${t(`goods.field.${field}`)}</option>`)}</select></div>`;
}

function SheetRow({ row, cells }) {
  const wrong = problems.value.get(row);
  const [isOpen, setOpen] = useState(false);
  const ofRow = wrong?.get("");
  return html`<tr class=${wrong ? "is-wrong" : ""}><th scope="row" class="number"><span class="row"><span class="numbers">${row}</span>${!wrong && html`<${Button} small kind="quiet" icon="pencil" label=${t("sheets.row.edit", { number: row })} aria-pressed=${isOpen} onClick=${() => setOpen(!isOpen)} />`}</span>
      ${ofRow && html`<p class="sheet-problem" role="note"><${Icon} name="circle-alert" /> ${ofRow}</p>`}</th>
    ${columns.value.map((column) => html`<${SheetCell} key=${column.position} row=${row} column=${column} before=${cells[column.position - 1] ?? ""} message=${column.field && wrong?.get(column.field)} isOpen=${isOpen || Boolean(wrong)} />`)}</tr>`;
}

/** `before` is the cell as the server has seen it last, with the edits of then. */
function SheetCell({ row, column, before, message, isOpen }) {
  const id = useId();
  const edited = edits.value.get(cellKey(row, column.position));
  const text = edited ?? before;
  if (!column.field || !isOpen) return html`<td class=${column.field ? "" : "is-ignored"}><span class="sheet-text">${text}</span></td>`;
  const isMended = edited !== undefined && edited !== before;
  const isWrong = message && !isMended;
  return html`<td class=${isWrong ? "is-wrong-cell" : isMended ? "is-mended" : ""} data-label=${t(`goods.field.${column.field}`)}><input class="input" value=${text} aria-label=${t("sheets.cell", { field: t(`goods.field.${column.field}`), number: row })} aria-invalid=${isWrong ? "true" : undefined} aria-describedby=${message ? id : undefined}
    autocomplete="off" spellcheck="false" onInput=${(event) => editCell(row, column.position, event.target.value, edited === before ? undefined : before)} />${message && html`<p class="sheet-problem" id=${id}>${isMended ? html`<${Icon} name="pencil" /> ${t("sheets.cell.mended")}` : html`<${Icon} name="circle-alert" /> ${message}`}</p>`}</td>`;
}
