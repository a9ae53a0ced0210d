/**
 * News of holds, as the server tells them: one stream for the page, which goes on where it was cut. Other tabs need connections,
 * too, so a page that nobody sees closes its stream.
 */

import { eventsOf } from "../app/event_stream.js";
import { effect, signal, untracked } from "../app/view.js";
import { account, isOpen } from "./account.js";
import { marketCall } from "./market_calls.js";

const FIRST_PAUSE = 1000;
const MAX_PAUSE = 30_000;

/** The stream stands: what it says need not be asked for. */
export const isLive = signal(false);

const listeners = new Set();
const isSeen = signal(!document.hidden);
document.addEventListener("visibilitychange", () => { isSeen.value = !document.hidden; });
let lastId = null;

/**
 * `hear` gets `{ type: "hold.accepted", reservation_id, product_id, supplier_id, quantity, role, at }`; `role` is "buyer" or "shop".
 * `readAnew` is called when something may have been missed. Returns a function that ends it.
 */
export function listenToNotices(hear, readAnew = () => {}) {
  const listener = { hear, readAnew };
  listeners.add(listener);
  return () => { listeners.delete(listener); };
}

/** At the start of a page: listens as long as somebody is signed in. */
export function followNotices() {
  effect(() => {
    const who = account.value?.kind ? `${account.value.kind}:${account.value.id}` : account.value?.id;
    if (!isSeen.value || account.value === undefined || (!who && !isOpen)) return undefined;
    if (follower !== who) [follower, lastId] = [who, null];
    const stop = new AbortController();
    untracked(() => follow(stop.signal));
    return () => {
      stop.abort();
      isLive.value = false;
    };
  });
}

let follower = null; // whose `lastId` is

async function follow(stop) {
  let pause = FIRST_PAUSE;
  while (!stop.aborted) {
    try {
      const answer = await marketCall("api/notices/stream", { signal: stop, headers: lastId ? { "Last-Event-ID": lastId } : {} });
      if (stop.aborted) return;
      isLive.value = true;
      pause = FIRST_PAUSE;
      for await (const event of eventsOf(answer)) {
        if (stop.aborted) return;
        if (event.event === "failed") break;
        if (event.id) lastId = event.id;
        if (event.event === "connected") tell((one) => one.readAnew());
        else tell((one) => one.hear(JSON.parse(event.data)));
      }
    } catch (error) {
      if (stop.aborted) return;
      // What came after its last event is gone, or the server is another one.
      if (error.status === 410 || error.status === 400) lastId = null;
      // Signing in begins anew.
      if (error.status === 401 || error.status === 403 || error.status === 404) return;
    }
    if (stop.aborted) return;
    isLive.value = false;
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(MAX_PAUSE, pause * 2);
  }
}

function tell(say) {
  for (const listener of listeners) {
    try {
      say(listener);
    } catch (fault) {
      reportError(fault);
    }
  }
}
