/** Goes on in the next commit. */

import { html } from "../../app/view.js";
import { t } from "../../app/words.js";

export function SheetsPart() {
  return html`<h1>${t("desk.sheets")}</h1>`;
}
