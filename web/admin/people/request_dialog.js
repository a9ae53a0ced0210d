/** Records what somebody who cannot sign in wants with the own data. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { hashOf } from "../lists/address.js";
import { MAX_REASON_CHARS } from "../lists/question.js";

const KINDS = ["export", "erase"];

export function RequestDialog({ user, onClose }) {
  const [given, setGiven] = useState({ kind: "export", reason: "", received: "" });
  const [error, setError] = useState("");
  const record = async (event) => {
    event.preventDefault();
    setError("");
    const received_at = given.received ? new Date(given.received).toISOString() : undefined;
    try {
      await marketJson("api/admin/data-requests", { method: "POST", json: { user_id: user.id, kind: given.kind, reason: given.reason, received_at } });
      onClose();
      toast(t("admin.request.recorded"));
      location.hash = hashOf("requests");
    } catch (fault) {
      setError(fault.message);
    }
  };
  const change = (name) => (event) => setGiven({ ...given, [name]: event.target.value });
  return html`<${Dialog} title=${t("admin.request.of", { name: user.name })} onClose=${onClose}><form class="stack" onSubmit=${record}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <p class="soft">${t("admin.request.about")}</p>
    <fieldset class="admin-choice"><legend>${t("admin.request.kind")}</legend>${KINDS.map((kind) => html`<label key=${kind}><input type="radio" name="kind" value=${kind} checked=${given.kind === kind} onChange=${change("kind")} /> ${t(`admin.request.${kind}`)}</label>`)}</fieldset>
    <${Field} label=${t("admin.request.reason")} help=${t("admin.request.reason.help")}>${(attributes) => html`<textarea class="textarea" rows="3" required maxlength=${MAX_REASON_CHARS} value=${given.reason} onInput=${change("reason")} ...${attributes}></textarea>`}<//>
    <${Field} label=${t("admin.request.received")} help=${t("admin.request.received.help")}>${(attributes) => html`<input class="input" type="datetime-local" value=${given.received} onInput=${change("received")} ...${attributes} />`}<//>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit">${t("admin.request.record")}<//></div>
  </form><//>`;
}
