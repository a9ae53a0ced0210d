/** Which model answers: a button with its name, and a dialog with all models that chat, what they can do and whether they are loaded. */

import { Badge, Button, Dialog, Icon, Meter, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatBytes, formatNumber, t } from "../../app/words.js";
import { chatModels, heldBytes, isAble, load as loadHere, loads, modelOf, models, modelsError, refreshModels, takes, unload } from "./models.js";

const STATES = {
  unloaded: { kind: "", icon: "moon" },
  loading: { kind: "info", icon: "loader-circle", spin: true },
  loaded: { kind: "good", icon: "check" },
  unloading: { kind: "info", icon: "loader-circle", spin: true },
  failed: { kind: "bad", icon: "circle-alert" },
  dead: { kind: "bad", icon: "circle-alert" },
};
const ABILITIES = [
  { icon: "eye", label: "models.sees", of: (model) => takes(model, "image") },
  { icon: "video", label: "models.video", of: (model) => takes(model, "video") },
  { icon: "audio-lines", label: "models.hears", of: (model) => takes(model, "audio") },
  { icon: "brain", label: "models.reasons", of: (model) => isAble(model, "reasoning") },
  { icon: "wrench", label: "models.tools", of: (model) => isAble(model, "tools") },
  { icon: "braces", label: "models.json", of: (model) => isAble(model, "structured_outputs") },
];

/** `onChange` gets `{ model }`. */
export function ModelPicker({ conversation, onChange }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => { refreshModels(); }, []);
  const model = modelOf(conversation?.settings);
  const close = () => setOpen(false);
  const name = model?.id ?? (models.value ? t("models.none") : t("models.reading"));
  return html`<button type="button" class="button quiet model-button" aria-haspopup="dialog" aria-label=${t("models.choose", { name })} onClick=${() => { setOpen(true); refreshModels(); }}>
      <span class="model-dot ${loads.value[model?.id] ? "loading" : model?.status ?? ""}"></span><span class="one-line">${shortName(name)}</span><${Icon} name="chevron-down" />
    </button>
    ${isOpen && html`<${ModelDialog} current=${model} onChoose=${(id) => { onChange({ model: id }); close(); }} onClose=${close} />`}`;
}

/** "Qwen/Qwen3-4B" is "Qwen3-4B" where there is little room. */
function shortName(id) {
  return id.split("/").at(-1);
}

function ModelDialog({ current, onChoose, onClose }) {
  const [isReading, setReading] = useState(false);
  const refresh = async () => {
    setReading(true);
    await refreshModels();
    setReading(false);
  };
  const footer = html`<${Button} icon="refresh-cw" kind="quiet" spin=${isReading} onClick=${refresh}>${t("models.refresh")}<//>`;
  return html`<${Dialog} title=${t("models.title")} onClose=${onClose} footer=${footer}>
    <div class="stack">
      ${modelsError.value && html`<${Note} kind="bad">${modelsError.value}<//>`}
      ${models.value && !chatModels.value.length && html`<${Note} kind="warn">${t("models.none.why")}<//>`}
      <ul class="model-list">${chatModels.value.map((model) => html`<${ModelRow} key=${model.id} model=${model} isCurrent=${model.id === current?.id} onChoose=${onChoose} />`)}</ul>
    </div>
  <//>`;
}

function ModelRow({ model, isCurrent, onChoose }) {
  const [error, setError] = useState(null);
  const [said, setSaid] = useState("");
  const load = loads.value[model.id];
  const state = load ? "loading" : model.status;
  const look = STATES[state] ?? STATES.unloaded;
  const run = async (action, done) => {
    setError(null);
    setSaid("");
    try {
      if (await action(model.id)) setSaid(t(done, { name: shortName(model.id) }));
    } catch (fault) {
      setError(fault.message);
    }
  };
  const bytes = heldBytes.value[model.id];
  const facts = [
    model.max_model_len && t("models.context", { tokens: formatNumber(model.max_model_len) }),
    bytes > 0 && state === "loaded" && t("models.memory", { size: formatBytes(bytes) }),
    model.parent && t("models.adapter", { name: model.parent }),
  ].filter(Boolean);
  return html`<li class="model-row ${isCurrent ? "current" : ""}">
    <button type="button" class="model-choice" aria-pressed=${isCurrent} onClick=${() => onChoose(model.id)}>
      <span class="row"><strong class="grow one-line" title=${model.id}>${model.id}</strong>${isCurrent && html`<${Icon} name="check" />`}</span>
      <span class="model-facts soft">${facts.join(" · ")}</span>
      <span class="abilities">${ABILITIES.filter((ability) => ability.of(model)).map((ability) => html`<span class="ability"><${Icon} name=${ability.icon} />${t(ability.label)}</span>`)}</span>
    </button>
    <div class="row model-state">
      <${Badge} kind=${look.kind} icon=${look.icon} spin=${look.spin}>${t(`models.state.${state}`)}<//>
      <div class="grow" aria-live="polite">${said && html`<span class="visually-hidden">${said}</span>`}${load && html`<span class="soft small-text">${load.part === null ? t(`models.stage.${load.stage}`) : t("models.progress", { stage: t(`models.stage.${load.stage}`), percent: Math.round(load.part * 100) })}</span>`}</div>
      ${["unloaded", "failed", "dead"].includes(state) && html`<${Button} small icon="play" onClick=${() => run(loadHere, "models.is.loaded")}>${t("models.load")}<//>`}
      ${state === "loaded" && html`<${Button} small kind="quiet" icon="power" onClick=${() => run(unload, "models.is.unloaded")}>${t("models.unload")}<//>`}
    </div>
    ${load && html`<${Meter} value=${load.part ?? 0} label=${t("models.state.loading")} />`}
    ${error && html`<${Note} kind="bad">${error}<//>`}
  </li>`;
}
