/** What a model thinks before it answers: folded, with its time. */

import { Icon } from "../../design/components.js";
import { now } from "../../design/shell.js";
import { html } from "../../app/view.js";
import { formatSeconds, t } from "../../app/words.js";
import { isRunning } from "../answers/run_answer.js";

export function Thoughts({ answer }) {
  const isThinking = isRunning(answer) && !answer.text;
  const end = answer.reasoningEndedAt ?? answer.endedAt ?? Math.max(now.value, Date.now());
  const start = answer.firstTokenAt ?? answer.startedAt;
  const time = start ? formatSeconds(Math.max(0, Math.round((end - start) / 100) / 10)) : "";
  return html`<details class="thoughts">
    <summary><${Icon} name="brain" /><span>${isThinking ? t("chat.thinking") : t("chat.thought", { time })}</span><${Icon} name="chevron-right" /></summary>
    <div class="thoughts-text">${answer.reasoning}</div>
  </details>`;
}
