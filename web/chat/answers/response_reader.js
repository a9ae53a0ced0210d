/** Reads events of responses into an answer: the same functions as `chat_reader.js`. */

import { cite } from "./sources.js";
import { isStep, takeItem } from "./steps.js";

const ENDS = { completed: "done", incomplete: "done", cancelled: "stopped", failed: "failed" };
const MAX_ITEM_BYTES = 256 * 1024;

export const responseReader = {
  isNamedByServer: true,
  path: "v1/responses",

  /** The server names a response in its first event: without it there is nothing to come back to. */
  resumePath(answer) {
    if (!answer.responseId) return null;
    if (answer.isWatched) return `v1/stream/${encodeURIComponent(answer.responseId)}`; // the only path that read tokens open
    const after = answer.cursor >= 0 ? `&starting_after=${answer.cursor}` : "";
    return `v1/responses/${encodeURIComponent(answer.responseId)}?stream=true${after}`;
  },

  resumeHeaders(answer) {
    return answer.isWatched && answer.cursor >= 0 ? { "Last-Event-ID": `${answer.responseId}:${answer.cursor}` } : {};
  },

  stopPath(answer) {
    return answer.responseId ? `v1/responses/${encodeURIComponent(answer.responseId)}/cancel` : null;
  },

  indexOf(event) {
    const index = event.id === null ? NaN : Number(event.id.slice(event.id.lastIndexOf(":") + 1));
    return Number.isInteger(index) ? index : null;
  },

  /** Takes one event into the answer. Returns true if it was the last. */
  read(answer, event, now) {
    if (event.data === "[DONE]") return true;
    const data = JSON.parse(event.data);
    const kind = data.type ?? (data.error ? "error" : "");
    if (kind === "error") {
      const { message, code = null } = data.error ?? data;
      Object.assign(answer, { status: "failed", error: { message, code } });
      return true;
    }
    if (data.response) readResponse(answer, data.response);
    if (kind in READERS) READERS[kind](answer, data, now);
    const name = kind.replace("response.", "");
    if (!(name in ENDS)) return false;
    end(answer, name, data.response);
    return true;
  },
};

const READERS = {
  "response.output_item.added": (answer, { item }) => { if (isStep(item)) takeItem(answer.steps, item, false); },
  "response.output_item.done": (answer, { item }) => {
    if (isStep(item)) takeItem(answer.steps, item, true);
    keepItem(answer, item);
  },
  "response.output_text.delta": (answer, { delta, logprobs }, now) => {
    answer.firstTokenAt ??= now;
    if (answer.reasoning) answer.reasoningEndedAt ??= now;
    answer.text += delta;
    if (!logprobs?.length) return;
    answer.logprobs ??= [];
    answer.logprobs.push(...logprobs.map((one) => ({ token: one.token, logprob: one.logprob, top: (one.top_logprobs ?? []).map(({ token, logprob }) => ({ token, logprob })) })));
  },
  "response.output_text.annotation.added": (answer, { annotation }) => cite(answer, annotation),
  "response.content_part.added": (answer, { part }) => {
    // Text after a call begins a paragraph of its own.
    if (part.type === "output_text" && answer.text && !answer.text.endsWith("\n\n")) answer.text += "\n\n";
  },
  "response.reasoning_text.delta": readReasoning,
  "response.reasoning_summary_text.delta": readReasoning,
  "response.mcp_call_arguments.delta": readArguments,
  "response.function_call_arguments.delta": readArguments,
  "response.custom_tool_call_input.delta": readArguments,
};

function readReasoning(answer, { delta }, now) {
  answer.firstTokenAt ??= now;
  answer.reasoning += delta;
}

function readArguments(answer, { item_id: id, delta }) {
  const step = answer.steps.find((one) => one.id === id);
  // A call that was approved has its arguments from the request.
  if (step && !step.approvalId) step.arguments += delta;
}

function readResponse(answer, response) {
  answer.responseId = response.id;
  if (response.model) answer.model = response.model;
  if (response.usage) {
    const { input_tokens: prompt, output_tokens: completion, total_tokens: total, input_tokens_details: input } = response.usage;
    answer.usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total, prompt_tokens_details: { cached_tokens: input?.cached_tokens ?? 0 } };
  }
}

function end(answer, name, response) {
  answer.status = ENDS[name];
  if (name === "failed") answer.error = { message: response?.error?.message ?? name, code: response?.error?.code ?? null };
  answer.finishReason = name === "incomplete" ? (response?.incomplete_details?.reason === "max_output_tokens" ? "length" : "content_filter") : "stop";
}

/** What the next request sends back. An item that is huge stays out: the server has it in its own history. */
function keepItem(answer, item) {
  answer.items ??= [];
  if (item.type !== "reasoning" && JSON.stringify(item).length <= MAX_ITEM_BYTES) answer.items.push(item);
}
