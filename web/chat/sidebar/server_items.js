/** Messages as items of /v1/conversations, and back. */

import { newAnswer } from "../answers/run_answer.js";
import { newConversation, newId } from "../conversations/conversations.js";
import { blobOf } from "../conversations/stored_attachments.js";

const MAX_TITLE = 200;

/** The content of an item: what the request for this message would say, in the words of the Responses API. */
export async function contentOf(message, conversation, requestOf) {
  if (message.role === "assistant") return [{ type: "output_text", text: message.answer.text }];
  const settings = { ...conversation.settings, system: "" };
  const { messages } = await requestOf({ ...conversation, settings }, [message], { sessionId: newId("s") });
  const { content } = messages.at(-1);
  if (typeof content === "string") return [{ type: "input_text", text: content }];
  return content.map(partOf).filter(Boolean);
}

function partOf(part) {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "image_url") return { type: "input_image", image_url: part.image_url.url, detail: "auto" };
  return null;
}

/** A conversation with messages in a line; `blobs` are its pictures, `serverItems` which item is which message. */
export function messagesOf(serverId, title, items, conversationId = null) {
  const fresh = newConversation();
  const id = conversationId ?? fresh.id;
  const messages = [];
  const blobs = [];
  const serverItems = [];
  const start = Date.now() - items.length;
  for (const item of items) {
    if (item.type !== "message" || !["user", "assistant"].includes(item.role)) continue;
    const content = Array.isArray(item.content) ? item.content : [];
    const text = content.map((part) => part.text ?? "").filter(Boolean).join("\n\n");
    const attachments = content.map((part) => attachmentOf(part, blobs)).filter(Boolean);
    const message = {
      id: newId("msg"), conversationId: id, parentId: messages.at(-1)?.id ?? null, role: item.role, createdAt: start + messages.length,
      text, attachments, answer: item.role === "assistant" ? finished(text) : null,
    };
    messages.push(message);
    serverItems.push({ itemId: item.id, messageId: message.id, size: text.length });
  }
  const rootIds = messages.slice(0, 1).map((one) => one.id);
  const conversation = { ...fresh, id, title: title.slice(0, MAX_TITLE) || messages[0]?.text.slice(0, 60) || "", rootIds, place: "server", serverId, serverItems };
  return { conversation, messages, blobs, serverItems };
}

function finished(text) {
  return { ...newAnswer("chat", newId("s")), status: "done", finishReason: "stop", text, startedAt: null };
}

function attachmentOf(part, blobs) {
  const blob = blobOf(part.image_url ?? "");
  if (!blob) return null;
  const blobId = newId("blob");
  blobs.push({ id: blobId, blob });
  return { id: newId("att"), kind: "image", name: "", type: blob.type, bytes: blob.size, blobId, text: null, width: null, height: null, seconds: null };
}
