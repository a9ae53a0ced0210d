/** Is it well? One sentence, of the worst that is to be said. `{ kind, message, values }`, for `t("status.is." + message)`. */

const LATE_SECONDS = 0.5; // a pause of the event loop that people notice
const FULL = 0.95;

/** `seen`: { link, health, ready, look, late } as in live.js; `late` is the 99th percentile of the loop's pauses. */
export function headlineOf({ link, health, ready, look, late }) {
  if (link === "lost") return say("bad", "lost");
  if (link === "connecting") return say("info", "connecting");
  const broken = health?.models?.find((model) => ["failed", "dead"].includes(model.state));
  if (broken) return say("bad", broken.state, { model: broken.id, error: broken.error ?? "" });
  if (health && !health.ok) return say("bad", "broken", { error: health.error ?? "" });
  if (ready?.reason === "draining") return say("warn", "draining");
  if (ready?.durability === "degraded") return say("bad", "disk");
  if (ready?.durability === "full") return say("warn", "full");
  if (!look) return say(ready?.ok === false ? "warn" : "good", ready?.ok === false ? "not.ready" : "no.metrics", { reason: ready?.reason ?? "" });
  const running = look.value("tis_num_requests_running");
  const waits = waitsOf(look);
  const waiting = waits.reduce((sum, [, count]) => sum + count, 0);
  const loading = health?.models?.find((model) => model.state === "loading");
  if (loading) return say(waiting ? "warn" : "info", waiting ? "loading.waiting" : "loading", { model: loading.id, waiting });
  if (waiting) return say("warn", `waiting.${whyOf(waits[0][0], look)}`, { running, waiting });
  if (late > LATE_SECONDS) return say("warn", "late", { seconds: late });
  if (running) return say("good", running === 1 ? "one" : "running", { running });
  return say("good", "idle");
}

/** Who waits for what: `[[reason, number]]`, the most first. */
export function waitsOf(look) {
  return look.by("tis_num_requests_waiting_by_reason", "reason").filter(([, count]) => count > 0);
}

function whyOf(reason, look) {
  if (reason !== "model_queue") return "room";
  const fullest = look.by("tis_kv_cache_usage_perc", "model_name")[0]?.[1] ?? 0;
  return fullest >= FULL ? "memory" : "turn";
}

function say(kind, message, values = {}) {
  return { kind, message, values };
}
