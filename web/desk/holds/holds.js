/** What buyers hold of a shop's goods. News come by themselves; while they cannot, the page asks every few seconds. */

import { computed, signal } from "../../app/view.js";
import { t } from "../../app/words.js";
import { toast } from "../../design/components.js";
import { marketCall, marketJson } from "../../market/market_calls.js";
import { isLive, listenToNotices } from "../../market/notices.js";

const ASK_MILLISECONDS = 5000;
const MAX_OPEN = 100;
const PAGE = 20;

let shopId = null;

/** Held now; undefined before they are known. */
export const open = signal(undefined);
/** `{ items, hasMore }` of those that were sold, or of all, newest first. */
export const past = signal(null);
export const fault = signal(null);

const isHeld = (hold) => hold.status === "held" && Date.parse(hold.expires_at) > Date.now();

/** Those that end first come first. */
export const waiting = computed(() => byEnd((open.value ?? []).filter((one) => !one.accepted_at)));
export const accepted = computed(() => byEnd((open.value ?? []).filter((one) => one.accepted_at)));

/** Until the returned function is called: follows the holds of this shop, whatever part is shown. */
export function followHolds(id) {
  [shopId, open.value, past.value, fault.value] = [id, undefined, null, null];
  readOpen();
  const stopHearing = listenToNotices((notice) => {
    if (notice.role !== "shop" || !notice.reservation_id || notice.supplier_id !== shopId) return;
    if (notice.type === "hold.made") toast(t("holds.news.made"), "bell");
    readOpen();
  }, readOpen);
  const timer = setInterval(() => {
    if (document.hidden) return;
    if (!isLive.value) readOpen();
    else if (open.value?.some((one) => !isHeld(one))) readOpen();
  }, ASK_MILLISECONDS);
  return () => {
    stopHearing();
    clearInterval(timer);
  };
}

let reading = null;
let isAskedAgain = false;

/** Calls that come while one is on its way share the next: the answer to that one may be older than what they want to know. */
export function readOpen() {
  if (reading) isAskedAgain = true;
  else reading = readUntilNew().finally(() => { reading = null; });
  return reading;
}

async function readUntilNew() {
  do {
    isAskedAgain = false;
    await readOnce();
  } while (isAskedAgain);
}

async function readOnce() {
  const asked = shopId;
  try {
    const found = await marketJson(`api/suppliers/${asked}/reservations?status=held&limit=${MAX_OPEN}`);
    if (asked === shopId) [open.value, fault.value] = [found, null];
  } catch (error) {
    if (asked === shopId) fault.value = error;
  }
}

let newestPast = 0;

/** `status`: "committed", or null for all. */
export async function readPast(status, isMore = false) {
  const [asked, mine] = [shopId, ++newestPast];
  const before = isMore && past.value?.items.at(-1)?.id;
  try {
    const query = new URLSearchParams({ limit: PAGE, ...(status && { status }), ...(before && { before }) });
    const answer = await marketCall(`api/suppliers/${asked}/reservations?${query}`);
    const found = await answer.json();
    if (asked !== shopId || mine !== newestPast) return;
    past.value = { items: [...(before ? past.value.items : []), ...found], hasMore: Boolean(answer.headers.get("link")) };
    fault.value = null;
  } catch (error) {
    if (asked === shopId) fault.value = error;
  }
}

export const accept = (hold) => act(hold, "accept");
export const sell = (hold) => act(hold, "commit");
export const refuse = (hold, reason) => act(hold, "refuse", reason ? { reason } : undefined);

/** Whatever the answer is, the list shows what is true then. */
async function act(hold, what, json) {
  try {
    const changed = await marketJson(`api/reservations/${hold.id}/${what}`, { method: "POST", json });
    const taken = (holds) => holds.map((one) => (one.id === hold.id ? { ...one, ...changed } : one));
    open.value = open.value && taken(open.value).filter(isHeld);
    past.value = past.value && { ...past.value, items: taken(past.value.items) };
    return changed;
  } finally {
    readOpen();
  }
}

const byEnd = (holds) => [...holds].sort((one, other) => one.expires_at.localeCompare(other.expires_at));
