/** What is wrong with a field of an account, in words of the page. */

import { t } from "../app/words.js";

export const MIN_PASSWORD = 8;
const KNOWN = ["name", "email", "password"];

/** `{ field: message }` of what the server lists; empty for any other fault. */
export function fieldFaults({ status, body }) {
  const detail = body?.detail;
  if (status !== 422 || !Array.isArray(detail)) return {};
  const found = detail.map((one) => [one.loc?.at(-1), one]);
  return found.every(([name]) => KNOWN.includes(name)) ? Object.fromEntries(found.map(([name, one]) => [name, saidOf(name, one)])) : {};
}

function saidOf(name, { type, msg }) {
  if (name === "email") return t("account.email.wrong");
  if (name === "password") return type === "too_short" ? t("account.password.help", { number: MIN_PASSWORD }) : t("account.password.weak");
  return msg;
}
