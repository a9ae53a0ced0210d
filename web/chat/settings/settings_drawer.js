/** Sampling, system prompt and tools of a conversation. */

import { Dialog } from "../../design/components.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";

export function SettingsDrawer({ onClose }) {
  return html`<${Dialog} title=${t("chat.settings")} edge="right" onClose=${onClose}><//>`;
}
