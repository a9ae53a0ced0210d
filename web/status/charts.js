/** Which charts there are. */

import { readChoice, writeChoice } from "../app/choices.js";
import { html, signal } from "../app/view.js";
import { t } from "../app/words.js";
import { Chart } from "./chart.js";
import { amount, duration, memory, percent, whole } from "./format.js";
import { points } from "./live.js";

const RANGES = [2, 5, 15];
const chosen = Number(readChoice("status.minutes", "5"));
const minutes = signal(RANGES.includes(chosen) ? chosen : 5);

const CHARTS = [
  { name: "tokens", format: amount, top: 1, series: [{ key: "generated", label: "status.generated", colour: 1, fill: true }] },
  { name: "requests", format: whole, top: 2, series: [{ key: "running", label: "status.running", colour: 3, step: true, fill: true }, { key: "waiting", label: "status.waiting", colour: 4, step: true }] },
  { name: "first", format: duration, top: 0.02, spread: "firstSpread", series: [{ key: "first50", label: "status.p50", colour: 2 }, { key: "first95", label: "status.p95", colour: 5, dash: true }] },
  { name: "gap", format: duration, top: 0.005, spread: "gapSpread", series: [{ key: "gap50", label: "status.p50", colour: 2 }, { key: "gap95", label: "status.p95", colour: 5, dash: true }] },
  { name: "prompts", format: amount, top: 1, series: [{ key: "prompt", label: "status.prompt", colour: 5, fill: true }] },
  { name: "cache", format: percent, most: 1, series: [{ key: "cache", label: "status.cache.use", colour: 1, fill: true }, { key: "hits", label: "status.cache.hits", colour: 3 }] },
  { name: "lookup", format: percent, most: 1, series: [{ key: "guessed", label: "status.guessed", colour: 3, fill: true }, { key: "accepted", label: "status.accepted", colour: 5 }] },
  { name: "pauses", format: duration, top: 0.005, spread: "pauseSpread", series: [{ key: "pause50", label: "status.p50", colour: 2 }, { key: "pause99", label: "status.p99", colour: 4, dash: true }] },
  { name: "memory", format: memory, top: 2 ** 20, steps: Array.from({ length: 30 }, (_, power) => 2 ** (power + 18)), series: [{ key: "memory", label: "status.process", colour: 5, fill: true }, { key: "models", label: "status.models", colour: 1 }] },
];

export function Charts() {
  const choose = (value) => {
    minutes.value = value;
    writeChoice("status.minutes", String(value));
  };
  return html`<section class="part" aria-labelledby="charts-title">
    <header class="part-head"><h2 id="charts-title">${t("status.over.time")}</h2><span class="soft small grow">${t("status.over.time.about")}</span>
      <div class="segments" role="group" aria-label=${t("status.range")}>${RANGES.map((one) => html`<button type="button" class="segment" aria-pressed=${minutes.value === one}
        onClick=${() => choose(one)}>${t("status.minutes", { minutes: one })}</button>`)}</div></header>
    <div class="charts">${CHARTS.map((chart) => html`<${Chart} key=${chart.name} ...${chart} title=${t(`status.chart.${chart.name}`)} about=${t(`status.chart.${chart.name}.about`)}
      points=${points.value} minutes=${minutes.value} />`)}</div>
  </section>`;
}
