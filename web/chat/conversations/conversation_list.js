/** The list of conversations, which of them is shown, and the draft of the next one. */

import { computed, signal } from "../../app/view.js";
import { readChoice, writeChoice } from "../../app/choices.js";
import { place } from "./address.js";
import { change as changeStored, readAll, readOne } from "./storage.js";
import { announce } from "./tabs.js";

const EMPTY_SETTINGS = {
  model: null, system: "", temperature: null, top_p: null, top_k: null, min_p: null, max_tokens: null, seed: null,
  reasoning_effort: null, schema: null, logprobs: false, mcpServers: [],
};
/** A slider changes its setting with each step. */
const SETTINGS_MILLISECONDS = 400;
const LEFT = "chat.settings.left";

/** All conversations, the newest first. Objects are replaced, never changed. */
export const conversations = signal([]);
export const isLoaded = signal(false);
let listIsRead;
/** News that come before wait for it: the list that is being read may be older than they are. */
export const listRead = new Promise((resolve) => { listIsRead = resolve; });
/** A chat that has no message yet. It is stored with its first. */
export const draft = signal(newConversation());

const openId = computed(() => (place.value.kind === "conversation" ? place.value.conversationId : null));
/** The conversation that is shown; undefined where the address names one that is not here. */
export const current = computed(() => (openId.value ? conversations.value.find((one) => [one.id, one.serverId].includes(openId.value)) : draft.value));
/** A conversation that the server keeps has an address that other browsers can open. */
export const addressIdOf = (conversation) => conversation.serverId ?? conversation.id;

export const conversationOf = (id) => conversations.peek().find((one) => one.id === id);

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
  await storeLeftSettings().catch(reportError);
  showConversations(await readAll("conversations"));
  isLoaded.value = true;
  listIsRead();
}

export function showConversations(all) {
  conversations.value = [...all].sort((a, b) => b.updatedAt - a.updatedAt);
}

/** What changes is stored at once, settings alone a moment later. */
export async function changeConversation(id, change) {
  if (change.settings) storeSettingsSoon(id, change.settings);
  if (draft.peek().id === id) {
    draft.value = { ...draft.peek(), ...change };
    return;
  }
  if (!conversationOf(id)) return;
  showConversations(conversations.peek().map((one) => (one.id === id ? { ...one, ...change } : one)));
  const { settings, ...rest } = change;
  if (Object.keys(rest).length) await store(id, rest);
}

async function store(id, change) {
  const known = conversationOf(id);
  if (!known) return;
  await changeStored("conversations", known, (stored) => ({ ...stored, ...change }));
  announce({ conversationId: id });
}

/** Id of a conversation to its settings that are not stored yet. */
const waiting = new Map();
let timer = 0;

function storeSettingsSoon(id, settings) {
  waiting.set(id, settings);
  timer ||= setTimeout(storeSettings, SETTINGS_MILLISECONDS);
}

export function storeSettings() {
  clearTimeout(timer);
  timer = 0;
  const all = [...waiting];
  waiting.clear();
  if (all.length) rememberSettings(all.at(-1)[1]);
  return Promise.all(all.map(([id, settings]) => store(id, { settings })));
}

/** A page that goes away has no time to finish a transaction: the next one does. */
function leaveSettings() {
  if (!waiting.size) return;
  writeChoice(LEFT, JSON.stringify([...waiting]));
  storeSettings().then(() => writeChoice(LEFT, null));
}

async function storeLeftSettings() {
  const text = readChoice(LEFT, "[]");
  writeChoice(LEFT, null); // what cannot be read is gone, and the chat begins
  const left = JSON.parse(text);
  for (const [id, settings] of left) {
    const known = await readOne("conversations", id);
    if (known) await changeStored("conversations", known, (stored) => ({ ...stored, settings }));
  }
}

addEventListener("pagehide", leaveSettings);
document.addEventListener("visibilitychange", () => { if (document.hidden) leaveSettings(); });

function rememberSettings(settings) {
  const { system, schema, mcpServers, ...kept } = settings;
  writeChoice("chat.settings", JSON.stringify(kept));
}
