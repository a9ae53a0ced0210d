/** What the page knows of the server, asked every two seconds while somebody looks. */

import { ApiError, call } from "../app/api.js";
import { askForKey, hasKey, keyOf } from "../app/keys.js";
import { batch, computed, effect, signal } from "../app/view.js";
import { EVERY_MS, History } from "./history.js";
import { keepPoints, readPoints } from "./kept_points.js";
import { headlineOf } from "./headline.js";
import { parseMetrics } from "./metrics_text.js";

const TIMEOUT_MS = 8000;
/** Every how many looks each address is asked, beside /metrics, /health and /ready. */
const SELDOM = { "v1/models": 5, "v1/usage": 5, "v1/requests/recent": 2, "v1/machine": 30, version: 150 };

const history = new History(readPoints());

/** "connecting", "live" or "lost". */
export const link = signal("connecting");
export const lastAt = signal(null);
export const paused = signal(false);
export const look = signal(null);
export const points = signal(history.points);
export const health = signal(null);
export const ready = signal(null);
/** The answers of SELDOM, by address. */
export const answers = signal({});
/** Addresses that need a key which the page does not have. */
export const refused = signal(new Set());

/** Percentiles of the last minute: `recent("name", [0.5, 0.95])`. */
export const recent = computed(() => {
  void look.value;
  return (name, shares) => history.recent(name, shares);
});
/** The start itself has long pauses, which say nothing of now. */
export const late = computed(() => {
  const { values, isOld } = recent.value("tis_event_loop_lag_seconds", [0.99]);
  return isOld ? null : values[0];
});
export const headline = computed(() => headlineOf({ link: link.value, health: health.value, ready: ready.value, look: look.value, late: late.value }));

let timer = null;
let round = 0;
let asking = false;
let hasAskedForKey = false;
let heldBefore = "";

export function start() {
  document.addEventListener("visibilitychange", wake);
  addEventListener("pagehide", () => keepPoints(points.value));
  effect(() => { if (!paused.value) wake(); });
  // A key that is given, here or in a dialog, is used at once.
  effect(() => { if (keyOf("api") || hasKey("admin")) lookAgain(); });
}

/** All is asked anew, as after a model was loaded. */
export function lookAgain() {
  round = 0;
  wake();
}

function wake() {
  clearTimeout(timer);
  if (!document.hidden && !paused.value) timer = setTimeout(lookOnce, 0);
}

async function lookOnce() {
  if (asking) return;
  asking = true;
  const began = performance.now();
  try {
    await lookAtAll();
  } finally {
    asking = false;
    clearTimeout(timer);
    if (!document.hidden && !paused.value) timer = setTimeout(lookOnce, Math.max(250, EVERY_MS - (performance.now() - began)));
  }
}

async function lookAtAll() {
  const held = `${keyOf("api")} ${keyOf("admin")}`;
  if (held !== heldBefore) refused.value = new Set();
  heldBefore = held;
  const may = (path) => !refused.value.has(path); // not again before there is another key
  const seldom = Object.keys(SELDOM).filter((path) => may(path) && (round % SELDOM[path] === 0 || !(path in answers.value)));
  round += 1;
  const asked = await Promise.all([...["metrics"].filter(may), "health", "ready", ...seldom].map(lookAt));
  const found = Object.fromEntries(asked.map((one) => [one.path, one]));
  const isLost = found.health.error?.isUnreachable ?? false;
  batch(() => {
    link.value = isLost ? "lost" : "live";
    if (isLost) { round = 0; return; }
    lastAt.value = Date.now();
    health.value = bodyOf(found.health) ?? health.value;
    ready.value = bodyOf(found.ready) ?? ready.value;
    if (found.metrics?.body !== undefined) {
      const seen = parseMetrics(found.metrics.body, Date.now());
      points.value = history.add(seen);
      look.value = seen;
    }
    const known = seldom.filter((path) => found[path].body !== undefined);
    if (known.length) answers.value = { ...answers.value, ...Object.fromEntries(known.map((path) => [path, found[path].body])) };
    const denied = asked.filter((one) => [401, 403].includes(one.error?.status)).map((one) => one.path);
    if (denied.length) refused.value = new Set([...refused.value, ...denied]);
  });
  if (refused.value.size && !hasAskedForKey) {
    hasAskedForKey = true;
    void giveKey();
  }
}

/** Asks for the API key in a dialog. */
export async function giveKey() {
  if (await askForKey("api", hasKey("api") && refused.value.has("metrics"))) lookAgain();
}

/** The key that sees the most. */
function keyKind() {
  return hasKey("admin") ? "admin" : "api";
}

async function lookAt(path) {
  // Without API keys the server takes any; an admin key that it does not take for reading gives way to the API key.
  for (const key of keyKind() === "admin" && hasKey("api") ? ["admin", "api"] : [keyKind()]) {
    try {
      const answer = await call(path, { key, ask: false, signal: AbortSignal.timeout(TIMEOUT_MS) });
      return { path, body: path === "metrics" ? await answer.text() : await answer.json() };
    } catch (fault) {
      const error = fault instanceof ApiError ? fault : new ApiError(0, String(fault));
      if (error.status !== 401 || key === "api") return { path, error };
    }
  }
  return { path, error: new ApiError(401, "No key.") };
}

/** /health and /ready say what is broken with a status of 503. */
function bodyOf({ body, error }) {
  return body ?? (error?.status === 503 ? error.body : undefined);
}
