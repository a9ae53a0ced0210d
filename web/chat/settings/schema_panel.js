/** JSON of a schema: a list of fields that becomes a schema, or the schema itself. */

import { Button, Field, Note, Switch, Tabs } from "../../design/components.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { isAble, modelOf } from "../models/models.js";
import { fieldFaults, fieldsOf, MAX_FIELDS, readSchema, schemaOf, TYPES } from "./schema.js";

const FIRST = [
  { name: "name", type: "text", required: true, description: "", options: "" },
  { name: "city", type: "text", required: true, description: "", options: "" },
];

export function SchemaPanel({ settings, onChange }) {
  const { schema } = settings;
  const [fields, setFields] = useState(() => (schema ? fieldsOf(schema) : FIRST));
  const [view, setView] = useState(schema && !fieldsOf(schema) ? "raw" : "fields");
  const [text, setText] = useState(() => JSON.stringify(schema ?? schemaOf(FIRST), null, 2));
  const model = modelOf(settings);
  const writeFields = (changed) => {
    setFields(changed);
    const made = schemaOf(changed);
    setText(JSON.stringify(made, null, 2));
    if (!Object.keys(fieldFaults(changed)).length && changed.length) onChange({ schema: made });
  };
  const writeText = (written) => {
    setText(written);
    const found = readSchema(written);
    if (!found.schema) return;
    setFields(fieldsOf(found.schema));
    onChange({ schema: found.schema });
  };
  const turn = (isOn) => {
    if (!isOn) return onChange({ schema: null });
    const found = readSchema(text);
    return onChange({ schema: found.schema ?? schemaOf(FIRST) });
  };
  return html`<div><${Switch} label=${t("schema.on")} checked=${Boolean(schema)} onChange=${turn} /><div class="help soft">${t("schema.help")}</div></div>
    ${schema && model && !isAble(model, "structured_outputs") && html`<${Note} kind="warn">${t("schema.not.by.model", { name: model.id })}<//>`}
    ${schema && html`<${Tabs} label=${t("schema.views")} selected=${view} onSelect=${setView} tabs=${[{ id: "fields", label: t("schema.fields") }, { id: "raw", label: "JSON Schema" }]} />
      <div role="tabpanel" id="panel-${view}" class="stack" aria-label=${view === "fields" ? t("schema.fields") : "JSON Schema"}>${view === "fields" ? html`<${FieldList} fields=${fields} onChange=${writeFields} />` : html`<${RawSchema} text=${text} onChange=${writeText} />`}</div>`}`;
}

function FieldList({ fields, onChange }) {
  if (!fields) return html`<${Note}>${t("schema.not.simple")}<//>`;
  const faults = fieldFaults(fields);
  const set = (index, change) => onChange(fields.map((field, number) => (number === index ? { ...field, ...change } : field)));
  return html`<ol class="schema-fields">${fields.map((field, index) => html`<li class="schema-field" key=${index}>
      <div class="schema-row">
        <${Field} label=${t("schema.name")} error=${faults[index] && t(`schema.fault.${faults[index]}`)}>${(attributes) => html`<input class="input mono" maxlength="64" value=${field.name} onInput=${(event) => set(index, { name: event.target.value })} ...${attributes} />`}<//>
        <${Field} label=${t("schema.type")}>${(attributes) => html`<select class="select" value=${field.type} onChange=${(event) => set(index, { type: event.target.value })} ...${attributes}>${TYPES.map((type) => html`<option value=${type}>${t(`schema.type.${type}`)}</option>`)}</select>`}<//>
        <${Button} small kind="quiet" icon="trash-2" label=${t("schema.remove", { name: field.name || index + 1 })} disabled=${fields.length === 1} onClick=${() => onChange(fields.filter((_, number) => number !== index))} />
      </div>
      ${field.type === "choice" && html`<${Field} label=${t("schema.choices")}>${(attributes) => html`<input class="input" value=${field.options} placeholder="Bandung, Medan, Solo" onInput=${(event) => set(index, { options: event.target.value })} ...${attributes} />`}<//>`}
      <${Field} label=${t("schema.description")}>${(attributes) => html`<input class="input" maxlength="300" value=${field.description} onInput=${(event) => set(index, { description: event.target.value })} ...${attributes} />`}<//>
      <${Switch} label=${t("schema.required")} checked=${field.required} onChange=${(required) => set(index, { required })} />
    </li>`)}</ol>
    <div><${Button} small icon="plus" disabled=${fields.length >= MAX_FIELDS} onClick=${() => onChange([...fields, { name: "", type: "text", required: true, description: "", options: "" }])}>${t("schema.add")}<//></div>`;
}

function RawSchema({ text, onChange }) {
  const { fault, detail } = readSchema(text);
  return html`<${Field} label="JSON Schema" help=${!fault && t("schema.raw.help")} error=${fault && t(`schema.raw.${fault}`, { detail })}>${(attributes) => html`<textarea class="textarea mono" rows="16" spellcheck="false" value=${text} onInput=${(event) => onChange(event.target.value)} ...${attributes}></textarea>`}<//>
    ${!fault && html`<${Note} kind="good">${t("schema.raw.good")}<//>`}`;
}
