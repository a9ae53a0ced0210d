/** What a new chat shows: calls `onSend({ text, attachments })`. */

import { html } from "../app/view.js";
import { t } from "../app/words.js";

export function EmptyState() {
  return html`<div class="empty"><h2>${t("chat.welcome")}</h2></div>`;
}
