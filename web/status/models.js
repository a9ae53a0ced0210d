/** The models: what each does now, what it holds, and loading and unloading it with the admin key. */

import { loadModel, unloadModel } from "../app/admin.js";
import { html, signal } from "../app/view.js";
import { formatShort, t } from "../app/words.js";
import { Badge, Button, Dialog, Meter, Note, toast } from "../design/components.js";
import { amount, memory, NONE, percent, since, whole } from "./format.js";
import { answers, health, link, look, lookAgain } from "./live.js";
import { Facts } from "./part.js";
import { rateBetween } from "./quantiles.js";

const STATES = { ready: "good", loading: "info", unloading: "info", unloaded: "", failed: "bad", dead: "bad" };
const BUSY = ["loading", "unloading"];

/** The stages of a load as the server calls them; a newer one may have others. */
const STAGES = {
  "asking the hub": "hub", "looking for its files": "files", downloading: "download", "importing torch and transformers": "libraries",
  "reading the tokenizer": "tokenizer", "reading the weights": "weights", "preparing the weights": "processor", starting: "starting", "warming up": "warm",
};

/** What this page loads or unloads: by id, `{ stage, progress }`, or `{ error }`. */
const actions = signal({});
const leaving = signal(null);
let before = null;
let rates = {};

const stageOf = (stage) => t(stage ? `status.stage.${STAGES[stage] ?? "processor"}` : "status.load.begins");

export function Models() {
  const known = new Map((answers.value["v1/models"]?.data ?? []).map((model) => [model.id, model]));
  const states = new Map((health.value?.models ?? []).map((model) => [model.id, model]));
  const names = [...new Set([...states.keys(), ...known.keys(), ...namesOfMetrics()])];
  measure(names);
  return html`<section class="part" aria-labelledby="models-title"><header class="part-head"><h2 id="models-title" class="grow">${t("status.models")}</h2></header>
    ${names.length ? html`<div class="models">${names.map((id) => html`<${Model} key=${id} id=${id} known=${known.get(id)} status=${states.get(id)} />`)}</div>`
      : html`<p class="soft empty">${t("status.models.unseen")}</p>`}
    ${leaving.value && html`<${Question} id=${leaving.value} held=${states.get(leaving.value)?.memoryBytes} />`}
  </section>`;
}

function Model({ id, known, status }) {
  const seen = look.value;
  const labels = { model_name: id };
  const action = actions.value[id];
  const state = status?.state ?? seen?.stateOf("tis_model_state", labels) ?? (known?.status === "loaded" ? "ready" : known?.status) ?? "unloaded";
  const isBusy = BUSY.includes(state) || Boolean(action && !action.error);
  const progress = action?.progress ?? status?.progress ?? null;
  const room = seen?.value("tis_kv_cache_tokens", labels);
  const waiting = seen?.value("tis_num_requests_waiting", labels);
  const used = seen?.value("tis_kv_cache_usage_perc", labels);
  const facts = [
    ["status.running", waiting ? t("status.running.waiting", { running: whole(seen.value("tis_num_requests_running", labels)), waiting: whole(waiting) }) : whole(seen?.value("tis_num_requests_running", labels))],
    ["status.memory", memory((status?.memoryBytes ?? seen?.value("tis_model_memory_bytes", labels)) || null)],
    ["status.speed", amount(rates[id])],
    ["status.idle", status && status.idleSeconds !== null ? since(status.idleSeconds) : NONE],
  ];
  return html`<article class="card model" aria-label=${id} data-model=${id}>
    <header><h3 class="grow one-line" title=${id}>${id}</h3><${Badge} kind=${STATES[state]} icon=${isBusy ? "loader-circle" : undefined} spin=${isBusy}>${t(`status.state.${state}`)}<//></header>
    ${known?.parent && html`<p class="soft small">${t("status.adapter.of", { model: known.parent })}</p>`}
    <p class="capabilities">${(known?.capabilities ?? []).map((name) => html`<span class="chip">${t(`status.can.${name}`)}</span>`)}
      ${known?.max_model_len ? html`<span class="chip numbers">${t("status.context", { tokens: formatShort(known.max_model_len) })}</span>` : ""}</p>
    ${isBusy && state !== "unloading" && html`<div class=${progress === null ? "loading unknown" : "loading"}><${Meter} value=${progress ?? 0} label=${t("status.load.progress", { model: id })} />
      <span class="soft small numbers">${[action?.stage ?? stageOf(status?.stage), progress === null ? "" : percent(progress)].filter(Boolean).join(" · ")}</span></div>`}
    ${status?.error && html`<${Note} kind="bad">${status.error}<//>`}
    ${action?.error && html`<${Note} kind="warn" role="alert"><div class="row"><span class="grow">${action.error}</span><${Button} small kind="quiet" icon="x" label=${t("close")} onClick=${() => set(id, null)} /></div><//>`}
    <${Facts} facts=${facts} />
    ${room ? html`<div class="gauge small"><span class="soft">${t("status.cache.of", { room: formatShort(room) })}</span><span class="numbers">${percent(used)}</span><${Meter} value=${used} label=${t("status.cache.full")} /></div>` : ""}
    ${!known?.parent && html`<footer>${state === "ready"
      ? html`<${Button} small icon="power" disabled=${isBusy || link.value !== "live"} onClick=${() => { leaving.value = id; }}>${t("status.unload")}<//>`
      : html`<${Button} small icon="play" disabled=${isBusy || link.value !== "live"} onClick=${() => load(id)}>${t("status.load")}<//>`}</footer>`}
  </article>`;
}

function Question({ id, held }) {
  const close = () => { leaving.value = null; };
  const unloadNow = () => { close(); void unload(id); };
  return html`<${Dialog} title=${t("status.unload.ask", { model: id })} onClose=${close} footer=${html`<${Button} onClick=${close}>${t("cancel")}<//>
    <${Button} kind="danger" icon="power" onClick=${unloadNow}>${t("status.unload")}<//>`}><p>${t("status.unload.about", { memory: memory(held) })}</p><//>`;
}

async function load(id) {
  await act(id, async () => {
    const onStep = ({ stage, part }) => set(id, { stage: t(`status.stage.${stage}`), progress: part });
    if (await loadModel(id, onStep)) toast(t("status.loaded", { model: id }));
  });
}

async function unload(id) {
  await act(id, async () => {
    if (await unloadModel(id)) toast(t("status.unloaded", { model: id }));
  });
}

async function act(id, work) {
  set(id, { stage: null, progress: null });
  try {
    await work();
    set(id, null);
  } catch (fault) {
    set(id, { error: fault.code === "model_in_use" ? t("status.in.use", { model: id }) : fault.isUnreachable || fault instanceof TypeError ? t("status.is.lost") : fault.message });
  }
  lookAgain();
}

function set(id, action) {
  actions.value = { ...actions.value, [id]: action };
}

function namesOfMetrics() {
  return look.value?.by("tis_model_state", "model_name").map(([name]) => name) ?? [];
}

/** Once for each look. */
function measure(names) {
  const now = look.value;
  if (!now || now === before) return;
  if (before) rates = Object.fromEntries(names.map((id) => [id, rateBetween(before, now, "tis_generation_tokens_total", { model_name: id })]));
  before = now;
}
