/** The system prompt of the conversation, and a library of prompts to keep. */

import { Button, Field, Icon } from "../../design/components.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { NameForm } from "./name_form.js";
import { deletePrompt, savePrompt, systemPrompts } from "./sampling.js";

const MAX_CHARACTERS = 50_000;

export function SystemPanel({ settings, onChange }) {
  const [isNaming, setNaming] = useState(false);
  const text = settings.system ?? "";
  const used = systemPrompts.value.find((prompt) => prompt.text === text);
  return html`<${Field} label=${t("system.label")} help=${t("system.help")}>${(attributes) => html`<textarea class="textarea" rows="8" maxlength=${MAX_CHARACTERS} value=${text}
      placeholder=${t("system.placeholder")} onInput=${(event) => onChange({ system: event.target.value })} ...${attributes}></textarea>`}<//>
    <div class="row-wrap">
      ${!isNaming && html`<${Button} small icon="plus" disabled=${!text.trim() || Boolean(used)} onClick=${() => setNaming(true)}>${t("system.keep")}<//>`}
      ${text && html`<${Button} small kind="quiet" icon="x" onClick=${() => onChange({ system: "" })}>${t("system.clear")}<//>`}
    </div>
    ${isNaming && html`<${NameForm} label=${t("system.name")} onCancel=${() => setNaming(false)} onName=${(name) => { savePrompt(name, text); setNaming(false); }} />`}
    <div class="field"><h3 class="field-label">${t("system.library")}</h3>
      ${systemPrompts.value.length === 0 && html`<p class="help soft">${t("system.library.empty")}</p>`}
      <ul class="library">${systemPrompts.value.map((prompt) => html`<li key=${prompt.name} class=${prompt === used ? "current" : ""}>
        <button type="button" class="library-use" aria-pressed=${prompt === used} onClick=${() => onChange({ system: prompt.text })}><strong class="one-line">${prompt.name}</strong><span class="one-line soft">${prompt.text}</span></button>
        ${prompt === used && html`<${Icon} name="check" />`}
        <${Button} small kind="quiet" icon="trash-2" label=${t("system.delete", { name: prompt.name })} onClick=${() => deletePrompt(prompt.name)} />
      </li>`)}</ul>
    </div>`;
}
