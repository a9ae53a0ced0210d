/** One request on a time line: its phases in proportion, a mark at the first token, and the seconds of each as a list. */

import { html } from "../app/view.js";
import { t } from "../app/words.js";
import { duration, percent } from "./format.js";
import { firstTokenOf, phasesOf, phasesOfRound, spanOf, sumsOf } from "./phases.js";

const TICKS = 4;

export function TimeLine({ request }) {
  const whole = Math.max(spanOf(request), 0.0001);
  const phases = phasesOf(request);
  const sums = sumsOf(phases);
  const first = firstTokenOf(request);
  const place = (seconds) => `${(seconds / whole) * 100}%`;
  const lane = (parts) => html`<div class="lane">${parts.map((phase) => html`<span class="phase ${phase.kind}" title=${`${t(`status.phase.${phase.kind}`)}: ${duration(phase.to - phase.from)}`}
    style=${{ left: place(phase.from), width: place(phase.to - phase.from) }}></span>`)}</div>`;
  return html`<div class="time-line">
    <div class="lanes" aria-hidden="true">
      ${first !== null && html`<div class="mark ${first / whole > 0.7 ? "before" : ""}" style=${{ left: place(first) }}><span>${t("status.first.token")} ${duration(first)}</span></div>`}
      ${lane(phases)}
      ${request.rounds.length > 1 && request.rounds.map((round) => html`<div class="lane thin">${phasesOfRound(round, whole).map((phase) => html`<span class="phase ${phase.kind}"
        style=${{ left: place(phase.from), width: place(phase.to - phase.from) }}></span>`)}</div>`)}
      <div class="ticks">${Array.from({ length: TICKS + 1 }, (_, at) => html`<span class="numbers">${duration((whole * at) / TICKS)}</span>`)}</div>
    </div>
    <ul class="phase-list">${sums.map(([kind, seconds]) => html`<li><span class="phase-dot ${kind}" aria-hidden="true"></span><span class="phase-name">${t(`status.phase.${kind}`)}</span>
      <span class="numbers phase-seconds">${duration(seconds)}</span><span class="numbers soft phase-share">${percent(seconds / whole)}</span><span class="soft phase-about">${t(`status.phase.${kind}.about`)}</span></li>`)}</ul>
  </div>`;
}
