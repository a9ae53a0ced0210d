/** A question: a soft bubble at the right, which one can edit into another branch. */

import { Button, CopyButton } from "../../design/components.js";
import { html, signal, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { answerQuestion, edit } from "../answers/answering.js";
import { Attachments } from "./attachments_view.js";
import { Branches } from "./branches.js";
import { deleteMessage } from "../conversations/conversations.js";

/** Set to ask the last question to open its editor. */
export const editWished = signal(0);

export function UserMessage({ message, conversation, isLast, isLastQuestion }) {
  const [isEditing, setEditing] = useState(false);
  const wished = editWished.value;
  useEffect(() => { if (wished && isLastQuestion) { setEditing(true); editWished.value = 0; } }, [wished]);
  const done = () => setEditing(false);
  return html`<article class="message user">
    <h2 class="visually-hidden">${t("chat.you")}</h2>
    <${Attachments} attachments=${message.attachments} />
    ${isEditing ? html`<${Editor} message=${message} conversation=${conversation} onDone=${done} />` : message.text && html`<div class="bubble">${message.text}</div>`}
    ${!isEditing && html`<div class="message-actions">
      <${Branches} message=${message} />
      <${CopyButton} text=${message.text} />
      <${Button} small kind="quiet" icon="pencil" label=${t("chat.edit")} onClick=${() => setEditing(true)} />
      <${Button} small kind="quiet" icon="trash-2" label=${t("chat.delete_question")} onClick=${() => deleteMessage(message)} />
    </div>`}
    ${isLast && !isEditing && html`<${Button} small icon="refresh-cw" onClick=${() => answerQuestion(conversation, message)}>${t("chat.regenerate")}<//>`}
  </article>`;
}

function Editor({ message, conversation, onDone }) {
  const ref = useRef(null);
  useEffect(() => {
    ref.current.focus();
    ref.current.setSelectionRange(message.text.length, message.text.length);
    grow(ref.current);
  }, []);
  const submit = (event) => {
    event?.preventDefault();
    const text = ref.current.value.trim();
    if (!text) return;
    onDone();
    edit(conversation, message, text);
  };
  const onKey = (event) => {
    if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); onDone(); }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return html`<form class="editor stack" onSubmit=${submit}>
    <textarea ref=${ref} class="textarea" rows="2" aria-label=${t("chat.edit")} onInput=${(event) => grow(event.target)} onKeyDown=${onKey}>${message.text}</textarea>
    <div class="row"><span class="faint grow">${t("chat.edit.why")}</span><${Button} small onClick=${onDone}>${t("cancel")}<//><${Button} small kind="primary" type="submit">${t("chat.send")}<//></div>
  </form>`;
}

function grow(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, 400)}px`;
}
