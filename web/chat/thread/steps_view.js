/** The steps of an answer as a time line: what was called, with what, and what came back. The user approves or refuses. */

import { Badge, Button, CopyButton, Icon } from "../../design/components.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { readable } from "../answers/steps.js";

const ICONS = { list: "list", mcp: "plug", function: "wrench", search: "search", compaction: "layers" };
const STATES = {
  running: { kind: "info", icon: "loader-circle", spin: true },
  done: { kind: "good", icon: "check" },
  failed: { kind: "bad", icon: "circle-alert" },
  waiting_for_approval: { kind: "warn", icon: "shield" },
  approved: { kind: "good", icon: "check" },
  refused: { kind: "", icon: "octagon-x" },
};
const MAX_SHOWN = 20_000;

/** `onDecide` gets the step, and whether the user approves it. Who only watches has none. Before its end an answer may ask for more. */
export function Steps({ answer, canDecide = true, onDecide }) {
  const steps = answer?.steps ?? [];
  if (!steps.length) return null;
  return html`<ol class="steps" aria-label=${t("steps.name")}>${steps.map((step) => html`<${StepView} key=${step.id} step=${step} canDecide=${canDecide} onDecide=${onDecide} />`)}</ol>`;
}

function StepView({ step, canDecide, onDecide }) {
  const state = STATES[step.status] ?? STATES.done;
  const isWaiting = step.status === "waiting_for_approval";
  return html`<li class="step ${step.status}">
    <span class="step-icon"><${Icon} name=${ICONS[step.kind] ?? "wrench"} /></span>
    <div class="step-body">
      <div class="row step-head"><span class="grow one-line">${titleOf(step)}</span><${Badge} kind=${state.kind} icon=${state.icon} spin=${state.spin}>${t(`steps.state.${step.status}`)}<//></div>
      ${isWaiting
        ? html`<p class="soft step-question">${t(onDecide ? "steps.question" : "steps.question.watched", { name: step.name, server: step.server })}</p>${step.arguments && html`<pre class="step-text scroll" tabindex="0" aria-label=${t("steps.arguments")}>${readable(step.arguments)}</pre>`}
          ${onDecide && html`<div class="row"><${Button} kind="primary" icon="check" disabled=${!canDecide} onClick=${() => onDecide(step, true)}>${t("steps.approve")}<//><${Button} icon="x" disabled=${!canDecide} onClick=${() => onDecide(step, false)}>${t("steps.refuse")}<//></div>`}`
        : html`<${Folded} label=${t("steps.arguments")} text=${step.arguments} /><${Folded} label=${t(step.kind === "list" ? "steps.tools" : "steps.output")} text=${step.output} />`}
      ${step.error && html`<p class="step-error">${step.error}</p>`}
    </div>
  </li>`;
}

function titleOf(step) {
  if (step.kind === "list") return t("steps.list", { server: step.server });
  if (step.kind === "search") return t("steps.search");
  if (step.kind === "compaction") return t("steps.compaction");
  return html`<code>${step.name || "…"}</code>${step.server && html` <span class="faint">${t("steps.at", { server: step.server })}</span>`}`;
}

function Folded({ label, text }) {
  if (!text || text === "{}") return null;
  const whole = readable(text);
  return html`<details class="step-fold"><summary><${Icon} name="chevron-right" />${label}</summary>
    <div class="step-fold-body"><pre class="step-text scroll" tabindex="0" aria-label=${label}>${whole.slice(0, MAX_SHOWN)}${whole.length > MAX_SHOWN ? "…" : ""}</pre><${CopyButton} text=${whole} /></div></details>`;
}
