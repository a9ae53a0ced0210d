/** What the charts show: a point for each look, fifteen minutes of them, and the looks of the last minute. */

import { bucketsBetween, quantile, rateBetween, spreadOf } from "./quantiles.js";

export const EVERY_MS = 2000;
export const KEPT_MINUTES = 15;
const MAX_POINTS = (KEPT_MINUTES * 60_000) / EVERY_MS;
const WINDOW_MS = 10_000; // of percentiles and shares in charts: long enough to have some tokens in it
const MINUTE_MS = 60_000;
const GAP_MS = 3 * EVERY_MS; // after a longer silence a line is broken

export class History {
  /** `points` of an earlier visit of this tab: what is too old for any chart is left out. */
  constructor(points = []) {
    this.points = points.filter((one) => one.at > Date.now() - KEPT_MINUTES * 60_000 && one.at <= Date.now()).slice(-MAX_POINTS);
    this.looks = [];
  }

  /** Returns the new points. */
  add(look) {
    const last = this.looks.at(-1);
    if (last && isYounger(look, last)) this.looks = [];
    const before = this.looks.at(-1);
    const isBroken = this.points.length && look.at - this.points.at(-1).at > GAP_MS;
    this.looks = [...this.looks.filter((one) => look.at - one.at <= MINUTE_MS), look];
    const added = isBroken ? [{ at: look.at - EVERY_MS }] : [];
    added.push(pointOf(look, before, this.since(look.at - WINDOW_MS)));
    this.points = [...this.points, ...added].slice(-MAX_POINTS);
    return this.points;
  }

  /** The oldest look that is not older than `at`. */
  since(at) {
    return this.looks.find((one) => one.at >= at);
  }

  /** Percentiles of the last minute; of all time, with `isOld`, if nothing happened in it. */
  recent(name, shares) {
    const [first, now] = [this.looks[0], this.looks.at(-1)];
    if (!now) return { values: shares.map(() => null), isOld: true };
    const minute = first === now ? [] : bucketsBetween(first, now, name);
    const isOld = !(minute.at(-1)?.[1] > 0);
    const buckets = isOld ? now.buckets(name) : minute;
    return { values: shares.map((share) => quantile(buckets, share)), isOld };
  }
}

/** Counters begin anew in a new process. */
function isYounger(look, before) {
  return look.value("tis_http_requests_total") < before.value("tis_http_requests_total");
}

function pointOf(look, before, windowed) {
  const rate = (name, labels) => (before ? rateBetween(before, look, name, labels) : null);
  const share = (part, of) => {
    if (!windowed || windowed === look) return null;
    const whole = look.value(of) - windowed.value(of);
    return whole > 0 ? Math.max(0, look.value(part) - windowed.value(part)) / whole : null;
  };
  /** Two percentiles, and all that there is. */
  const histogram = (name, ...shares) => {
    const buckets = windowed && windowed !== look ? bucketsBetween(windowed, look, name) : [];
    return [...shares.map((one) => quantile(buckets, one)), spreadOf(buckets)];
  };
  const [first50, first95, firstSpread] = histogram("tis_time_to_first_token_seconds", 0.5, 0.95);
  const [gap50, gap95, gapSpread] = histogram("tis_inter_token_latency_seconds", 0.5, 0.95);
  const [pause50, pause99, pauseSpread] = histogram("tis_event_loop_lag_seconds", 0.5, 0.99);
  const caches = look.by("tis_kv_cache_usage_perc", "model_name");
  return {
    at: look.at,
    generated: rate("tis_generation_tokens_total"),
    prompt: rate("tis_prompt_tokens_total"),
    first50, first95, firstSpread, gap50, gap95, gapSpread, pause50, pause99, pauseSpread,
    running: look.value("tis_num_requests_running"),
    waiting: look.value("tis_num_requests_waiting_by_reason"),
    cache: caches.length ? caches[0][1] : null,
    hits: share("tis_prefix_cache_hits_total", "tis_prefix_cache_queries_total"),
    accepted: share("tis_spec_decode_num_accepted_tokens_total", "tis_spec_decode_num_draft_tokens_total"),
    guessed: share("tis_spec_decode_num_accepted_tokens_total", "tis_generation_tokens_total"),
    memory: look.has("tis_resident_memory_bytes") ? look.value("tis_resident_memory_bytes") : null,
    models: look.value("tis_model_memory_bytes"),
  };
}
