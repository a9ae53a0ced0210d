/** A request as curl, Python and JavaScript. */

import { Dialog } from "../design/components.js";
import { html } from "../app/view.js";
import { t } from "../app/words.js";

export function CodeDialog({ request, onClose }) {
  return html`<${Dialog} title=${t("chat.as_code")} wide onClose=${onClose}><pre>${JSON.stringify(request, null, 2)}</pre><//>`;
}
