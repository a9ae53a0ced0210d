/** The top of the page: the sentence, and the five numbers that one looks at first. */

import { html, useEffect, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Icon } from "../design/components.js";
import { waitsOf } from "./headline.js";
import { amount, duration, since, whole } from "./format.js";
import { now } from "../design/shell.js";
import { answers, giveKey, headline, lastAt, link, look, paused, points, recent, refused } from "./live.js";

const ICONS = { good: "check", info: "loader-circle", warn: "triangle-alert", bad: "circle-alert" };

export function Headline() {
  const { kind, message, values } = headline.value;
  const sentence = t(`status.is.${message}`, { ...values, seconds: duration(values.seconds) });
  const told = `${kind} ${message}`;
  const [spoken, setSpoken] = useState("");
  // Numbers in the sentence change all the time; a screen reader hears of a change of state alone.
  useEffect(() => { setSpoken(sentence); document.title = `${t(`status.short.${kind}`)} · ${t("page.status")}`; }, [told]);
  const began = answers.value["v1/usage"]?.since;
  const about = [
    answers.value.version && t("status.version", { version: answers.value.version.version }),
    began && t("status.up", { time: since(Math.max(0, now.value / 1000 - began)) }),
    link.value === "lost" && lastAt.value ? t("status.last.seen", { time: since(Math.max(0, (now.value - lastAt.value) / 1000)) }) : t(paused.value ? "status.paused" : "status.every"),
  ].filter(Boolean);
  const isSpinning = kind === "info" || link.value === "lost";
  return html`<header class="headline ${kind}">
    <span class="state-mark" aria-hidden="true"><${Icon} name=${link.value === "lost" ? "wifi-off" : ICONS[kind]} spin=${isSpinning && kind === "info"} /></span>
    <div class="grow"><h1 data-kind=${kind} data-message=${message}>${sentence}</h1><p class="soft numbers">${about.join(" · ")}</p></div>
    <${Button} kind="quiet" icon=${paused.value ? "play" : "pause"} label=${t(paused.value ? "status.go.on" : "status.pause")} aria-pressed=${paused.value} onClick=${() => { paused.value = !paused.value; }} />
    <div class="visually-hidden" role="status">${spoken}</div>
  </header>`;
}

/** What needs a key that the page does not have. */
export function Unseen() {
  if (!refused.value.size || link.value === "lost") return null;
  return html`<div class="unseen"><${Icon} name="key" /><p class="grow">${t("status.unseen", { what: [...refused.value].map((path) => t(`status.unseen.${path}`)).join(", ") })}</p>
    <${Button} small icon="key" onClick=${giveKey}>${t("status.give.key")}<//></div>`;
}

export function Tiles() {
  const seen = look.value;
  const waits = seen ? waitsOf(seen) : [];
  const point = points.value.at(-1);
  const first = recent.value("tis_time_to_first_token_seconds", [0.5, 0.95]);
  const gap = recent.value("tis_inter_token_latency_seconds", [0.5, 0.95]);
  const waiting = waits.reduce((sum, [, count]) => sum + count, 0);
  const stages = seen ? seen.by("tis_requests", "stage").filter(([stage, count]) => count > 0 && stage !== "answering") : [];
  return html`<section class="tiles card" aria-label=${t("status.now")}>
    <${Tile} name="running" value=${whole(seen?.value("tis_num_requests_running"))} about=${stages.length ? stages.map(([stage, count]) => `${whole(count)} ${t(`status.stage.of.${stage}`)}`).join(", ") : t("status.no.stages")} />
    <${Tile} name="waiting" value=${seen ? whole(waiting) : whole(null)} kind=${waiting ? "warn" : ""} about=${waits.length ? waits.map(([reason, count]) => `${whole(count)} ${t(`status.wait.${reason}`)}`).join(", ") : t("status.nothing.waits")} />
    <${Tile} name="speed" value=${amount(point?.generated)} about=${t("status.prompt.rate", { rate: amount(point?.prompt) })} />
    <${Tile} name="first.token" label=${t("status.first.token.p50")} value=${duration(first.values[0])} about=${t(first.isOld ? "status.p95.ever" : "status.p95.minute", { value: duration(first.values[1]) })} />
    <${Tile} name="gap" label=${t("status.gap.p50")} value=${duration(gap.values[0])} about=${t(gap.isOld ? "status.p95.ever" : "status.p95.minute", { value: duration(gap.values[1]) })} />
  </section>`;
}

function Tile({ name, label = t(`status.${name}`), value, about, kind = "" }) {
  return html`<div class="tile ${kind}" data-tile=${name}><div class="tile-label">${label}</div><div class="tile-value numbers">${value}</div><div class="tile-about numbers">${about}</div></div>`;
}
