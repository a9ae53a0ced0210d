/** Who shops: an account that signed in, or, on an open server of one's own, its first user. */

import { call } from "../app/api.js";
import { signal } from "../app/view.js";
import { keepTokens, marketJson, tokens } from "./market_calls.js";

/** `{ id, name, email, ai_access_enabled, kind }`; null while nobody is signed in, undefined before that is known. */
export const account = signal(undefined);
/** The server has MARKETPLACE_AUTH=open: whoever asks may say which user asks. */
export const isOpen = document.documentElement.classList.contains("tis-market-is-open");
/** Which form of the account is shown: "login", "register", "forgot", or null. */
export const accountForm = signal(null);

let learning = null;

export function learnAccount() {
  learning = learn().catch(() => { account.value ??= null; });
  return learning;
}

/** When it is known who shops. */
export const whenKnown = () => learning;

async function learn() {
  if (tokens.value) {
    try {
      account.value = await marketJson("api/auth/me");
      return;
    } catch (error) {
      if (error.status !== 401) throw error;
      keepTokens(null);
    }
  }
  account.value = isOpen ? await call("api/users/1", { key: null }).then((answer) => answer.json(), () => null) : null;
}

export async function signIn(email, password) {
  keepTokens(await marketJson("api/auth/login", { method: "POST", json: { email, password } }));
  await learnAccount();
}

/** To register is to agree to the privacy notice that the form names. */
export async function register(given) {
  const { version } = await readConsent();
  keepTokens(await marketJson("api/auth/register", { method: "POST", json: version ? { ...given, consent_version: version } : given }));
  await learnAccount();
}

/** `{ version, url }` of the privacy notice; null where there is none. */
export const readConsent = () => marketJson("api/auth/consent");

/** The answer is the same for every e-mail. */
export const sendReset = (email) => marketJson("api/auth/password/forgot", { method: "POST", json: { email } });

export async function signOut() {
  const old = tokens.value;
  if (old) await marketJson("api/auth/logout", { method: "POST", json: { refresh_token: old.refresh_token } }).catch(() => {});
  keepTokens(null);
  await learnAccount();
}

/** Opens the form where nobody is signed in. */
export function requireAccount() {
  if (account.value || isOpen) return true;
  accountForm.value = "login";
  return false;
}

/** On an open server the caller says who asks. */
export const actingAs = () => (tokens.value || !account.value ? {} : { user_id: account.value.id });
