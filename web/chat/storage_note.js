/** Says above the composer when this browser does not keep what is shown, and what the user can do about it. */

import { Button, Note } from "../design/components.js";
import { html, signal, useEffect } from "../app/view.js";
import { t } from "../app/words.js";
import { storageState } from "./conversations/database.js";
import { exportConversation } from "./conversations/exporting.js";
import { conversations } from "./conversations/conversations.js";

/** The state whose note the user has closed. */
const closed = signal("stored");

export function StorageNote({ conversation }) {
  const state = storageState.value;
  useEffect(() => { if (state === "stored") closed.value = state; }, [state]);
  if (state === "stored" || state === closed.value) return null;
  const hasMessages = conversations.value.includes(conversation);
  return html`<div class="storage-note" role="status"><${Note} kind="warn"><div class="stack">
    <span>${t(`chat.storage.${state}`)}</span>
    <div class="row-wrap">
      ${state === "outdated" && html`<${Button} small icon="refresh-cw" onClick=${() => location.reload()}>${t("chat.storage.reload")}<//>`}
      ${hasMessages && html`<${Button} small icon="download" onClick=${() => exportConversation(conversation, "json")}>${t("chat.storage.export")}<//>`}
      <${Button} small kind="quiet" onClick=${() => { closed.value = state; }}>${t("close")}<//>
    </div>
  </div><//></div>`;
}
