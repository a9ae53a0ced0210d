/** Where one writes. */

import { Button } from "../../design/components.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";

export function Composer({ running, onSend, onStop }) {
  const [text, setText] = useState("");
  const submit = (event) => {
    event?.preventDefault();
    if (!text.trim() || running) return;
    onSend({ text: text.trim(), attachments: [] });
    setText("");
  };
  const onKey = (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event); };
  return html`<form class="composer" onSubmit=${submit}>
    <textarea class="textarea" rows="1" aria-label=${t("chat.message")} placeholder=${t("chat.message")} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
    ${running ? html`<${Button} icon="square" label=${t("chat.stop")} onClick=${onStop} />` : html`<${Button} kind="primary" icon="arrow-up" type="submit" label=${t("chat.send")} disabled=${!text.trim()} />`}
  </form>`;
}
