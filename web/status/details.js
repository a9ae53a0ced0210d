/** Streams and their store, the parts around the models, refusals, and who uses what. */

import { html } from "../app/view.js";
import { formatDay, formatTime, t, wordOr } from "../app/words.js";
import { Badge, Meter } from "../design/components.js";
import { Facts, Part } from "./part.js";
import { duration, NONE, whole } from "./format.js";
import { answers, health, look, ready, recent, refused } from "./live.js";

const DURABILITY = { durable: "good", memory: "", degraded: "bad", full: "warn" };
const STATES = { ready: "good", waiting: "", unavailable: "warn" };
const MAX_ROWS = 12;
const PROBES = ["/health", "/ready", "/live"]; // their 503 refuses nobody

export function Streams() {
  const seen = look.value;
  const durability = ready.value?.durability ?? seen?.stateOf("tis_session_store_state");
  const errors = seen ? rowsOf(seen, "tis_session_store_errors_total", (labels) => `${labels.store} · ${labels.error}`) : [];
  return html`<${Part} id="streams" title=${t("status.streams")} badge=${durability && html`<${Badge} kind=${DURABILITY[durability]}>${t(`status.durability.${durability}`)}<//>`}>
    <p class="soft small">${durability ? t(`status.durability.${durability}.about`) : NONE}</p>
    <${Facts} facts=${[
      ["status.streams.running", whole(seen?.value("tis_sessions", { state: "running" }))],
      ["status.streams.kept", whole(seen?.value("tis_sessions", { state: "kept" }))],
      ["status.readers", whole(seen?.value("tis_sse_clients"))],
      ["status.events", whole(seen?.value("tis_session_events_total"))],
      ["status.lag", duration(seen?.value("tis_session_store_durable_lag_seconds"))],
      ["status.cut", whole(seen?.value("tis_slow_readers_cut_total"))],
    ]} />
    <${Counts} title=${t("status.store.errors")} none=${t("status.store.errors.none")} rows=${errors} kind="bad" />
  <//>`;
}

export function Around() {
  const seen = look.value;
  const [market, cards] = [health.value?.marketplace ?? seen?.stateOf("tis_marketplace_state"), health.value?.ktp ?? seen?.stateOf("tis_ktp_state")];
  const [used, limit] = [seen?.value("tis_database_connections_used"), seen?.value("tis_database_connections_limit")];
  const keys = health.value?.keys;
  return html`<${Part} id="around" title=${t("status.around")}>
    <ul class="states">
      <${StateLine} name=${t("status.marketplace")} state=${market} about=${health.value?.marketplaceError ?? t(`status.marketplace.${market ?? "unknown"}`)} />
      <${StateLine} name=${t("status.cards")} state=${cards} about=${health.value?.ktpError ?? (health.value?.ktpPath ? t(`status.cards.by.${health.value.ktpPath}`) : NONE)} />
      ${keys && html`<${StateLine} name=${t("status.keys")} state=${keys.file === "stale" ? "unavailable" : "ready"} word=${keys.number ? whole(keys.number) : t("status.keys.open")} about=${keys.fileError ?? t(keys.number ? "status.keys.some" : "status.keys.none")} />`}
    </ul>
    ${limit ? html`<div class="gauge"><span>${t("status.pool")}</span><span class="numbers">${whole(used)} / ${whole(limit)}</span><${Meter} value=${used / limit} label=${t("status.pool")} /></div>`
      : html`<p class="soft small">${t("status.pool.none")}</p>`}
    <${Rooms} />
  <//>`;
}

/** What requests hold of each bounded resource, if they hold any. */
function Rooms() {
  const used = look.value?.by("tis_admission_used", "resource").filter(([, amount]) => amount > 0).slice(0, 6) ?? [];
  if (!used.length) return null;
  return html`<h3>${t("status.rooms")}</h3>${used.map(([resource, amount]) => {
    const part = amount / Math.max(1, look.value.value("tis_admission_limit", { resource }));
    return html`<div class="gauge" key=${resource}><span>${t(`status.wait.${resource}`)}</span><span class="numbers">${Math.round(part * 100)} %</span><${Meter} value=${part} label=${t(`status.wait.${resource}`)} /></div>`;
  })}`;
}

function StateLine({ name, state, word, about }) {
  return html`<li><span class="state-name">${name}</span><${Badge} kind=${STATES[state] ?? ""}>${word ?? (state ? t(`status.part.${state}`) : NONE)}<//><span class="soft small">${about}</span></li>`;
}

export function Refusals() {
  const seen = look.value;
  if (!seen) return null;
  const http = rowsOf(seen, "tis_http_requests_total", (labels) => labels.status >= "400" && !PROBES.includes(labels.route) && `${labels.status} · ${labels.route === "(none)" ? t("status.unrouted") : labels.route}`);
  const room = rowsOf(seen, "tis_admission_rejections_total", (labels) => t(`status.wait.${labels.reason}`));
  const media = rowsOf(seen, "tis_media_rejected_total", (labels) => wordOr(`status.media.${labels.reason}`, labels.reason));
  const transport = rowsOf(seen, "tis_transport_refusals_total", (labels) => wordOr(`status.transport.${labels.reason}`, labels.reason));
  const keys = rowsOf(seen, "tis_key_refused_total", (labels) => labels.key);
  const groups = [["http", http], ["room", room], ["media", media], ["transport", transport], ["keys", keys]].filter(([, rows]) => rows.length);
  return html`<${Part} id="refusals" title=${t("status.refusals")} about=${t("status.since.start")}>
    ${groups.length ? groups.map(([name, rows]) => html`<${Counts} key=${name} title=${t(`status.refused.${name}`)} rows=${rows} kind="warn" />`) : html`<p class="soft">${t("status.refusals.none")}</p>`}
  <//>`;
}

