/** Conversations that the server keeps, through /v1/conversations: the messages that are shown are its items. */

import { toast } from "../../design/components.js";
import { ApiError, call, getJson, postJson } from "../../app/api.js";
import { t } from "../../app/words.js";
import { conversationHash, goTo } from "../conversations/address.js";
import { onAnswered } from "../answers/answering.js";
import { isRunning } from "../answers/run_answer.js";
import { addServerMessages, changeConversation, conversations, current, deleted, pathListeners, takeConversation } from "../conversations/conversations.js";
import { chatRequestOf, MissingFile } from "../answers/request.js";
import { contentOf, messagesOf } from "./server_items.js";
import { readAll, readMessagesOf, readOne, writeAll } from "../conversations/storage.js";
import { childrenOf, pathOf } from "../conversations/tree.js";

const PAGE = 100;
const MAX_PAGES = 50;
const MAX_ADDED = 20;

const find = (id) => conversations.peek().find((one) => one.id === id);

export function keepOnServer(conversation) {
  return alone(conversation.id, async () => {
    const before = await stored(conversation.id);
    if (before?.place !== "browser") return; // another tab was first
    try {
      await copied(before);
      toast(t("chat.server.kept"), "server");
    } catch (fault) {
      sayFailed(fault);
    }
  });
}

/** Creates a copy at the server. The conversation says that it has one when all is there. */
async function copied(conversation) {
  const { id } = await create(conversation);
  const copy = { ...conversation, serverId: id, serverItems: [] };
  try {
    await push(copy, (serverItems) => { copy.serverItems = serverItems; });
  } catch (fault) {
    await call(`v1/conversations/${id}`, { method: "DELETE" }).catch(() => {});
    throw fault;
  }
  const isShown = current.peek()?.id === conversation.id;
  const storing = changeConversation(conversation.id, { place: "server", serverId: id, serverItems: copy.serverItems });
  if (isShown) goTo(conversationHash(id), { replace: true });
  await storing;
}

function sayFailed(fault) {
  if (!(fault instanceof ApiError) && !(fault instanceof MissingFile)) throw fault;
  toast(t("chat.server.failed", { message: fault.message }), "circle-alert");
}

export function keepInBrowser({ id }) {
  return alone(id, async () => {
    const conversation = await stored(id);
    if (conversation?.place !== "server") return;
    try {
      await deleteIfThere(`v1/conversations/${conversation.serverId}`);
    } catch (fault) {
      sayFailed(fault);
      return;
    }
    if (current.peek()?.id === id) goTo(conversationHash(id), { replace: true });
    await changeConversation(id, { place: "browser", serverId: undefined, serverItems: undefined });
    toast(t("chat.server.removed"));
  });
}

/** Opens a conversation that this browser has not yet, unless another tab has just done so. Throws an ApiError. */
export function openFromServer(serverId) {
  return alone(serverId, async () => {
    const known = (await readAll("conversations")).find((one) => one.serverId === serverId);
    if (known) return takeConversation(known, [], serverId);
    const { metadata } = await getJson(`v1/conversations/${encodeURIComponent(serverId)}`);
    const items = await itemsOf(serverId);
    const { conversation, messages, blobs } = messagesOf(serverId, metadata?.title ?? "", items);
    await writeAll("blobs", blobs);
    return takeConversation(conversation, messages, serverId);
  });
}

/** Takes what other browsers have added since. */
export function refresh({ id }) {
  return alone(id, async () => takeAdded(await stored(id)));
}

async function takeAdded(conversation) {
  if (conversation?.place !== "server") return;
  const known = new Set((conversation.serverItems ?? []).map((one) => one.itemId));
  const items = await itemsOf(conversation.serverId);
  const added = items.filter((one) => !known.has(one.id));
  const stillThere = (conversation.serverItems ?? []).every((one) => items.some((item) => item.id === one.itemId));
  if (!added.length || !stillThere) return;
  const { messages, blobs, serverItems } = messagesOf(conversation.serverId, "", added, conversation.id);
  if (!messages.length || !find(conversation.id)) return;
  messages[0].parentId = (conversation.serverItems ?? []).at(-1)?.messageId ?? null;
  await writeAll("blobs", blobs);
  await addServerMessages(find(conversation.id), messages, [...(conversation.serverItems ?? []), ...serverItems]);
}

