/** Conversations as files: Markdown of what is shown, JSON of all branches with their files; and back. Nothing here touches the page. */

import { newConversation, newId } from "./conversations.js";
import { readMessagesOf } from "./storage.js";
import { blobOf, dataUrlOf, documentText } from "./stored_attachments.js";
import { childrenOf, pathOf } from "./tree.js";
import { titleOf } from "./titles.js";

export const MAX_IMPORT_BYTES = 96 * 2 ** 20;
const MAX_MEDIA_TEXT = 80 * 2 ** 20; // of all files of a conversation, in base64
const MAX_MESSAGES = 5000;
const MAX_ATTACHMENTS = 20;
const MEDIA = ["image", "audio", "video"];
const MAX_TEXT = 2 ** 21;
const FORMAT = "tis-chat/1";

/** Its message is the name of a text in web/messages. */
export class ImportError extends Error {}

export async function exportConversation(conversation, kind) {
  const messages = await readMessagesOf(conversation.id);
  const text = kind === "json" ? await jsonOf(conversation, messages) : markdownOf(conversation, messages);
  const name = (conversation.title || "chat").replace(/[^\p{L}\p{N} _-]+/gu, "").trim().slice(0, 60) || "chat";
  saveFile(`${name}.${kind === "json" ? "json" : "md"}`, text, kind === "json" ? "application/json" : "text/markdown");
}

async function jsonOf(conversation, messages) {
  const { serverId, serverItems, ...kept } = conversation;
  const room = { left: MAX_MEDIA_TEXT };
  const written = [];
  for (const message of messages) written.push({ ...message, attachments: await withData(message.attachments, room) });
  return JSON.stringify({ format: FORMAT, conversation: { ...kept, place: "browser" }, messages: written }, null, 2);
}

/** What there is no room for is named only. */
async function withData(attachments, room) {
  const found = [];
  for (const { blobId, ...attachment } of attachments) {
    const url = blobId && attachment.bytes * 4 <= room.left * 3 ? await dataUrlOf({ ...attachment, blobId }) : null;
    room.left -= url?.length ?? 0;
    found.push(url ? { ...attachment, data: url } : attachment);
  }
  return found;
}

export function markdownOf(conversation, messages) {
  const byId = new Map(messages.map((one) => [one.id, one]));
  const shown = pathOf(childrenOf(messages), conversation.selected).map((id) => byId.get(id));
  const parts = shown.map((one) => `## ${one.role === "user" ? "User" : "Assistant"}\n\n${textWithDocuments(one).trim()}`);
  return `# ${conversation.title}\n\n${parts.join("\n\n")}\n`;
}

function textWithDocuments({ text, answer, attachments }) {
  const documents = attachments.filter((one) => one.kind === "document").map(documentText);
  return [...documents, answer?.text ?? text].join("\n");
}

export function importedOf(text, fileName = "") {
  if (/\.(md|markdown)$/i.test(fileName)) return ofMarkdown(text);
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    throw new ImportError("chat.import.no_json");
  }
  return ofJson(document);
}

function ofJson(document) {
  const { conversation, messages } = document ?? {};
  if (document?.format !== FORMAT || !isObject(conversation) || !Array.isArray(messages)) throw new ImportError("chat.import.unknown");
  if (!messages.length || messages.length > MAX_MESSAGES) throw new ImportError("chat.import.messages");
  const taken = newConversation();
  const ids = new Map(messages.map((one) => [one?.id, newId("msg")]));
  const made = messages.map((one, at) => messageOf(one, at, taken.id, ids));
  if (hasCircle(made)) throw new ImportError("chat.import.unknown");
  const selected = Object.entries(isObject(conversation.selected) ? conversation.selected : {})
    .filter(([parent, child]) => (parent === "" || ids.has(parent)) && ids.has(child))
    .map(([parent, child]) => [parent && ids.get(parent), ids.get(child)]);
  const rootIds = made.filter((one) => !one.parentId).map((one) => one.id);
  const title = textOf(conversation.title, 200) || titleOf(made[0].text);
  const settings = { ...taken.settings, system: textOf(conversation.settings?.system) };
  return { conversation: { ...taken, title, rootIds, selected: Object.fromEntries(selected), settings }, messages: made };
}

