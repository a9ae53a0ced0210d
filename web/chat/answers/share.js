/** A link with which others watch an answer as it comes, on any device, without changing it. */

import { Button, CopyButton, Dialog, Note } from "../../design/components.js";
import { call } from "../../app/api.js";
import { html, signal, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { watchHash } from "../conversations/address.js";
import { conversations, messageOf, path } from "../conversations/conversations.js";

/** The id of the conversation whose dialog is open. */
export const sharing = signal("");

export function ShareDialog() {
  const conversation = conversations.value.find((one) => one.id === sharing.value);
  if (!conversation) return null;
  return html`<${Share} key=${conversation.id} />`;
}

function Share() {
  const [link, setLink] = useState(null);
  const [error, setError] = useState("");
  const close = () => { sharing.value = ""; };
  useEffect(() => { linkOf(messageOf(path.peek().at(-1))).then(setLink, (fault) => setError(fault.message)); }, []);
  return html`<${Dialog} title=${t("chat.share")} onClose=${close} footer=${html`<${Button} onClick=${close}>${t("close")}<//>`}>
    <div class="stack">
      <p class="soft">${t("chat.share.why")}</p>
      ${error && html`<${Note} kind="bad">${t("chat.share.gone")}<//>`}
      ${link && html`<div class="row"><input class="input mono" readonly aria-label=${t("chat.share.link")} value=${link} onFocus=${(event) => event.target.select()} /><${CopyButton} text=${link} small=${false} /></div>`}
    </div>
  <//>`;
}

async function linkOf(message) {
  if (message?.answer?.api !== "chat") throw new Error(t("chat.share.gone"));
  const { sessionId } = message.answer;
  const answer = await call(`v1/stream/${encodeURIComponent(sessionId)}/read_token`, { method: "POST" });
  const { read_token: token } = await answer.json();
  const address = new URL(location.href);
  address.hash = watchHash(sessionId, { token, question: messageOf(message.parentId)?.text ?? "" });
  return address.href;
}
