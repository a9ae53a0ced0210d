/** When the shop is open: a row for each day of the week, in the shop's own time. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Note, toast } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { HoursFields, hoursForm, hoursSent } from "./hours_fields.js";
import { change, profile } from "./own_profile.js";

export function HoursForm() {
  const [given, setGiven] = useState(() => hoursForm(profile.value));
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await change(hoursSent(given, profile.value.time_zone));
      toast(t("own.saved"));
    } catch (fault) {
      setError(messageOf(fault));
    }
    setBusy(false);
  };
  return html`<form class="card stack own-form" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${HoursFields} given=${given} onChange=${setGiven} />
    <div class="row"><div class="grow"></div><${Button} kind="primary" type="submit" disabled=${isBusy}>${t("save")}<//></div>
  </form>`;
}
