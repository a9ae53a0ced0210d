/** MCP servers whose tools the model may call, and whether each call needs an approval. */

import { Button, Field, Icon, Note } from "../../design/components.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { isAble, modelOf } from "../models/models.js";

const MAX_SERVERS = 8;
const EMPTY = { label: "", url: "", approval: "always", allowedTools: [] };

export function McpServers({ settings, onChange }) {
  const servers = settings.mcpServers ?? [];
  const [draft, setDraft] = useState(servers.length ? null : EMPTY);
  const model = modelOf(settings);
  const write = (changed) => onChange({ mcpServers: changed });
  const add = (server) => {
    write([...servers, server]);
    setDraft(null);
  };
  return html`<p class="help soft">${t("mcp.help")}</p>
    ${model && !isAble(model, "tools") && html`<${Note} kind="warn">${t("mcp.not.by.model", { name: model.id })}<//>`}
    ${servers.length > 0 && html`<ul class="library">${servers.map((server, index) => html`<li key=${server.label} class="mcp-server">
      <${Icon} name="plug" /><div class="grow"><strong class="one-line">${server.label}</strong><div class="one-line soft mono">${server.url}</div>
        ${server.allowedTools?.length > 0 && html`<div class="soft small-text">${t("mcp.only", { tools: server.allowedTools.join(", ") })}</div>`}
        <label class="mcp-approval"><span class="visually-hidden">${t("mcp.approval.of", { name: server.label })}</span><select class="select" value=${server.approval} onChange=${(event) => write(servers.map((other, number) => (number === index ? { ...other, approval: event.target.value } : other)))}>
          <option value="always">${t("mcp.always")}</option><option value="never">${t("mcp.never")}</option></select></label></div>
      <${Button} small kind="quiet" icon="trash-2" label=${t("mcp.remove", { name: server.label })} onClick=${() => write(servers.filter((_, number) => number !== index))} />
    </li>`)}</ul>`}
    ${draft ? html`<${ServerForm} server=${draft} taken=${servers.map(({ label }) => label)} onAdd=${add} onCancel=${servers.length ? () => setDraft(null) : null} />`
      : html`<div><${Button} small icon="plus" disabled=${servers.length >= MAX_SERVERS} onClick=${() => setDraft(EMPTY)}>${t("mcp.another")}<//></div>`}`;
}

function ServerForm({ server, taken, onAdd, onCancel }) {
  const [label, setLabel] = useState(server.label);
  const [url, setUrl] = useState(server.url);
  const [tools, setTools] = useState("");
  const [approval, setApproval] = useState(server.approval);
  const [isTried, setTried] = useState(false);
  const faults = { label: labelFault(label.trim(), taken), url: urlFault(url.trim()) };
  const give = (event) => {
    event.preventDefault();
    setTried(true);
    if (faults.label || faults.url) return;
    onAdd({ label: label.trim(), url: url.trim(), approval, allowedTools: tools.split(/[\s,]+/).filter(Boolean).slice(0, 64) });
  };
  return html`<form class="stack mcp-form" onSubmit=${give} novalidate>
    <${Field} label=${t("mcp.label")} help=${t("mcp.label.help")} error=${isTried && faults.label && t(`mcp.fault.${faults.label}`)}>${(a) => html`<input class="input" maxlength="64" value=${label} placeholder="weather" onInput=${(event) => setLabel(event.target.value)} ...${a} />`}<//>
    <${Field} label=${t("mcp.url")} help=${t("mcp.url.help")} error=${isTried && faults.url && t(`mcp.fault.${faults.url}`)}>${(a) => html`<input class="input mono" type="url" value=${url} placeholder="https://tools.example.com/mcp" onInput=${(event) => setUrl(event.target.value)} ...${a} />`}<//>
    <${Field} label=${t("mcp.tools")} help=${t("mcp.tools.help")}>${(a) => html`<input class="input mono" value=${tools} placeholder="get_weather" onInput=${(event) => setTools(event.target.value)} ...${a} />`}<//>
    <${Field} label=${t("mcp.approval")} help=${t(approval === "always" ? "mcp.always.help" : "mcp.never.help")}>${(a) => html`<select class="select" value=${approval} onChange=${(event) => setApproval(event.target.value)} ...${a}>
      <option value="always">${t("mcp.always")}</option><option value="never">${t("mcp.never")}</option></select>`}<//>
    <div class="row"><${Button} kind="primary" icon="plus" type="submit">${t("mcp.add")}<//>${onCancel && html`<${Button} kind="quiet" onClick=${onCancel}>${t("cancel")}<//>`}</div>
  </form>`;
}

function labelFault(label, taken) {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(label)) return "label";
  return taken.includes(label) ? "taken" : null;
}

function urlFault(url) {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol) ? null : "url";
  } catch {
    return "url";
  }
}
