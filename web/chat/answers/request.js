/** The bodies of POST /v1/chat/completions and /v1/responses, of the messages of a path, their attachments and the settings. */

import { t } from "../../app/words.js";
import { dataUrlOf, documentText, startOf } from "../conversations/stored_attachments.js";

/** Settings that have the name of their parameter. What is null or absent has the model's default. */
const SAMPLING = ["temperature", "top_p", "top_k", "min_p", "seed", "repetition_penalty", "presence_penalty", "frequency_penalty"];
const NUM_ALTERNATIVES = 5;
const MEDIA_KINDS = ["image", "video", "audio"];
const SHOWN_MEDIA = "…";

/** MCP servers ask for approvals, which only responses can. */
export function usesResponses(conversation) {
  return (conversation.settings?.mcpServers ?? []).length > 0;
}

/** `path`: the messages from the first to the one that is to be answered, or to an answer that is to be continued. */
export async function chatRequestOf(conversation, path, { sessionId } = {}) {
  const settings = settingsFor(conversation, path);
  const continues = path.at(-1)?.role === "assistant";
  return {
    ...(settings.model ? { model: settings.model } : {}),
    messages: await chatMessages(settings.system, path, sentUrlOf),
    stream: true,
    stream_options: { include_usage: true },
    ...(sessionId ? { session_id: sessionId } : {}),
    ...sampling(settings),
    ...(has(settings.max_tokens) ? { max_tokens: settings.max_tokens } : {}),
    ...(settings.reasoning_effort ? { reasoning_effort: settings.reasoning_effort } : {}),
    ...(settings.schema ? { response_format: { type: "json_schema", json_schema: { name: nameOf(settings.schema), schema: settings.schema } } } : {}),
    ...(settings.logprobs ? { logprobs: true, top_logprobs: NUM_ALTERNATIVES } : {}),
    ...(continues ? { continue_final_message: true, add_generation_prompt: false } : {}),
  };
}

/** After an approval the path ends with the answer that asked for it: its items have what the user said. */
export async function responseRequestOf(conversation, path, _options = {}) {
  const settings = settingsFor(conversation, path);
  return {
    ...(settings.model ? { model: settings.model } : {}),
    ...(settings.system?.trim() ? { instructions: settings.system } : {}),
    input: await responseInput(path, sentUrlOf),
    stream: true,
    ...sampling(settings),
    ...(has(settings.max_tokens) ? { max_output_tokens: settings.max_tokens } : {}),
    ...(settings.reasoning_effort ? { reasoning: { effort: settings.reasoning_effort } } : {}),
    ...(settings.schema ? { text: { format: { type: "json_schema", name: nameOf(settings.schema), schema: settings.schema } } } : {}),
    ...(settings.logprobs ? { include: ["message.output_text.logprobs"], top_logprobs: NUM_ALTERNATIVES } : {}),
    tools: (settings.mcpServers ?? []).map(mcpTool),
  };
}

/** What is kept of a request beside its answer: all but the messages, which the conversation has. */
export function keptOf({ messages, input, ...kept }) {
  return messages?.[0]?.role === "system" ? { ...kept, instructions: messages[0].content } : kept;
}

/** The request of an answer as the user may read it: `path` is that of the request, the bytes of media are left out. */
export async function shownRequestOf(answer, path) {
  const { model, ...kept } = answer.request;
  const named = model ? { model } : {};
  if (answer.api === "responses") return { ...named, ...kept, input: await responseInput(path, shownUrlOf) };
  const { instructions = "", ...rest } = kept;
  return { ...named, messages: await chatMessages(instructions, path, shownUrlOf), ...rest };
}

/** A question may have settings of its own, which those after it do not have. */
function settingsFor(conversation, path) {
  return { ...conversation.settings, ...path.findLast((one) => one.role === "user")?.settings };
}

async function chatMessages(system, path, urlOf) {
  const messages = system?.trim() ? [{ role: "system", content: system }] : [];
  for (const message of path) messages.push(message.role === "user" ? await userMessage(message, chatMedia, urlOf) : assistantMessage(message));
  return messages;
}

async function responseInput(path, urlOf) {
  const input = [];
  for (const message of path) {
    if (message.role === "user") input.push(await userMessage(message, responseMedia, urlOf, "input_text"));
    else input.push(...answerItems(message));
  }
  return input;
}

function mcpTool(server) {
  return {
    type: "mcp",
    server_label: server.label,
    server_url: server.url,
    require_approval: server.approval === "never" ? "never" : "always",
    ...(server.allowedTools?.length ? { allowed_tools: server.allowedTools } : {}),
  };
}

function sampling(settings) {
  return Object.fromEntries(SAMPLING.filter((name) => has(settings[name])).map((name) => [name, settings[name]]));
}

const has = (value) => value !== null && value !== undefined && value !== "";

function nameOf(schema) {
  return (schema.title ?? "answer").replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, 64) || "answer";
}

async function userMessage(message, mediaPart, urlOf, textType = "text") {
  const attachments = message.attachments ?? [];
  if (!attachments.length) return { role: "user", content: message.text };
  const parts = [];
  for (const attachment of attachments) {
    if (MEDIA_KINDS.includes(attachment.kind)) parts.push(mediaPart(attachment.kind, await urlOf(attachment), attachment));
    else parts.push({ type: textType, text: documentText(attachment) });
  }
  if (message.text) parts.push({ type: textType, text: message.text });
  return { role: "user", content: parts };
}

function chatMedia(kind, url, attachment) {
  if (kind === "image") return { type: "image_url", image_url: { url } };
  if (kind === "video") return { type: "video_url", video_url: { url } };
  return audioPart(url, attachment);
}

function responseMedia(kind, url, attachment) {
  if (kind === "image") return { type: "input_image", image_url: url };
  if (kind === "video") return { type: "input_video", video_url: url };
  return audioPart(url, attachment);
}

function audioPart(url, attachment) {
  return { type: "input_audio", input_audio: { data: url.slice(url.indexOf(",") + 1), format: (attachment.type.split("/")[1] ?? "wav").replace(/;.*/, "") } };
}

function assistantMessage({ text, answer }) {
  return { role: "assistant", content: answer?.text ?? text ?? "", ...(answer?.reasoning ? { reasoning_content: answer.reasoning } : {}) };
}

function answerItems({ text, answer }) {
  const items = answer?.items?.filter((item) => item.type !== "reasoning");
  if (!items?.length) return answer?.text ?? text ? [{ role: "assistant", content: answer?.text ?? text }] : [];
  return items;
}

/** Its message is in words for the user. */
export class MissingFile extends Error {}

async function sentUrlOf(attachment) {
  const url = await dataUrlOf(attachment);
  if (!url) throw new MissingFile(t("chat.file.gone", { name: attachment.name }));
  return url;
}

const shownUrlOf = (attachment) => `${startOf(attachment)}${SHOWN_MEDIA}`;