/** Takes the fields it knows, each checked: a file may come from anywhere. */
function messageOf(one, at, conversationId, ids) {
  if (!isObject(one) || !["user", "assistant"].includes(one.role)) throw new ImportError("chat.import.unknown");
  if (one.parentId !== null && !ids.has(one.parentId)) throw new ImportError("chat.import.unknown");
  const made = {
    id: ids.get(one.id), conversationId, parentId: one.parentId === null ? null : ids.get(one.parentId), role: one.role,
    createdAt: Number.isFinite(one.createdAt) ? one.createdAt : Date.now() + at, text: textOf(one.text), attachments: attachmentsOf(one.attachments), answer: null,
  };
  if (one.role === "assistant") made.answer = answerOf(isObject(one.answer) ? one.answer : {}, made.text);
  return made;
}

function attachmentsOf(given) {
  if (!Array.isArray(given)) return [];
  return given.slice(0, MAX_ATTACHMENTS).filter(isObject).map((one) => (one.kind === "document" ? documentOf(one) : mediaOf(one))).filter(Boolean);
}

function documentOf(one) {
  const text = textOf(one.text);
  return { id: newId("att"), kind: "document", name: textOf(one.name, 200) || "text", type: "text/plain", bytes: text.length, text, blobId: null };
}

/** Its `blob` is stored by who takes the message. */
function mediaOf(one) {
  const blob = MEDIA.includes(one.kind) && typeof one.data === "string" ? blobOf(one.data) : null;
  if (!blob?.type.startsWith(one.kind)) return null;
  return { id: newId("att"), kind: one.kind, name: textOf(one.name, 200) || one.kind, type: blob.type, bytes: blob.size, blobId: null,
    width: positive(one.width), height: positive(one.height), seconds: positive(one.seconds), blob };
}

function answerOf(answer, text) {
  const time = (value) => (Number.isFinite(value) ? value : null);
  const usage = isObject(answer.usage) && Number.isFinite(answer.usage.completion_tokens) ? { completion_tokens: answer.usage.completion_tokens, prompt_tokens: Number(answer.usage.prompt_tokens) || 0 } : null;
  return {
    api: "chat", sessionId: newId("s"), cursor: -1, status: "done", base: { text: "", reasoning: "" }, text: textOf(answer.text) || text,
    reasoning: textOf(answer.reasoning), steps: [], finishReason: textOf(answer.finishReason, 40) || "stop", usage, error: null,
    model: textOf(answer.model, 200) || null, request: null, startedAt: time(answer.startedAt), firstTokenAt: time(answer.firstTokenAt),
    endedAt: time(answer.endedAt), reasoningEndedAt: time(answer.reasoningEndedAt), logprobs: null, wait: null,
  };
}

function ofMarkdown(given) {
  const text = given.replace(/\r\n?/g, "\n");
  const [, title = ""] = text.match(/^# (.*)\n/) ?? [];
  const parts = text.split(/^## (User|Assistant)\n/m).slice(1);
  if (parts.length < 2 || parts.length / 2 > MAX_MESSAGES) throw new ImportError("chat.import.messages");
  const messages = [];
  for (let at = 0; at < parts.length; at += 2) {
    messages.push({ id: String(at), parentId: at ? String(at - 2) : null, role: parts[at].toLowerCase(), createdAt: Date.now() + at, text: parts[at + 1].trim() });
  }
  return ofJson({ format: FORMAT, conversation: { title }, messages });
}

function hasCircle(messages) {
  const parents = new Map(messages.map((one) => [one.id, one.parentId]));
  const rooted = new Set([null]);
  for (const { id } of messages) {
    const seen = [];
    let at = id;
    while (!rooted.has(at)) {
      if (seen.length > messages.length) return true;
      seen.push(at);
      at = parents.get(at);
    }
    seen.forEach((one) => rooted.add(one));
  }
  return false;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const positive = (value) => (Number.isFinite(value) && value > 0 ? value : null);
const textOf = (value, most = MAX_TEXT) => (typeof value === "string" ? value.slice(0, most) : "");

function saveFile(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
