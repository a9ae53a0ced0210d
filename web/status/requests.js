/** The newest requests, each with a bar of its phases; one of them on a time line. */

import { html, signal } from "../app/view.js";
import { language, t } from "../app/words.js";
import { Badge, CopyButton, Dialog, Icon } from "../design/components.js";
import { amount, duration, NONE, whole } from "./format.js";
import { answers } from "./live.js";
import { Facts } from "./part.js";
import { firstTokenOf, KINDS, phasesOf, spanOf, speedOf } from "./phases.js";
import { TimeLine } from "./time_line.js";

const FIRST = 8;
const opened = signal(null);
const all = signal(false);

export function Requests() {
  const answer = answers.value["v1/requests/recent"];
  const requests = answer?.data ?? [];
  const shown = all.value ? requests : requests.slice(0, FIRST);
  const longest = Math.max(...shown.map(spanOf), 0.001);
  const withKeys = requests.some((one) => "key" in one);
  return html`<section class="part" aria-labelledby="requests-title"><header class="part-head"><h2 id="requests-title">${t("status.requests")}</h2>
      <span class="soft small grow">${answer && t(answer.of === "all" ? "status.requests.about" : "status.requests.own")}</span><${Legend} requests=${shown} /></header>
    ${!answer ? html`<p class="soft empty">${t("status.requests.unseen")}</p>` : !requests.length ? html`<p class="soft empty">${t("status.requests.none")}</p>` : html`<div class="card requests">
      <div class="request-row request-head" aria-hidden="true"><span>${t("status.time")}</span><span>${t("status.request")}</span><span>${t("status.phases")}</span>
        <span class="number">${t("status.first.token")}</span><span class="number">${t("status.tokens")}</span><span class="number">${t("status.speed")}</span><span class="number">${t("status.took")}</span></div>
      <ul class="request-list">${shown.map((one) => html`<li key=${one.id}><button type="button" class="request-row" onClick=${() => { opened.value = one; }}>
        <span class="numbers soft when">${clock(one.arrived_at)}</span>
        <span class="what"><span class="one-line">${shortRoute(one.route)}</span><span class="soft small one-line">${[one.model, withKeys && one.key].filter(Boolean).join(" · ") || NONE}</span></span>
        <${Bar} request=${one} longest=${longest} />
        <span class="number numbers first"><span class="cell-label">${t("status.first.token")} </span>${duration(firstTokenOf(one))}</span>
        <span class="number numbers tokens"><span class="cell-label">${t("status.tokens")} </span>${whole(one.completion_tokens)}</span>
        <span class="number numbers speed"><span class="cell-label">${t("status.speed")} </span>${speedOf(one) === null ? NONE : amount(speedOf(one))}</span>
        <span class="number numbers took">${one.status >= 400 ? html`<${Badge} kind=${one.status >= 500 ? "bad" : "warn"}>${one.status}<//>` : duration(spanOf(one))}</span>
      </button></li>`)}</ul>
      ${requests.length > FIRST && html`<button type="button" class="more" aria-expanded=${all.value} onClick=${() => { all.value = !all.value; }}>
        ${all.value ? t("status.fewer") : t("status.more", { number: requests.length - FIRST })}</button>`}
    </div>`}
    ${opened.value && html`<${Trace} request=${opened.value} />`}
  </section>`;
}

/** What the colours of the bars mean, as far as they are there. */
function Legend({ requests }) {
  const kinds = new Set(requests.flatMap((one) => phasesOf(one).map((phase) => phase.kind)));
  const names = KINDS.filter((kind) => kinds.has(kind)).map((kind) => html`<li><span class="phase-dot ${kind}" aria-hidden="true"></span>${t(`status.phase.${kind}`)}</li>`);
  return html`<ul class="phase-legend soft small">${names}</ul>`;
}

function Bar({ request, longest }) {
  return html`<span class="bar" aria-hidden="true">${phasesOf(request).map((phase) => html`<span class="phase ${phase.kind}"
    style=${{ left: `${(phase.from / longest) * 100}%`, width: `${((phase.to - phase.from) / longest) * 100}%` }}></span>`)}</span>`;
}

function Trace({ request }) {
  const facts = [
    ["status.when", `${new Date(request.arrived_at * 1000).toLocaleString(language.value)}`],
    ["status.model", request.model ?? NONE],
    ["status.key", request.key ?? null],
    ["status.status", `${request.status}${request.finish ? ` · ${request.finish}` : ""}${request.error ? ` · ${request.error}` : ""}`],
    ["status.prompt.tokens", whole(request.prompt_tokens)],
    ["status.cached.tokens", whole(request.cached_tokens)],
    ["status.completion.tokens", whole(request.completion_tokens)],
    ["status.first.token", duration(firstTokenOf(request))],
    ["status.speed", speedOf(request) === null ? NONE : amount(speedOf(request))],
    ["status.took", duration(spanOf(request))],
    ["status.id", html`<span class="mono">${request.id}</span><${CopyButton} text=${request.id} />`],
  ].filter(([, value]) => value !== null);
  return html`<${Dialog} wide title=${`${request.method} ${request.route.replace(/:path\}/g, "}")}`} onClose=${() => { opened.value = null; }}>
    <div class="stack trace"><${TimeLine} request=${request} />
      <${Facts} wide facts=${facts} />
      <p class="soft small"><${Icon} name="eye-off" /> ${t("status.no.content")}</p></div>
  <//>`;
}

/** "/v1" says nothing where all have it. */
function shortRoute(route) {
  return route === "(none)" ? t("status.unrouted") : route.replace(/^\/v1\//, "").replace(/:path\}/g, "}");
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString(language.value, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
