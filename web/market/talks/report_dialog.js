/** Reporting a message of the other side, with the reason that an admin reads. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note, toast } from "../../design/components.js";
import { reportMessage } from "./talk_calls.js";

const MAX_REASON_CHARS = 200;

export function ReportDialog({ talkId, number, onClose }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await reportMessage(talkId, number, reason.trim());
      toast(t("talk.reported.done"), "flag");
      onClose();
      setTimeout(() => document.getElementById("content").focus({ preventScroll: true })); // the button that opened this is gone
    } catch (fault) {
      setError(fault.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${t("talk.report.title")} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <p class="soft">${t("talk.report.text")}</p>
    <${Field} label=${t("talk.report.reason")}>${(attributes) => html`<textarea class="textarea" rows="2" maxlength=${MAX_REASON_CHARS} required value=${reason} onInput=${(event) => setReason(event.target.value)} ...${attributes}></textarea>`}<//>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="danger" icon="flag" type="submit" disabled=${isBusy || !reason.trim()}>${t("talk.report.do")}<//></div>
  </form><//>`;
}
