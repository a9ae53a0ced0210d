/** Calls that load and unload models. A server without ADMIN_KEY takes them from its own computer; else a key is asked for. */

import { ApiError, call } from "./api.js";
import { eventsOf } from "./event_stream.js";
import { askForKey, hasKey } from "./keys.js";
import { t } from "./words.js";

/** Resolves to true when the model is ready, to false if nobody gives the key. `onStep({ stage, part })`: `part` of it from 0 to 1, or null. */
export async function loadModel(id, onStep) {
  const answer = await callAsAdmin("load_model", { json: { model: id } });
  if (!answer) return false;
  for await (const { data } of eventsOf(answer)) {
    const { status, message, stage, progress } = JSON.parse(data);
    if (status === "error") throw new Error(message);
    if (status === "ready") return true;
    onStep({ stage, part: progress?.total ? progress.current / progress.total : null });
  }
  throw new Error(t("server.unreachable"));
}

/** False if nobody gives the key. */
export async function unloadModel(id) {
  return Boolean(await callAsAdmin(`v1/models/${encodeURIComponent(id).replaceAll("%2F", "/")}/unload`));
}

/** Null if the user closes the question for the key. */
async function callAsAdmin(path, options) {
  let kind = hasKey("admin") ? "admin" : "api";
  for (;;) {
    try {
      return await call(path, { ...options, method: "POST", key: kind, ask: false });
    } catch (fault) {
      if (!(fault instanceof ApiError) || !wantsKey(fault)) throw fault;
      if (!(await askForKey("admin", kind === "admin"))) return null;
      kind = "admin";
    }
  }
}

/** A 403 without the name of the key says that no key would help. */
function wantsKey({ status, message }) {
  return status === 401 || (status === 403 && message.includes("<ADMIN_KEY>"));
}
