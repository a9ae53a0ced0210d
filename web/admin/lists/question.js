/** What cannot be taken back, or others notice, is asked once: what happens, and, where it is kept, why. */

import { html, signal, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note, toast } from "../../design/components.js";

export const MAX_REASON_CHARS = 500;
const question = signal(null);

/** `{ title, text, button, danger, reason, done, work }`: `reason` is "needed", "wanted" or left out; `work(reason)` does it. */
export function ask(given) {
  question.value = given;
}

export function QuestionDialog() {
  const asked = question.value;
  return asked && html`<${Question} asked=${asked} key=${asked} />`;
}

function Question({ asked }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const close = () => { question.value = null; };
  const act = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await asked.work(reason.trim() || undefined);
      close();
      if (asked.done) toast(asked.done);
    } catch (fault) {
      setError(fault.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${asked.title} onClose=${close}><form class="stack" onSubmit=${act}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <p>${asked.text}</p>
    ${asked.reason && html`<${Field} label=${t(asked.reason === "needed" ? "admin.reason" : "admin.reason.optional")} help=${t("admin.reason.help")}>${(attributes) => html`<textarea class="textarea" rows="3" maxlength=${MAX_REASON_CHARS}
      required=${asked.reason === "needed"} value=${reason} onInput=${(event) => setReason(event.target.value)} ...${attributes}></textarea>`}<//>`}
    <div class="row-wrap"><div class="grow"></div><${Button} kind="quiet" onClick=${close}>${t("cancel")}<//><${Button} kind=${asked.danger ? "danger" : "primary"} type="submit" disabled=${isBusy}>${asked.button}<//></div>
  </form><//>`;
}
