/** Sheets of goods: dropped, looked at, mended and imported; and all goods as a sheet. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Icon, Note, toast } from "../../design/components.js";
import { marketCall } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { ImportList } from "./import_list.js";
import { closeImports, openImports } from "./imports.js";
import { fault, file, openSheet, openSheets, stage } from "./sheet.js";
import { SheetPreview } from "./sheet_preview.js";

const TYPES = ".csv,.tsv,.txt,.xlsx,text/csv,application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

export function SheetsPart({ shop }) {
  // Before anything is shown: a sheet that is dropped at once is not put away again.
  useLayoutEffect(() => openSheets(shop.id), []);
  useEffect(() => {
    openImports(shop.id);
    return closeImports;
  }, []);
  const save = async (format) => {
    try {
      const blob = await (await marketCall(`api/suppliers/${shop.id}/products/export?format=${format}`)).blob();
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `products-${shop.id}.${format}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch (error) {
      toast(messageOf(error), "circle-alert");
    }
  };
  return html`<div class="row-wrap"><h1 class="grow">${t("desk.sheets")}</h1><div class="row"><${Button} icon="download" onClick=${() => save("csv")}>${t("sheets.export.csv")}<//><${Button} icon="download" onClick=${() => save("xlsx")}>${t("sheets.export.xlsx")}<//></div></div>
    ${!file.value && html`<${DropZone} />`}
    ${fault.value && html`<${Note} kind="bad" role="alert">${messageOf(fault.value)}<//>`}
    ${file.value && html`<${SheetPreview} />`}
    ${stage.value === "background" && html`<${DropZone} />`}
    <${ImportList} />`;
}

export function DropZone() {
  const field = useRef(null);
  const [isOver, setOver] = useState(false);
  const take = (files) => { if (files.length) openSheet(files[0]); };
  const onDrop = (event) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files);
  };
  return html`<div class=${isOver ? "drop-zone is-over sheet-drop" : "drop-zone sheet-drop"} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${onDrop}>
    <${Icon} name="file-spreadsheet" /><h2>${t("sheets.drop")}</h2><p>${t("sheets.drop.what")}</p>
    <input ref=${field} type="file" hidden accept=${TYPES} onChange=${(event) => { take([...event.target.files]); event.target.value = ""; }} />
    <${Button} kind="primary" icon="upload" onClick=${() => field.current.click()}>${t("sheets.choose")}<//>
    <p class="faint"><small>${t("sheets.drop.how")}</small></p></div>`;
}
