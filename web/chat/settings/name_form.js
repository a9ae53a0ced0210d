/** Asks for a name under which something is kept. */

import { Button, Field } from "../../design/components.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";

export function NameForm({ label, taken = [], initial = "", onName, onCancel }) {
  const [name, setName] = useState(initial);
  const form = useRef(null);
  useEffect(() => form.current.querySelector("input").focus(), []);
  const isTaken = taken.some((other) => other.toLowerCase() === name.trim().toLowerCase());
  const give = (event) => {
    event.preventDefault();
    if (name.trim() && !isTaken) onName(name.trim());
  };
  return html`<form ref=${form} class="name-form" onSubmit=${give}>
    <${Field} label=${label} error=${isTaken && t("settings.name.taken")}>${(attributes) => html`<input class="input" maxlength="40" value=${name} onInput=${(event) => setName(event.target.value)} ...${attributes} />`}<//>
    <div class="row"><${Button} small kind="primary" type="submit" disabled=${!name.trim() || isTaken}>${t("save")}<//><${Button} small kind="quiet" onClick=${onCancel}>${t("cancel")}<//></div>
  </form>`;
}
