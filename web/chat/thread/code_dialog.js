/** "As code": the request of an answer as curl, Python and JavaScript, to copy. */

import { CopyButton, Dialog, Note, Tabs } from "../../design/components.js";
import { addressOf } from "../../app/addresses.js";
import { readChoice, writeChoice } from "../../app/choices.js";
import { hasKey } from "../../app/keys.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { modelOf } from "../models/models.js";
import { hasMedia, SAMPLES, sampleOf } from "./code_samples.js";

const LABELS = { curl: "curl", python: "Python", javascript: "JavaScript" };

export function CodeDialog({ request, onClose }) {
  const [name, setName] = useState(() => (SAMPLES.includes(readChoice("sample")) ? readChoice("sample") : "curl"));
  const choose = (chosen) => {
    setName(chosen);
    writeChoice("sample", chosen);
  };
  const needsKey = hasKey("api");
  const code = sampleOf(name, request, addressOf("v1"), { needsKey, model: modelOf({ model: request.model })?.id });
  return html`<${Dialog} title=${t("code.title")} wide onClose=${onClose}>
    <div class="stack">
      <div class="row"><div class="grow"><${Tabs} label=${t("code.languages")} selected=${name} onSelect=${choose} tabs=${SAMPLES.map((id) => ({ id, label: LABELS[id] }))} /></div><${CopyButton} text=${code} label=${t("code.copy")} /></div>
      <div role="tabpanel" id="panel-${name}" aria-label=${LABELS[name]}><pre class="code-sample scroll" tabindex="0" aria-label=${LABELS[name]}><code>${code}</code></pre></div>
      <p class="help soft">${t(`code.${name}.help`)}</p>
      ${needsKey && html`<${Note}>${t("code.key")}<//>`}
      ${hasMedia(request) && html`<${Note} kind="warn">${t("code.media")}<//>`}
    </div>
  <//>`;
}
