/** The conversation that is shown: its messages, and what one can do with them. Views read the signals and call the functions. */

import { batch, computed, signal } from "../../app/view.js";
import { conversationHash, goTo } from "./address.js";
import { addressIdOf, changeConversation, conversationOf, conversations, current, draft, listRead, newConversation, newId, showConversations, storeSettings } from "./conversation_list.js";
import { blobsOf, change, deleteAll, deleteWhole, readMessagesOf, readOne, writeAll, writeOne } from "./storage.js";
import { announce, onNews } from "./tabs.js";
import { titleOf } from "./titles.js";
import { branchOf, childrenOf, pathOf, selecting } from "./tree.js";

export { addressIdOf, changeConversation, conversations, current, draft, isLoaded, loadConversations, newConversation, newId } from "./conversation_list.js";

/** Messages of the conversation that is shown: id to a signal, so that a growing answer draws itself only. */
const held = new Map();
const heldFor = signal("");
const revision = signal(0);

export const tree = computed(() => {
  revision.value;
  return childrenOf([...held.values()].map((one) => one.peek()));
});
export const path = computed(() => (current.value ? pathOf(tree.value, current.value.selected) : []));
export const areMessagesLoaded = computed(() => heldFor.value === (current.value?.id ?? ""));

export const messageSignal = (id) => held.get(id);
export const messageOf = (id) => held.get(id)?.peek();
export const messagesById = () => new Map([...held].map(([id, one]) => [id, one.peek()]));

/** Ids of the answers that this page reads from the server: what it has of them is newer than what is stored. */
export const growing = new Set();

/** News wait for it, as for the list. */
let messagesRead = Promise.resolve();

/** Reads the messages of the conversation that the address names. */
export function loadMessages() {
  messagesRead = readShown();
  return messagesRead;
}

async function readShown() {
  const conversation = current.value;
  if (!conversation || heldFor.peek() === conversation.id) return;
  const messages = conversations.peek().includes(conversation) ? await readMessagesOf(conversation.id) : [];
  if (current.peek()?.id !== conversation.id) return;
  batch(() => {
    held.clear();
    for (const message of messages) held.set(message.id, signal(message));
    heldFor.value = conversation.id;
    revision.value += 1;
  });
}

/** The draft becomes a conversation when it gets its first message. */
async function kept(conversation, text) {
  const known = conversationOf(conversation.id);
  if (known) return known;
  storeSettings();
  const stored = { ...conversation, title: titleOf(text), createdAt: Date.now(), updatedAt: Date.now() };
  batch(() => {
    conversations.value = [stored, ...conversations.peek()];
    held.clear();
    heldFor.value = stored.id;
    draft.value = newConversation();
    goTo(conversationHash(stored.id));
  });
  await writeOne("conversations", stored);
  return stored;
}

/** Adds messages below each other and shows them. The conversation is the one that is shown, or the draft. */
export async function addMessages(conversation, messages) {
  const stored = await kept(conversation, messages[0].text);
  let { selected } = stored;
  for (const message of messages) selected = selecting(selected, message);
  const rootIds = [...stored.rootIds, ...messages.filter((one) => !one.parentId).map((one) => one.id)];
  batch(() => {
    if (heldFor.peek() === stored.id) for (const message of messages) held.set(message.id, signal(message));
    revision.value += 1;
    changeConversation(stored.id, { selected, rootIds, updatedAt: Date.now() });
  });
  await writeAll("messages", messages);
  announce({ conversationId: stored.id });
  return stored;
}

export function newMessage(conversation, role, parentId, more = {}) {
  return { id: newId("msg"), conversationId: conversation.id, parentId, role, createdAt: nextTime(), text: "", attachments: [], answer: null, ...more };
}

let lastTime = 0;

/** Two messages of one moment keep their order. */
function nextTime() {
  lastTime = Math.max(Date.now(), lastTime + 1);
  return lastTime;
}

/** Shows a message as it is now. */
export function showMessage(message) {
  const shown = held.get(message.id);
  if (shown) shown.value = message;
}

/** Stores an answer as far as it is. False if its message is deleted, be it by another tab. */
export async function saveMessage(message) {
  return Boolean(await change("messages", message, (stored) => (isFurther(stored.answer, message.answer) ? null : message)));
}

/** Another tab has read the same answer further, or begun the next one in its place. */
function isFurther(stored, answer) {
  if (stored.sessionId === answer.sessionId && stored.cursor === answer.cursor) return stored.endedAt !== null && answer.wasLost; // it knows the times
  if (stored.sessionId === answer.sessionId) return stored.cursor > answer.cursor;
  return stored.startedAt > answer.startedAt;
}

/**
 * Replaces the answer of a message by `make(answer)` of the stored one; null if another tab was first. Shows what is
 * there then, and returns it: undefined if it was deleted.
 */
export async function changeAnswer(message, make) {
  const after = await change("messages", message, (stored) => {
    const answer = make(stored.answer);
    return answer && { ...stored, answer };
  });
  if (after) showMessage(after);
  announce({ conversationId: message.conversationId });
  return after;
}

