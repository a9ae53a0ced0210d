/** The conversations of this browser: what is shown, and what one can do. Views read the signals and call the functions. */

import { batch, computed, signal } from "../../app/view.js";
import { readChoice, writeChoice } from "../../app/choices.js";
import { conversationHash, goTo, place } from "./address.js";
import { announce, onNews } from "./tabs.js";
import { branchOf, childrenOf, pathOf, selecting } from "./tree.js";
import { deleteAll, readAll, readMessagesOf, readOne, writeAll, writeOne, writeUnless } from "./storage.js";
import { titleOf } from "./titles.js";

const EMPTY_SETTINGS = {
  model: null, system: "", temperature: null, top_p: null, top_k: null, min_p: null, max_tokens: null, seed: null,
  reasoning_effort: null, schema: null, logprobs: false, mcpServers: [],
};

const MAX_STORING_MILLISECONDS = 10_000;

/** All conversations, the newest first. Objects are replaced, never changed. */
export const conversations = signal([]);
export const isLoaded = signal(false);
/** A chat that has no message yet. It is stored with its first. */
export const draft = signal(newConversation());

const openId = computed(() => (place.value.kind === "conversation" ? place.value.conversationId : null));
/** The conversation that is shown; undefined where the address names one that is not here. */
export const current = computed(() => (openId.value ? conversations.value.find((one) => [one.id, one.serverId].includes(openId.value)) : draft.value));
/** A conversation that the server keeps has an address that other browsers can open. */
export const addressIdOf = (conversation) => conversation.serverId ?? conversation.id;

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

export function newId(kind) {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return `${kind}-${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_")}`;
}

export function newConversation() {
  const now = Date.now();
  return { id: newId("chat"), title: "", createdAt: now, updatedAt: now, rootIds: [], selected: {}, settings: lastSettings(), place: "browser" };
}

/** A new chat begins with the model and the sampling of the last one. */
function lastSettings() {
  try {
    return { ...EMPTY_SETTINGS, ...JSON.parse(readChoice("chat.settings", "{}")) };
  } catch {
    return { ...EMPTY_SETTINGS };
  }
}

export async function loadConversations() {
  const all = await readAll("conversations");
  conversations.value = all.sort((a, b) => b.updatedAt - a.updatedAt);
  isLoaded.value = true;
}

/** Reads the messages of the conversation that the address names. */
export async function loadMessages() {
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

export function changeConversation(id, change) {
  if (draft.peek().id === id) {
    draft.value = { ...draft.peek(), ...change };
    if (change.settings) rememberSettings(change.settings);
    return;
  }
  const before = conversations.peek().find((one) => one.id === id);
  if (!before) return;
  const after = { ...before, ...change };
  conversations.value = conversations.peek().map((one) => (one.id === id ? after : one)).sort((a, b) => b.updatedAt - a.updatedAt);
  if (change.settings) rememberSettings(change.settings);
  return writeOne("conversations", after).then(() => announce({ conversationId: id }));
}

function rememberSettings(settings) {
  const { system, schema, mcpServers, ...kept } = settings;
  writeChoice("chat.settings", JSON.stringify(kept));
}

/** The draft becomes a conversation when it gets its first message. */
async function kept(conversation, text) {
  if (conversations.peek().some((one) => one.id === conversation.id)) return conversation;
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
  const first = messages[0];
  const stored = await kept(conversation, first.text);
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

/** Stores a message. An answer that another tab has read further stays as it is there. */
export function saveMessage(message) {
  const isFurther = (stored) => message.answer && stored.answer && stored.answer.sessionId === message.answer.sessionId && stored.answer.cursor > message.answer.cursor;
  return writeUnless("messages", message, isFurther);
}

/** Called with a conversation of which another branch is shown, or a part is gone. */
export const pathListeners = new Set();

/** Shows the branch that has this message. */
export async function selectMessage(message) {
  const conversation = conversations.peek().find((one) => one.id === message.conversationId);
  await changeConversation(conversation.id, { selected: selecting(conversation.selected, message) });
  for (const listener of pathListeners) listener(conversation);
}

const blobsOf = (id) => messageOf(id).attachments.map((one) => one.blobId).filter(Boolean);

/** Called with the ids of messages that are deleted. */
export const messagesDeleted = new Set();

export async function deleteMessage(message) {
  const ids = branchOf(tree.peek(), message.id);
  for (const listener of messagesDeleted) listener(ids);
  // A question that was edited shares its pictures with the one before.
  const left = new Set([...held.keys()].filter((id) => !ids.includes(id)).flatMap(blobsOf));
  const blobs = ids.flatMap(blobsOf).filter((id) => !left.has(id));
  batch(() => {
    ids.forEach((id) => held.delete(id));
    revision.value += 1;
  });
  await deleteAll("messages", ids);
  await deleteAll("blobs", blobs);
  const conversation = conversations.peek().find((one) => one.id === message.conversationId);
  if (!conversation) return;
  await changeConversation(conversation.id, { rootIds: conversation.rootIds.filter((id) => !ids.includes(id)) });
  for (const listener of pathListeners) listener(conversation);
}

/** Called with a conversation that is deleted. */
export const deleted = new Set();

export async function deleteConversation(id) {
  const conversation = conversations.peek().find((one) => one.id === id);
  const messages = await readMessagesOf(id);
  if (current.peek()?.id === id) goTo("#/");
  conversations.value = conversations.peek().filter((one) => one.id !== id);
  for (const listener of deleted) listener(conversation);
  for (const listener of messagesDeleted) listener(messages.map((one) => one.id));
  await deleteAll("messages", messages.map((one) => one.id));
  await deleteAll("blobs", messages.flatMap((one) => one.attachments.map((attachment) => attachment.blobId)).filter(Boolean));
  await deleteAll("conversations", [id]);
  announce({ conversationId: id });
}

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

/** The tab that asked learns first what a response is called. */
const isSameAnswer = (shown, stored) => Boolean(shown) && shown.sessionId === stored?.sessionId && (shown.responseId ?? null) === (stored.responseId ?? shown.responseId ?? null);

/** Another tab has changed something: reads it anew. Answers that grow here keep what they have. */
onNews(async ({ conversationId }) => {
  const stored = await readOne("conversations", conversationId);
  const others = conversations.peek().filter((one) => one.id !== conversationId);
  conversations.value = stored ? [stored, ...others].sort((a, b) => b.updatedAt - a.updatedAt) : others;
  if (heldFor.peek() !== conversationId) return;
  const messages = await readMessagesOf(conversationId);
  const ids = new Set(messages.map((one) => one.id));
  // What was just asked here may not be stored yet.
  const gone = [...held.keys()].filter((id) => !ids.has(id) && Date.now() - messageOf(id).createdAt > MAX_STORING_MILLISECONDS);
  // An answer that is read here would store a message that was deleted there.
  for (const listener of messagesDeleted) listener(gone);
  batch(() => {
    for (const id of gone) held.delete(id);
    for (const message of messages) {
      const shown = held.get(message.id);
      if (!shown) held.set(message.id, signal(message));
      else if (!isSameAnswer(shown.peek().answer, message.answer)) shown.value = message;
    }
    revision.value += 1;
  });
});
