/** Calls of the marketplace's API, with the token of whoever is signed in. A token that has run out is exchanged once. */

import { ApiError, call } from "../app/api.js";
import { language, wordOr } from "../app/words.js";
import { signal } from "../app/view.js";

const NAME = "tis.market.tokens";

/** `{ access_token, refresh_token }`, or null. In the storage of this tab, if that is allowed. */
export const tokens = signal(stored());

export function keepTokens(given) {
  tokens.value = given && { access_token: given.access_token, refresh_token: given.refresh_token };
  try {
    if (tokens.value) sessionStorage.setItem(NAME, JSON.stringify(tokens.value));
    else sessionStorage.removeItem(NAME);
  } catch {
    // Storage may be forbidden: they stay in memory.
  }
}

export async function marketCall(path, options = {}) {
  const used = tokens.value;
  try {
    return await send(path, options);
  } catch (error) {
    if (error.status !== 401 || !used) throw error;
    if (tokens.value === used) await refresh(used);
    if (!tokens.value) throw error;
    return send(path, options);
  }
}

export async function marketJson(path, options) {
  return (await marketCall(path, options)).json();
}

function send(path, { headers = {}, ...options }) {
  const login = tokens.value ? { Authorization: `Bearer ${tokens.value.access_token}` } : {};
  return call(path, { ...options, key: null, headers: { "Accept-Language": language.value, ...login, ...headers } }).catch(sayInOwnWords);
}

/** Faults with a code have their words in every language; others have those of the server. */
function sayInOwnWords(fault) {
  if (fault.body?.code) fault.message = wordOr(`fault.${fault.body.code}`, fault.message, fault.body);
  throw fault;
}

let refreshing = null;

/** A refresh token can be used once: calls that fail together share one exchange. */
function refresh(used) {
  refreshing ??= exchange(used).finally(() => { refreshing = null; });
  return refreshing;
}

async function exchange(used) {
  try {
    const answer = await call("api/auth/refresh", { method: "POST", key: null, json: { refresh_token: used.refresh_token } });
    keepTokens(await answer.json());
  } catch (error) {
    if (!(error instanceof ApiError) || error.isUnreachable || error.status >= 500 || error.status === 429) throw error;
    keepTokens(null);
  }
}

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? "null");
  } catch {
    return null;
  }
}

/** The same deed keeps its key, so that a second try after a lost answer counts once. */
export function keyFor(kept, text) {
  if (kept.text !== text) Object.assign(kept, { text, name: `page-${Date.now()}-${Math.random().toString(36).slice(2)}` });
  return kept.name;
}
