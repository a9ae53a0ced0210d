/** A button that begins a talk about a product or an order, or writes on in it, and leads there. */

import { html, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note } from "../../design/components.js";
import { requireAccount } from "../account.js";
import { beginTalk, onceKey } from "./talk_calls.js";
import { talkHash } from "./talk_list.js";

const MAX_CHARS = 2000;

/** `path` is the route that takes the text; `about` what it is about, for the buyer or the shop who reads it. */
export function WriteButton({ path, label, about }) {
  const [isOpen, setOpen] = useState(false);
  return html`<${Button} icon="message-circle" onClick=${() => { if (requireAccount()) setOpen(true); }}>${label}<//>
    ${isOpen && html`<${WriteDialog} path=${path} title=${label} about=${about} onClose=${() => setOpen(false)} />`}`;
}

function WriteDialog({ path, title, about, onClose }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const key = useRef(onceKey());
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      const { id } = await beginTalk(path, text.trim(), key.current);
      onClose();
      location.hash = talkHash(id);
      scrollTo(0, 0);
    } catch (fault) {
      setError(fault.message);
      setBusy(false);
    }
  };
  const change = (event) => {
    key.current = onceKey();
    setText(event.target.value);
  };
  return html`<${Dialog} title=${title} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <p class="soft">${t("talk.write.about", { name: about })}</p>
    <${Field} label=${t("talk.text")} help=${t("talk.write.help")}>${(attributes) => html`<textarea class="textarea" rows="4" maxlength=${MAX_CHARS} required value=${text} onInput=${change} ...${attributes}></textarea>`}<//>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" icon="send" type="submit" disabled=${isBusy || !text.trim()}>${t("talk.send")}<//></div>
  </form><//>`;
}
