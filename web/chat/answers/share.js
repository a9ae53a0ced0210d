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
  const message = messageOf(path.peek().at(-1));
  const { answer } = message ?? {};
  const close = () => { sharing.value = ""; };
  useEffect(() => { linkOf(message).then(setLink, (fault) => setError(fault.message)); }, []);
  return html`<${Dialog} title=${t("chat.share")} onClose=${close} footer=${html`<${Button} onClick=${close}>${t("close")}<//>`}>
    <div class="stack">
      <p class="soft">${t("chat.share.why")}</p>
      ${answer?.api === "responses" && html`<p class="soft">${t("chat.share.tools")}</p>`}
      ${error && html`<${Note} kind="bad">${t("chat.share.gone")}<//>`}
      ${link && html`<div class="row"><input class="input mono" readonly aria-label=${t("chat.share.link")} value=${link} onFocus=${(event) => event.target.select()} /><${CopyButton} text=${link} small=${false} /></div>`}
    </div>
  <//>`;
}

/** What the server calls the answer. */
const nameOf = (answer) => (answer?.api === "responses" ? answer.responseId : answer?.sessionId);

async function linkOf(message) {
  const name = nameOf(message?.answer);
  if (!name) throw new Error(t("chat.share.gone"));
  const answer = await call(`v1/stream/${encodeURIComponent(name)}/read_token`, { method: "POST" });
  const { read_token: token } = await answer.json();
  const address = new URL(location.href);
  address.hash = watchHash(name, { token, question: messageOf(message.parentId)?.text ?? "" });
  return address.href;
}
