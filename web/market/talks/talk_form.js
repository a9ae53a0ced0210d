/** The field of a talk: a text, a picture, and, for the shop, a draft of the answer. What was typed stays until it is sent. */

import { html, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Field, Note } from "../../design/components.js";
import { draftAnswer, onceKey, sendPicture, writeMessage } from "./talk_calls.js";

const MAX_CHARS = 2000;
const MIN_SENTENCE = 8;
const TYPES = "image/jpeg,image/png,image/webp,image/gif,image/bmp,image/tiff,image/heic";

export function TalkForm({ talk }) {
  const [text, setText] = useState("");
  const [draft, setDraft] = useState(""); // what was proposed
  const [hasNoFact, setNoFact] = useState(false);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(""); // what is on its way
  const file = useRef(null);
  const key = useRef(onceKey());
  const isDrafted = keepsOf(draft, text);
  const attempt = (what, work) => async () => {
    setBusy(what);
    setError("");
    setNoFact(false);
    try {
      await work();
    } catch (fault) {
      setError(fault.message);
    }
    setBusy("");
  };
  const send = attempt("text", async () => {
    await writeMessage(talk.id, text.trim(), isDrafted, key.current);
    key.current = onceKey();
    setText("");
    setDraft("");
  });
  const propose = attempt("draft", async () => {
    const { body } = await draftAnswer(talk.id);
    setNoFact(!body);
    if (!body) return;
    setDraft(body);
    change((typed) => (typed.trim() ? `${typed.trim()}\n\n${body}` : body).slice(0, MAX_CHARS));
  });
  const change = (next) => {
    key.current = onceKey();
    setText(next);
  };
  const submit = (event) => {
    event.preventDefault();
    if (text.trim() && !busy) send();
  };
  const onKey = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form.requestSubmit(); };
  const addPicture = (event) => {
    const [chosen] = event.target.files;
    event.target.value = "";
    if (chosen) attempt("picture", () => sendPicture(talk.id, chosen))();
  };
  return html`<form class="talk-form stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${hasNoFact && html`<${Note} kind="info" role="status">${t("talk.draft.none")}<//>`}
    ${isDrafted && html`<${Note} kind="warn" role="status">${t("talk.draft.read")}<//>`}
    <${Field} label=${t("talk.text")}>${(attributes) => html`<textarea class="textarea" rows="3" readonly=${busy === "text"} maxlength=${MAX_CHARS} value=${text} onInput=${(event) => change(event.target.value)} onKeyDown=${onKey} ...${attributes}></textarea>`}<//>
    <input ref=${file} type="file" hidden accept=${TYPES} onChange=${addPicture} />
    <div class="row-wrap"><${Button} icon=${busy === "picture" ? "loader-circle" : "image-plus"} spin=${busy === "picture"} disabled=${Boolean(busy)} onClick=${() => file.current.click()}>${t("talk.picture")}<//>
      ${talk.side === "shop" && html`<${Button} icon=${busy === "draft" ? "loader-circle" : "sparkles"} spin=${busy === "draft"} disabled=${Boolean(busy)} onClick=${propose}>${t("talk.draft")}<//>`}
      <${Button} kind="primary" class="talk-send" icon="send" type="submit" disabled=${Boolean(busy) || !text.trim()}>${t("talk.send")}<//></div>
  </form>`;
}

/** Whether a sentence of the draft is left, the greeting aside: then it was not rewritten wholly. */
function keepsOf(draft, text) {
  return draft.split(/(?<=[.!?])\s+|\n+/).some((sentence) => sentence.trim().length >= MIN_SENTENCE && text.includes(sentence.trim()));
}