/** Called with a conversation of which another branch is shown, or a part is gone. */
export const pathListeners = new Set();

/** Shows the branch that has this message. */
export async function selectMessage(message) {
  const conversation = conversationOf(message.conversationId);
  await changeConversation(conversation.id, { selected: selecting(conversation.selected, message) });
  for (const listener of pathListeners) listener(conversation);
}

/** Called with ids of messages that are deleted, here or in another tab. */
export const messagesDeleted = new Set();
/** Called with the id of a conversation that is deleted, here or in another tab. */
export const conversationGone = new Set();

export async function deleteMessage(message) {
  const ids = branchOf(tree.peek(), message.id);
  // A question that was edited shares its pictures with the one before.
  const left = new Set([...held.keys()].filter((id) => !ids.includes(id)).flatMap((id) => blobsOf(messageOf(id))));
  const blobs = ids.flatMap((id) => blobsOf(messageOf(id))).filter((id) => !left.has(id));
  drop(ids);
  await deleteAll("messages", ids);
  await deleteAll("blobs", blobs);
  announce({ conversationId: message.conversationId, deletedIds: ids });
  const conversation = conversationOf(message.conversationId);
  if (!conversation) return;
  await changeConversation(conversation.id, { rootIds: conversation.rootIds.filter((id) => !ids.includes(id)) });
  for (const listener of pathListeners) listener(conversation);
}

function drop(ids) {
  for (const listener of messagesDeleted) listener(ids);
  batch(() => {
    ids.forEach((id) => held.delete(id));
    revision.value += 1;
  });
}

/** Called with a conversation that is deleted by the user of this tab. */
export const deleted = new Set();

export async function deleteConversation(id) {
  const conversation = conversationOf(id);
  await dropConversation(id);
  for (const listener of deleted) listener(conversation);
  announce({ conversationId: id, isDeleted: true });
}

/** True if it was the one that is shown. */
async function dropConversation(id) {
  const isShown = current.peek()?.id === id;
  for (const listener of conversationGone) listener(id);
  if (isShown) goTo("#/", { replace: true });
  conversations.value = conversations.peek().filter((one) => one.id !== id);
  await deleteWhole(id);
  return isShown;
}

/** Called when the conversation that is shown was deleted in another tab. */
export const shownDeleted = new Set();

/** Takes a conversation with its messages that came from a file or from the server. */
export async function takeConversation(conversation, messages, addressId = conversation.id) {
  await writeAll("messages", messages);
  await writeOne("conversations", conversation);
  conversations.value = [conversation, ...conversations.peek().filter((one) => one.id !== conversation.id)];
  if (heldFor.peek() === conversation.id) heldFor.value = "";
  announce({ conversationId: conversation.id });
  goTo(conversationHash(addressId), { replace: addressId !== conversation.id });
  await loadMessages();
}

/** Messages that another browser has added at the server. */
export async function addServerMessages(conversation, messages, serverItems) {
  await addMessages(conversation, messages);
  await changeConversation(conversation.id, { serverItems });
}

/** Another tab has changed something: reads it anew. */
onNews(async ({ conversationId, isDeleted = false, deletedIds = [] }) => {
  await listRead;
  await messagesRead.catch(() => {});
  if (isDeleted) {
    if (await dropConversation(conversationId)) for (const listener of shownDeleted) listener();
    return;
  }
  await storeSettings();
  const stored = await readOne("conversations", conversationId);
  if (stored) showAnew(stored);
  // An answer that is read here would store a message that was deleted there.
  if (deletedIds.length) drop(deletedIds);
  if (heldFor.peek() !== conversationId) return;
  const messages = await readMessagesOf(conversationId);
  if (heldFor.peek() !== conversationId) return;
  batch(() => {
    for (const message of messages) {
      const shown = held.get(message.id);
      if (!shown) held.set(message.id, signal(message));
      else if (!isBehind(message.answer, shown.peek().answer) && !(growing.has(message.id) && isSameAnswer(shown.peek().answer, message.answer))) shown.value = message;
    }
    revision.value += 1;
  });
});

/** The conversation that is shown may have another address now: the server keeps it, or does no longer. */
function showAnew(stored) {
  const isShown = current.peek()?.id === stored.id;
  batch(() => {
    showConversations([stored, ...conversations.peek().filter((one) => one.id !== stored.id)]);
    if (isShown && current.peek()?.id !== stored.id) goTo(conversationHash(addressIdOf(stored)), { replace: true });
  });
}

/** While the database was read, the answer that is shown may have grown, ended, or been replaced by the next. */
const isBehind = (stored, shown) => Boolean(stored && shown) && (stored.sessionId === shown.sessionId ? stored.cursor < shown.cursor : stored.startedAt < shown.startedAt);

/** The tab that asked learns first what a response is called. */
const isSameAnswer = (shown, stored) => Boolean(shown) && shown.sessionId === stored?.sessionId && (shown.responseId ?? null) === (stored.responseId ?? shown.responseId ?? null);
