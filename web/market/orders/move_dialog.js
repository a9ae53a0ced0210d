/** Asks once before an order moves: what happens then, and why, where the other side reads it. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note, toast } from "../../design/components.js";

const MAX_REASON_CHARS = 200;

/** `asked`: `{ title, text, button, danger, reason, fields, work }`. `reason` is "needed", "wanted" or left out; `fields` draws more. */
export function MoveDialog({ asked, onClose }) {
  const [reason, setReason] = useState("");
  const [given, setGiven] = useState(asked.given ?? {});
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await asked.work(reason.trim() || undefined, given);
      toast(t("order.done"));
      onClose();
      setTimeout(() => document.getElementById("content").focus({ preventScroll: true })); // the button that opened this may be gone
    } catch (fault) {
      setError(fault.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${asked.title} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${asked.text && html`<p>${asked.text}</p>`}
    ${asked.fields?.(given, setGiven)}
    ${asked.reason && html`<${Field} label=${t(asked.reason === "needed" ? "order.reason" : "order.reason.optional")} help=${t("order.reason.help")}>${(attributes) => html`<textarea class="textarea" rows="2" maxlength=${MAX_REASON_CHARS} required=${asked.reason === "needed"} value=${reason} onInput=${(event) => setReason(event.target.value)} ...${attributes}></textarea>`}<//>`}
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind=${asked.danger ? "danger" : "primary"} type="submit" disabled=${isBusy}>${asked.button}<//></div>
  </form><//>`;
}
