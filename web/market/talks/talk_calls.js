/** Talks of this account or of a shop: their lists, and the one that is open. News come by themselves; while they cannot, the page asks. */

import { signal } from "../../app/view.js";
import { account } from "../account.js";
import { marketCall, marketJson } from "../market_calls.js";
import { isLive, listenToNotices } from "../notices.js";

const PAGE = 30;
const ASK_MILLISECONDS = 10_000;

/** `{ found, fault, read, readAnew, readMore, forget }`: `found` is `{ items, hasMore }` with the newest first, null before it is known. */
export function talkList() {
  const [found, fault] = [signal(null), signal(null)];
  let [path, newest] = [null, 0];
  const ask = async (before) => {
    const mine = ++newest;
    try {
      const answer = await marketCall(before ? `${path}&before=${before}` : path);
      const items = await answer.json();
      if (mine !== newest) return;
      found.value = { items: [...(before ? found.value.items : []), ...items], hasMore: Boolean(answer.headers.get("link")) };
      fault.value = null;
    } catch (error) {
      if (mine === newest) fault.value = error;
    }
  };
  const read = (address, query = {}) => {
    const asked = `${address}?${new URLSearchParams({ limit: PAGE, ...query })}`;
    if (asked !== path) [path, found.value, fault.value] = [asked, null, null];
    return ask();
  };
  const forget = () => {
    newest++;
    [path, found.value, fault.value] = [null, null, null];
  };
  return { found, fault, read, forget, readAnew: () => (path ? ask() : undefined), readMore: () => ask(found.value.items.at(-1).id) };
}

/** The open talk with its messages; null before it is known. */
export const openTalk = signal(null);
export const talkFault = signal(null);

let openId = null;

export function showTalk(id) {
  if (openTalk.value?.id !== id) [openTalk.value, talkFault.value] = [null, null];
  openId = id;
  return readTalk();
}

export function leaveTalk() {
  [openId, openTalk.value, talkFault.value] = [null, null, null];
}

export async function readTalk() {
  const id = openId;
  if (id === null) return;
  try {
    take(await marketJson(`api/talks/${id}`));
    if (id === openId) talkFault.value = null;
  } catch (error) {
    if (id === openId) talkFault.value = error;
  }
}

export async function readEarlier() {
  const { id, messages } = openTalk.value;
  take(await marketJson(`api/talks/${id}?before=${messages[0].number}`));
}

/** `key` is the same when it is tried again: then it is written once. */
export const beginTalk = (path, body, key) => marketJson(path, { method: "POST", json: { body }, headers: { "Idempotency-Key": key } });
export const onceKey = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

export async function writeMessage(id, body, isDrafted, key) {
  take(await marketJson(`api/talks/${id}/messages`, { method: "POST", json: { body, is_drafted: isDrafted }, headers: { "Idempotency-Key": key } }));
}

export async function sendPicture(id, file) {
  const form = new FormData();
  form.append("file", file);
  take(await marketJson(`api/talks/${id}/pictures`, { method: "POST", body: form }));
}

export async function markAsRead({ id, num_messages }) {
  take(await marketJson(`api/talks/${id}/read`, { method: "PUT", json: { number: num_messages } }));
}

export async function reportMessage(id, number, reason) {
  const changed = await marketJson(`api/talks/${id}/messages/${number}/report`, { method: "POST", json: { reason } });
  const shown = openTalk.value;
  if (shown?.id === id) openTalk.value = { ...shown, messages: shown.messages.map((one) => (one.number === number ? changed : one)) };
}

export const draftAnswer = (id) => marketJson(`api/talks/${id}/draft`, { method: "POST" });

/** Until the returned function is called: what the other side of `role` writes is shown at once, in `lists`, too. */
export function followTalks(role, lists, hear = () => {}) {
  const readAnew = () => {
    readTalk();
    for (const list of lists) list.readAnew();
  };
  const stopHearing = listenToNotices((notice) => {
    if (!notice.talk_id || notice.role !== role) return;
    hear(notice, notice.talk_id === openId);
    readAnew();
  }, readAnew);
  const timer = setInterval(() => {
    if (document.hidden || !account.value) return;
    if (!isLive.value) readAnew();
    else if (isUnseen(openTalk.value)) readTalk(); // no news say that the other side has read
  }, ASK_MILLISECONDS);
  return () => {
    stopHearing();
    clearInterval(timer);
  };
}

const isUnseen = (talk) => talk?.messages.some((one) => one.side === talk.side && one.number > talk.read_by_other);

/** Answers may come in another order than they were asked for: what is there stays. */
function take(read) {
  const shown = openTalk.value;
  if (read.id !== openId) return;
  if (!shown || shown.id !== read.id) {
    openTalk.value = read;
    return;
  }
  const messages = new Map([...shown.messages, ...read.messages].map((one) => [one.number, one]));
  const newer = read.num_messages >= shown.num_messages ? read : shown;
  openTalk.value = { ...newer, read_by_other: Math.max(read.read_by_other, shown.read_by_other), messages: [...messages.values()].sort((one, other) => one.number - other.number) };
}
