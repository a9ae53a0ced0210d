/** Whether this server can read cards, and why not. */

import { getJson } from "../app/api.js";
import { signal } from "../app/view.js";

/** `{ state: "ready" | "waiting" | "unavailable", reason }`; null until it is known. */
export const reader = signal(null);

export async function learnReader() {
  const { ktp } = await quietly("ready");
  if (!ktp) return;
  const { ktpError } = ktp === "unavailable" ? await quietly("health") : {};
  reader.value = { state: ktp, reason: ktpError ?? "" };
}

/** Probes need no key; what is wrong with a model is another page's business. */
async function quietly(path) {
  try {
    return await getJson(path, { ask: false });
  } catch (fault) {
    return fault.body ?? {};
  }
}
