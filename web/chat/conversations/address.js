/** The address says what is shown: `#/c/<conversation>/<session>`, `#/watch/<session>?...`, or `#/` for a new chat. */

import { rememberChat } from "../../app/last_chat.js";
import { effect, signal } from "../../app/view.js";

const MAX_QUESTION = 1500;
const NAME = /^[\w.:-]{1,128}$/;

export function placeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [kind, first = "", second = ""] = path.split("/").map(decoded);
  if (kind === "c" && NAME.test(first)) return { kind: "conversation", conversationId: first, sessionId: NAME.test(second) ? second : "" };
  if (kind === "watch" && NAME.test(first)) {
    const values = new URLSearchParams(query);
    return { kind: "watch", sessionId: first, token: values.get("t") ?? "", question: (values.get("q") ?? "").slice(0, MAX_QUESTION) };
  }
  return { kind: "new" };
}

export function conversationHash(conversationId, sessionId = "") {
  return `#/c/${encodeURIComponent(conversationId)}${sessionId ? `/${encodeURIComponent(sessionId)}` : ""}`;
}

/** What comes after `#` stays in the browser: neither the question nor the token reaches a log of a page's address. */
export function watchHash(sessionId, { token, question }) {
  const values = new URLSearchParams();
  if (token) values.set("t", token);
  if (question) values.set("q", question.length > MAX_QUESTION ? `${question.slice(0, MAX_QUESTION - 1)}…` : question);
  return `#/watch/${encodeURIComponent(sessionId)}?${values}`;
}

export const place = signal(placeOf(location.hash));

effect(() => {
  void place.value;
  rememberChat(location.hash);
});
addEventListener("hashchange", () => { place.value = placeOf(location.hash); });

/** `replace` leaves no step for the back button. */
export function goTo(hash, { replace = false } = {}) {
  if (location.hash === hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  place.value = placeOf(hash);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
