/** Cards as JSON or as a table: to the clipboard, or as a file. Each says whether the NIK is in it. */

import { copyText, Menu, toast } from "../design/components.js";
import { html } from "../app/view.js";
import { counted, t } from "../app/words.js";
import { isNikShown } from "./cards.js";
import { csvOf, download, jsonOf } from "./copies.js";

export function CopyMenu({ cards }) {
  const nik = t(isNikShown.value ? "card.copy.nik.shown" : "card.copy.nik.hidden");
  const items = [
    { icon: "clipboard-copy", label: t("card.copy.json", { nik }), onSelect: () => copy(cards, "JSON", jsonOf) },
    { icon: "clipboard-copy", label: t("card.copy.csv", { nik }), onSelect: () => copy(cards, "CSV", csvOf) },
    { icon: "download", label: t("card.download.json", { nik }), onSelect: () => download(jsonOf(cards, isNikShown.value), "application/json", "cards.json") },
    { icon: "download", label: t("card.download.csv", { nik }), onSelect: () => download(csvOf(cards, isNikShown.value), "text/csv", "cards.csv") },
  ];
  return html`<${Menu} icon="copy" kind="" text=${t("copy")} label=${t(cards.length > 1 ? "card.copy.all" : "card.copy.one")} items=${items} end />`;
}

async function copy(cards, form, textOf) {
  try {
    await copyText(textOf(cards, isNikShown.value));
    toast(counted(isNikShown.value ? "card.copied.with" : "card.copied.without", cards.length, { form }));
  } catch {
    toast(t("card.copy.failed"), "circle-alert");
  }
}