async function create(conversation) {
  return postJson("v1/conversations", { metadata: { app: "tis-chat", title: conversation.title.slice(0, 500) } });
}

async function itemsOf(serverId) {
  const items = [];
  let after = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = new URLSearchParams({ order: "asc", limit: PAGE, "include[]": "message.input_image.image_url", ...(after && { after }) });
    const { data, has_more: hasMore, last_id: last } = await getJson(`v1/conversations/${encodeURIComponent(serverId)}/items?${query}`);
    items.push(...data);
    if (!hasMore) break;
    after = last;
  }
  return items;
}

/** Makes the items what is shown: those of another branch are deleted, new messages are added. `keep` gets what is there, after each step. */
async function push(conversation, keep) {
  const messages = await readMessagesOf(conversation.id);
  const byId = new Map(messages.map((one) => [one.id, one]));
  const shown = pathOf(childrenOf(messages), conversation.selected).map((id) => byId.get(id)).filter((one) => !isRunning(one.answer));
  const sizes = shown.map((one) => ({ messageId: one.id, size: (one.answer?.text ?? one.text).length }));
  let items = conversation.serverItems ?? [];
  let same = 0;
  while (same < items.length && same < sizes.length && items[same].messageId === sizes[same].messageId && items[same].size === sizes[same].size) same += 1;
  const base = `v1/conversations/${conversation.serverId}`;
  while (items.length > same) {
    await deleteIfThere(`${base}/items/${encodeURIComponent(items.at(-1).itemId)}`);
    await keep((items = items.slice(0, -1)));
  }
  for (let at = same; at < shown.length; at += MAX_ADDED) {
    const part = shown.slice(at, at + MAX_ADDED);
    const sent = await Promise.all(part.map(async (one) => ({ type: "message", role: one.role, content: await contentOf(one, conversation, chatRequestOf) })));
    const { data } = await postJson(`${base}/items`, { items: sent });
    await keep((items = [...items, ...data.map((item, number) => ({ itemId: item.id, ...sizes[at + number] }))]));
  }
}

async function deleteIfThere(path) {
  try {
    await call(path, { method: "DELETE" });
  } catch (fault) {
    if (fault.status !== 404) throw fault;
  }
}

/** One change at a time, in all tabs, or two would add the same. Where pages are not https there are no locks. */
let pushing = Promise.resolve();

function alone(id, work) {
  if (navigator.locks) return navigator.locks.request(`tis-push-${id}`, work);
  pushing = pushing.then(work, work);
  return pushing;
}

/** As it is stored: another tab may have just changed it. */
const stored = (id) => readOne("conversations", id);

function pushSoon(id) {
  return alone(id, async () => {
    const conversation = await stored(id);
    if (conversation?.place !== "server") return;
    try {
      await push(conversation, (serverItems) => changeConversation(id, { serverItems }));
    } catch (fault) {
      // The server forgets conversations that nobody uses for long: this browser has a copy.
      if (!find(id)) return; // it was deleted meanwhile
      if (fault.status === 404) await copied(conversation).catch(sayFailed);
      else sayFailed(fault);
    }
  });
}

export async function renameOnServer(conversation) {
  if (conversation.place !== "server") return;
  await call(`v1/conversations/${conversation.serverId}`, { method: "POST", json: { metadata: { app: "tis-chat", title: conversation.title.slice(0, 500) } } }).catch(() => {});
}

onAnswered((conversation) => pushSoon(conversation.id));
pathListeners.add((conversation) => pushSoon(conversation.id));
deleted.add((conversation) => {
  if (conversation.place === "server") call(`v1/conversations/${conversation.serverId}`, { method: "DELETE" }).catch(() => {});
});
