/** The drawer with the settings of a conversation: how the model answers, the system prompt, JSON of a schema, tools. */

import { Dialog, Tabs } from "../../design/components.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { McpServers } from "./mcp_servers.js";
import { SamplingPanel } from "./sampling_panel.js";
import { SchemaPanel } from "./schema_panel.js";
import { SystemPanel } from "./system_panel.js";

const PANELS = { answer: SamplingPanel, system: SystemPanel, schema: SchemaPanel, tools: McpServers };

/** `onChange` gets the settings that change, as `{ temperature: 0.2 }`. */
export function SettingsDrawer({ conversation, onChange, onClose, first = "answer" }) {
  const [panel, setPanel] = useState(first);
  const settings = conversation?.settings ?? {};
  const marks = { system: settings.system?.trim(), schema: settings.schema, tools: settings.mcpServers?.length };
  const tabs = Object.keys(PANELS).map((id) => ({ id, label: html`${t(`settings.${id}`)}${marks[id] ? html`<span class="tab-mark" role="img" aria-label=${t("settings.in.use")}></span>` : ""}` }));
  return html`<${Dialog} title=${t("settings.title")} edge="right" onClose=${onClose}>
    <${Tabs} label=${t("settings.title")} tabs=${tabs} selected=${panel} onSelect=${setPanel} />
    <div class="settings-panel stack" role="tabpanel" id="panel-${panel}" aria-label=${t(`settings.${panel}`)}><${PANELS[panel]} settings=${settings} onChange=${onChange} /></div>
  <//>`;
}
