/** The shop's answer to one review: written, changed, taken back. */

import { html, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { Button, Field, Icon, Note, toast } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { answer, takeBack } from "./shop_reviews.js";

const MAX_CHARS = 2000;

export function Answer({ review, isWriting, setWriting }) {
  const [error, setError] = useState("");
  const remove = async () => {
    setError("");
    try {
      await takeBack(review.id);
      toast(t("reviews.answer.removed"));
    } catch (fault) {
      setError(messageOf(fault));
    }
  };
  if (isWriting) return html`<${AnswerForm} review=${review} onDone=${() => setWriting(false)} />`;
  if (!review.answer) return html`<div><${Button} icon="reply" onClick=${() => setWriting(true)}>${t("reviews.answer")}<//></div>`;
  return html`<div class="answer"><p class="row"><${Icon} name="store" /><strong class="grow">${t("reviews.answer.own")}</strong>
      <${Button} small kind="quiet" icon="pencil" label=${t("reviews.answer.change")} onClick=${() => setWriting(true)} /><${Button} small kind="quiet" icon="trash-2" label=${t("reviews.answer.remove")} onClick=${remove} /></p>
    <p class="review-body">${review.answer.body}</p><p class="faint"><small>${formatDay(new Date(review.answer.updated_at))}</small></p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}</div>`;
}

function AnswerForm({ review, onDone }) {
  const [body, setBody] = useState(review.answer?.body ?? "");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await answer(review.id, body.trim());
      toast(t("reviews.answer.given"));
      onDone();
    } catch (fault) {
      setError(messageOf(fault));
      setBusy(false);
    }
  };
  return html`<form class="stack answer" onSubmit=${submit}>${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Field} label=${t("reviews.answer.body")} help=${t("reviews.answer.help")}>${(attributes) => html`<textarea class="textarea" rows="3" required autofocus maxlength=${MAX_CHARS} value=${body} onInput=${(event) => setBody(event.target.value)} ...${attributes}></textarea>`}<//>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onDone}>${t("cancel")}<//><${Button} kind="primary" icon="send" type="submit" disabled=${isBusy || !body.trim()}>${t("reviews.answer.send")}<//></div></form>`;
}
