/** What a model thinks before it answers: folded, with its time. */

import { Icon } from "../../design/components.js";
import { now } from "../../design/shell.js";
import { html } from "../../app/view.js";
import { formatSeconds, t } from "../../app/words.js";
import { isRunning } from "../answers/run_answer.js";

export function Thoughts({ answer }) {
  const isThinking = isRunning(answer) && !answer.text;
  const time = timeOf(answer, isThinking);
  return html`<details class="thoughts">
    <summary><${Icon} name="brain" /><span>${isThinking ? t("chat.thinking") : time ? t("chat.thought", { time }) : t("chat.thought.untimed")}</span><${Icon} name="chevron-right" /></summary>
    <div class="thoughts-text">${answer.reasoning}</div>
  </details>`;
}

/** Empty where it is not known: nobody saw the model think. */
function timeOf({ base, firstTokenAt, reasoningEndedAt, endedAt }, isThinking) {
  const end = reasoningEndedAt ?? endedAt ?? (isThinking ? Math.max(now.value, Date.now()) : null);
  const milliseconds = base?.thoughtMilliseconds ?? (firstTokenAt && end ? end - firstTokenAt : null);
  return milliseconds === null ? "" : formatSeconds(Math.max(0, Math.round(milliseconds / 100) / 10));
}
