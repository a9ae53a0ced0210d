/** How the model answers: presets, sliders with explanations, the effort of reasoning, probabilities. */

import { Button, Field, Icon, Switch } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatNumber, t } from "../../app/words.js";
import { isAble, modelOf } from "../models/models.js";
import { NameForm } from "./name_form.js";
import { defaultsOf, deletePreset, EFFORTS, faultOf, isPreset, ownPresets, PRESETS, savePreset, SETTINGS } from "./sampling.js";

export function SamplingPanel({ settings, onChange }) {
  const [defaults, setDefaults] = useState({});
  const model = modelOf(settings);
  useEffect(() => {
    let isOver = false;
    if (model) defaultsOf(model.id).then((found) => isOver || setDefaults(found));
    return () => { isOver = true; };
  }, [model?.id]);
  const row = (setting) => html`<${setting.isText ? TypedSetting : SliderSetting} key=${setting.name} setting=${setting} value=${settings[setting.name] ?? null}
    otherwise=${defaults[setting.name] ?? null} onChange=${(value) => onChange({ [setting.name]: value })} />`;
  const more = SETTINGS.filter((setting) => setting.isMore);
  return html`<${Presets} settings=${settings} onChange=${onChange} />
    ${SETTINGS.filter((setting) => !setting.isMore).map(row)}
    ${isAble(model, "reasoning") && html`<${Effort} value=${settings.reasoning_effort ?? null} onChange=${(value) => onChange({ reasoning_effort: value })} />`}
    <div><${Switch} label=${t("settings.logprobs")} checked=${Boolean(settings.logprobs)} onChange=${(value) => onChange({ logprobs: value })} />
      <div class="help soft">${t("settings.logprobs.help")}</div></div>
    <details class="more" open=${more.some(({ name }) => settings[name] !== null && settings[name] !== undefined)}><summary><${Icon} name="chevron-right" />${t("settings.more")}</summary><div class="stack">${more.map(row)}</div></details>`;
}

function Presets({ settings, onChange }) {
  const [isNaming, setNaming] = useState(false);
  const choice = (key, label, values, own) => html`<span class="preset" key=${key}><button type="button" class="choice" aria-pressed=${isPreset(settings, values)} onClick=${() => onChange(values)}>${label}</button>
    ${own && html`<${Button} small kind="quiet" icon="x" label=${t("settings.preset.delete", { name: label })} onClick=${() => deletePreset(label)} />`}</span>`;
  const all = [...Object.keys(PRESETS).map((name) => t(`preset.${name}`)), ...ownPresets.value.map(({ name }) => name)];
  const chosen = Object.entries(PRESETS).find(([, values]) => isPreset(settings, values))?.[0];
  return html`<div class="field"><div class="field-label" id="presets-label">${t("settings.presets")}</div>
    <div class="choices" role="group" aria-labelledby="presets-label">
      ${Object.entries(PRESETS).map(([name, values]) => choice(name, t(`preset.${name}`), values, false))}
      ${ownPresets.value.map(({ name, values }) => choice(`own-${name}`, name, values, true))}
      ${!isNaming && html`<${Button} small kind="quiet" icon="plus" onClick=${() => setNaming(true)}>${t("settings.preset.save")}<//>`}
    </div>
    ${isNaming && html`<${NameForm} label=${t("settings.preset.name")} taken=${all.slice(0, 4)} onCancel=${() => setNaming(false)} onName=${(name) => { savePreset(name, settings); setNaming(false); }} />`}
    ${chosen && html`<div class="help">${t(`preset.${chosen}.help`)}</div>`}
  </div>`;
}

function valueWords(setting, value) {
  return formatNumber(value, setting.digits ?? 0);
}

function SliderSetting({ setting, value, otherwise, onChange }) {
  const { name, min, max, step } = setting;
  const shown = value ?? otherwise ?? (name === "repetition_penalty" || name === "top_p" ? 1 : name === "temperature" ? 1 : 0);
  const words = value === null ? (otherwise === null ? t("settings.default") : t("settings.default.is", { value: valueWords(setting, otherwise) })) : valueWords(setting, value);
  return html`<div class="setting">
    <${Field} label=${t(`settings.${name}`)} help=${t(`settings.${name}.help`)}>${(attributes) => html`<div class="row">
      <input class="slider grow" type="range" min=${min} max=${max} step=${step} value=${shown} aria-valuetext=${words} onInput=${(event) => onChange(Number(event.target.value))} ...${attributes} />
      <output class="numbers setting-value ${value === null ? "faint" : ""}" for=${attributes.id}>${words}</output>
      <${Button} small kind="quiet" icon="rotate-ccw" label=${t("settings.reset", { name: t(`settings.${name}`) })} disabled=${value === null} onClick=${() => onChange(null)} />
    </div>`}<//>
  </div>`;
}

function TypedSetting({ setting, value, otherwise, onChange }) {
  const { name } = setting;
  const [text, setText] = useState(value === null ? "" : String(value));
  useEffect(() => { if (value === null ? text.trim() !== "" && !faultOf(setting, text) : Number(text) !== value) setText(value === null ? "" : String(value)); }, [value]);
  const fault = faultOf(setting, text);
  const write = (written) => {
    setText(written);
    if (!faultOf(setting, written)) onChange(written.trim() === "" ? null : Number(written));
  };
  const error = fault && t(`settings.fault.${fault}`, { min: formatNumber(setting.min), max: formatNumber(setting.max) });
  return html`<div class="setting"><${Field} label=${t(`settings.${name}`)} help=${t(`settings.${name}.help`)} error=${error}>${(attributes) => html`<input class="input numbers" inputmode="numeric" value=${text}
    placeholder=${otherwise === null ? t(`settings.${name}.none`) : t("settings.default.is", { value: formatNumber(otherwise) })} onInput=${(event) => write(event.target.value)} ...${attributes} />`}<//></div>`;
}

function Effort({ value, onChange }) {
  return html`<${Field} label=${t("settings.effort")} help=${t("settings.effort.help")}>${(attributes) => html`<select class="select" value=${value ?? ""} onChange=${(event) => onChange(event.target.value || null)} ...${attributes}>
    <option value="">${t("settings.default")}</option>${EFFORTS.map((name) => html`<option value=${name}>${t(`effort.${name}`)}</option>`)}
  </select>`}<//>`;
}