export function Users() {
  const seen = look.value;
  const usage = answers.value["v1/usage"];
  const names = seen ? seen.by("tis_key_requests_total", "key").map(([name]) => name) : [];
  const of = (metric, key) => whole(seen.value(`tis_key_${metric}_total`, { key }));
  return html`<${Part} id="users" title=${t("status.users")} about=${t("status.since.start")}>
    ${names.length ? html`<div class="scroll" tabindex="0" role="group" aria-label=${t("status.users")}><table class="table"><thead><tr><th scope="col">${t("status.key")}</th><th scope="col" class="number">${t("status.calls")}</th>
      <th scope="col" class="number">${t("status.prompt.tokens")}</th><th scope="col" class="number">${t("status.completion.tokens")}</th><th scope="col" class="number">${t("status.beyond")}</th></tr></thead>
      <tbody>${names.map((key) => html`<tr key=${key} data-key=${key}><td>${key === "anonymous" ? t("status.anonymous") : key}${usage?.key === key && key !== "anonymous" ? html` <span class="chip">${t("status.you")}</span>` : ""}</td>
        ${["requests", "prompt_tokens", "generated_tokens", "refused"].map((metric) => html`<td class="number" data-metric=${metric}>${of(metric, key)}</td>`)}</tr>`)}</tbody></table></div>` : html`<p class="soft">${t(refused.value.has("metrics") ? "status.users.unseen" : "status.users.none")}</p>`}
    ${Object.entries(usage?.limits ?? {}).map(([name, { limit, remaining, resets_at: resets }]) => html`<div class="gauge" key=${name}><span>${t(`status.limit.${name}`)}</span>
      <span class="numbers">${t("status.left", { remaining: whole(remaining), limit: whole(limit) })}${resets ? ` · ${t("status.resets", { time: formatTime(resets * 1000) })}` : ""}</span><${Meter} value=${1 - remaining / Math.max(1, limit)} label=${t(`status.limit.${name}`)} /></div>`)}
    ${usage?.expires_at && html`<p class="soft small">${t("status.expires", { day: formatDay(usage.expires_at * 1000) })}</p>`}
  <//>`;
}

/** A few numbers about the process, and what `tis doctor` finds of this machine. */
export function Machine() {
  const machine = answers.value["v1/machine"];
  const pauses = recent.value("tis_event_loop_lag_seconds", [0.5, 0.99]).values;
  const seen = look.value;
  const order = { bad: 0, slow: 1, ok: 2 };
  const found = [...(machine?.findings ?? [])].sort((a, b) => order[a.verdict] - order[b.verdict]);
  return html`<${Part} id="machine" title=${t("status.machine")} about=${t("status.machine.about")}>
    <${Facts} wide facts=${[
      ["status.cores", machine ? `${machine.cores}` : NONE],
      ["status.threads", machine?.threads ? whole(machine.threads) : NONE],
      ["status.pause.p99", duration(pauses[1])],
      ["status.restarts", whole(seen?.value("tis_engine_restarts_total"))],
      ["status.preempted", whole(seen?.value("tis_num_preemptions_total"))],
    ]} />
    ${!machine ? html`<p class="soft">${t("status.machine.unseen")}</p>` : html`<ul class="findings">${found.map((one, at) => html`<li key=${at} class=${one.verdict}><${Badge} kind=${{ ok: "good", slow: "warn", bad: "bad" }[one.verdict]}>${t(`status.verdict.${one.verdict}`)}<//>
      <span class="about">${wordOr(`status.about.${one.about}`, one.about)}</span><span class="finding">${wordOr(`status.found.${one.code}`, one.text, one.values)}</span></li>`)}</ul>`}
  <//>`;
}

/** `[[label, value]]` of a counter, the largest first, without zeros; `labelOf` may give false to leave one out. */
function rowsOf(seen, metric, labelOf) {
  const sums = new Map();
  for (const { labels, value } of seen.matching(metric, {})) {
    const label = value > 0 && labelOf(labels);
    if (label) sums.set(label, (sums.get(label) ?? 0) + value);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

function Counts({ title, rows, none, kind }) {
  const most = rows[0]?.[1] ?? 1;
  return html`<div class="counts"><h3>${title}</h3>${rows.length ? html`<ul>${rows.slice(0, MAX_ROWS).map(([label, count]) => html`<li key=${label}><span class="one-line" title=${label}>${label}</span><span class="numbers">${whole(count)}</span>
    <span class="count-bar ${kind}" aria-hidden="true" style=${{ transform: `scaleX(${count / most})` }}></span></li>`)}</ul>${rows.length > MAX_ROWS ? html`<p class="soft small">${t("status.and.more", { number: rows.length - MAX_ROWS })}</p>` : ""}` : html`<p class="soft small">${none}</p>`}</div>`;
}
