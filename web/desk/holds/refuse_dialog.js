/** Refusing a hold, with what the buyer reads. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note, toast } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { refuse } from "./holds.js";

const REASONS = ["gone", "damaged", "price", "closed"];
const MAX_CHARS = 200;

export function RefuseDialog({ hold, onClose }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await refuse(hold, reason.trim());
      toast(t("holds.refused.done"));
      onClose();
      setTimeout(() => document.getElementById("content").focus({ preventScroll: true })); // the button that opened this is gone
    } catch (fault) {
      setError(messageOf(fault));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${t("holds.refuse.title", { name: hold.product_name })} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <p class="soft">${t("holds.refuse.about")}</p>
    <div class="row-wrap" role="group" aria-label=${t("holds.reason.choose")}>${REASONS.map((name) => html`<${Button} small key=${name} aria-pressed=${reason === t(`holds.reason.${name}`)} onClick=${() => setReason(t(`holds.reason.${name}`))}>${t(`holds.reason.${name}`)}<//>`)}</div>
    <${Field} label=${t("holds.reason")} help=${t("holds.reason.help")}>${(attributes) => html`<textarea class="textarea" rows="2" maxlength=${MAX_CHARS} value=${reason} onInput=${(event) => setReason(event.target.value)} ...${attributes}></textarea>`}<//>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="danger" icon="x" type="submit" disabled=${isBusy}>${t("holds.refuse.do")}<//></div>
  </form><//>`;
}
