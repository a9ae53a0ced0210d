/** The talk with the assistant. An answer is a recorded stream: a lost connection and a killed server are read on from. */

import { signal } from "../../app/view.js";
import { eventsOf } from "../../app/event_stream.js";
import { t } from "../../app/words.js";
import { actingAs, whenKnown } from "../../market/account.js";
import { marketCall, marketJson } from "../../market/market_calls.js";

const NAME = "tis.shop.conversation";
const FIRST_WAIT = 500;
const MAX_WAIT = 8000;
const MAX_ATTEMPTS = 40;
const MAX_MESSAGES = 100;

/** `{ role, text, products, citations, suggestions, status, error, at }`; a running answer is the last one. `at`: of one that was read again, with the prices of then. */
export const messages = signal([]);
export const isAnswering = signal(false);
/** The connection is lost, and is being made again. */
export const isReconnecting = signal(false);

let sessionId = readName();
let stopping = null;

/** After a reload: what was said, and an answer that goes on. */
export async function recall() {
  if (!sessionId || messages.value.length || isAnswering.value) return;
  try {
    const parameters = new URLSearchParams({ ...actingAs(), limit: MAX_MESSAGES });
    const said = (await marketJson(`api/chat/conversations/${sessionId}?${parameters}`)).reverse();
    messages.value = said.map(({ role, content, details, created_at: at }) => ({ role, text: content, citations: details.citations ?? [], products: details.products ?? [], suggestions: details.suggestions ?? [], status: "done", at }));
  } catch (fault) {
    if (fault.status === 404) forget();
    return;
  }
  if (messages.value.at(-1)?.role === "user") await follow(null);
}

export async function ask(query) {
  add({ role: "user", text: query, status: "done" });
  const session = sessionId ? { session_id: sessionId } : {};
  // Sent again after a lost connection it gets the same answer.
  const headers = { "Idempotency-Key": [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("") };
  await follow(async () => {
    await whenKnown();
    return marketCall("api/chat/search", { method: "POST", json: { ...actingAs(), ...session, query, stream: true }, headers, signal: stopping.signal });
  });
}

export async function stop() {
  if (sessionId) await marketCall(`api/chat/cancel/${sessionId}?${new URLSearchParams(actingAs())}`, { method: "POST" }).catch(() => {});
}

export function forget() {
  stopping?.abort();
  keepName(null);
  messages.value = [];
}

/** Reads an answer to its end, whatever happens in between. `begin` sends the question; without it an answer is read on. */
async function follow(begin) {
  stopping?.abort();
  const mine = (stopping = new AbortController());
  isAnswering.value = true;
  add({ role: "assistant", text: "", products: [], citations: [], suggestions: [], status: "running" });
  let cursor = null;
  let isOver = false;
  for (let attempt = 0; !isOver && attempt < MAX_ATTEMPTS && !mine.signal.aborted; attempt++) {
    try {
      const answer = await (begin && cursor === null ? begin() : read(cursor, mine.signal));
      isReconnecting.value = false;
      for await (const event of eventsOf(answer)) {
        if (mine.signal.aborted) return;
        if (event.id) cursor = event.id;
        attempt = 0;
        isOver = take(event) || isOver;
      }
      if (isOver) break;
    } catch (fault) {
      if (mine.signal.aborted) return;
      if (!mayTryAgain(fault)) { change({ status: "failed", error: fault.status === 403 ? t("shop.assistant.denied") : fault.message }); break; }
    }
    isReconnecting.value = true;
    await new Promise((resolve) => { setTimeout(resolve, Math.min(MAX_WAIT, FIRST_WAIT * 2 ** attempt)); });
  }
  if (mine !== stopping) return;
  if (messages.value.at(-1)?.status === "running") change({ status: "failed", error: t("server.unreachable") });
  isAnswering.value = isReconnecting.value = false;
}

function read(cursor, signal) {
  const headers = cursor === null ? {} : { "Last-Event-ID": cursor };
  return marketCall(`api/chat/stream/${sessionId}?${new URLSearchParams(actingAs())}`, { headers, signal });
}

/** No status: the network. A server that starts says 503; one that begins to resume may say 409 for a moment. */
const mayTryAgain = (fault) => fault.status === undefined || fault.status === 0 || fault.status === 429 || fault.status >= 500;

/** Returns whether the answer is over. */
function take({ event, data }) {
  const given = JSON.parse(data);
  if (event === "chat.search.created") keepName(given.session_id);
  else if (event === "chat.search.products") change({ products: given.products });
  else if (event === "chat.search.text.delta") change({ text: messages.value.at(-1).text + given.delta });
  else if (event === "chat.search.completed") {
    const { response, products, citations, suggestions, notice } = given.response;
    change({ text: response, products, citations, suggestions, notice, status: "done" });
    return true;
  } else if (event === "error" || event === "chat.search.failed") {
    change({ status: "failed", error: given.error?.message ?? given.message ?? given.detail ?? t("shop.assistant.failed") });
    return true;
  }
  return false;
}

function add(message) {
  messages.value = [...messages.value, message].slice(-MAX_MESSAGES);
}

function change(changes) {
  messages.value = [...messages.value.slice(0, -1), { ...messages.value.at(-1), ...changes }];
}

function keepName(name) {
  sessionId = name;
  try {
    if (name) sessionStorage.setItem(NAME, name);
    else sessionStorage.removeItem(NAME);
  } catch {
    // Storage may be forbidden: the talk lasts as long as the page.
  }
}

function readName() {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null;
  }
}
