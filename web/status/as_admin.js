/** Calls that load and unload models. A server without ADMIN_KEY takes them from its own computer; else a key is asked for. */

import { ApiError, call } from "../app/api.js";
import { askForKey, hasKey } from "../app/keys.js";

/** Null if the user closes the question for the key. */
export async function callAsAdmin(path, options) {
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
