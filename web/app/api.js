/** Calls of the public API. A 401 asks the user for a key and tries again; errors have the words of the server. */

import { addressOf } from "./addresses.js";
import { askForKey, keyOf } from "./keys.js";
import { t } from "./words.js";

export class ApiError extends Error {
  /** `status` is 0 while the server cannot be reached. */
  constructor(status, message, { code = null, retryAfter = null, body = null } = {}) {
    super(message);
    this.name = "ApiError";
    Object.assign(this, { status, code, retryAfter, body });
  }

  get isUnreachable() {
    return this.status === 0;
  }
}

/**
 * A `fetch` that adds the key. `options.key` names it ("api", "admin", or null for none); `options.ask` = false takes a
 * 401 as an error. `options.json` is sent as JSON.
 */
export async function call(path, { key = "api", ask = true, json, headers = {}, ...options } = {}) {
  for (;;) {
    const sent = { ...headers };
    const used = key && keyOf(key);
    if (used) sent.Authorization = `Bearer ${used}`;
    if (json !== undefined) sent["Content-Type"] = "application/json";
    const answer = await reach(path, { ...options, headers: sent, body: json === undefined ? options.body : JSON.stringify(json) });
    if (answer.ok) return answer;
    if (answer.status === 401 && key && ask) {
      const given = keyOf(key) !== used ? keyOf(key) : await askForKey(key, Boolean(used));
      if (given) continue;
    }
    throw await errorOf(answer);
  }
}

export async function getJson(path, options) {
  return (await call(path, options)).json();
}

export async function postJson(path, json, options) {
  return (await call(path, { method: "POST", json, ...options })).json();
}

async function reach(path, options) {
  try {
    return await fetch(addressOf(path), { cache: "no-store", credentials: "same-origin", ...options });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new ApiError(0, t("server.unreachable"));
  }
}

async function errorOf(answer) {
  const body = await answer.json().catch(() => null);
  const detail = body?.detail;
  const error = body?.error ?? (detail?.message ? detail : undefined);
  const message = error?.message ?? (typeof error === "string" ? error : detail) ?? `${answer.status} ${answer.statusText}`;
  const retryAfter = Number(answer.headers.get("retry-after")) || null;
  return new ApiError(answer.status, typeof message === "string" ? message : saidOf(message), { code: error?.code ?? null, retryAfter, body });
}

/** Of a list of faults, each of a field, what they say. */
function saidOf(faults) {
  if (!Array.isArray(faults) || !faults.every((one) => typeof one?.msg === "string")) return JSON.stringify(faults);
  return faults.map((one) => `${one.loc?.at(-1) ?? ""}: ${one.msg.replace(/^Value error, /, "")}`).join("; ");
}
