/** Reads chunks of chat completions into an answer. `response_reader.js` has the same functions for responses. */

import { cite } from "./sources.js";

export const chatReader = {
  path: "v1/chat/completions",

  /** Where an answer goes on after its cursor. */
  resumePath(answer) {
    return `v1/stream/${encodeURIComponent(answer.sessionId)}`;
  },

  resumeHeaders(answer) {
    return answer.cursor >= 0 ? { "Last-Event-ID": `${answer.sessionId}:${answer.cursor}` } : {};
  },

  stopPath(answer) {
    return `v1/cancel/${encodeURIComponent(answer.sessionId)}`;
  },

  /** The number of an event, or null for those that are no part of the recording. */
  indexOf(event) {
    const index = event.id === null ? NaN : Number(event.id.slice(event.id.lastIndexOf(":") + 1));
    return Number.isInteger(index) ? index : null;
  },

  /** Takes one event into the answer. Returns true if it was the last. */
  read(answer, event, now) {
    if (event.data === "[DONE]") {
      if (answer.status !== "failed") answer.status = answer.isCancelled ? "stopped" : "done";
      return true;
    }
    const chunk = JSON.parse(event.data);
    if (chunk.error) {
      Object.assign(answer, { status: "failed", error: { message: chunk.error.message, code: chunk.error.code ?? null } });
      return true;
    }
    if (chunk.model) answer.model = chunk.model;
    if (chunk.usage) answer.usage = chunk.usage;
    const choice = chunk.choices?.[0];
    if (choice) readChoice(answer, choice, now);
    return false;
  },
};

function readChoice(answer, choice, now) {
  const delta = choice.delta ?? {};
  const reasoning = delta.reasoning_content ?? delta.reasoning ?? "";
  const text = (delta.content ?? "") + (delta.refusal ?? "");
  if (reasoning || text) answer.firstTokenAt ??= now;
  if (reasoning) answer.reasoning += reasoning;
  if (text) {
    if (answer.reasoning) answer.reasoningEndedAt ??= now;
    answer.text += text;
  }
  for (const annotation of delta.annotations ?? []) cite(answer, annotation);
  for (const call of delta.mcp_calls ?? []) readCall(answer, call);
  if (choice.logprobs?.content) {
    answer.logprobs ??= [];
    answer.logprobs.push(...choice.logprobs.content.map(logprobOf));
  }
  if (choice.finish_reason) {
    answer.finishReason = choice.finish_reason;
    if (choice.cancelled) answer.isCancelled = true;
  }
}

function logprobOf(one) {
  return { token: one.token, logprob: one.logprob, top: (one.top_logprobs ?? []).map(({ token, logprob }) => ({ token, logprob })) };
}

/** A call that the server makes at an MCP server: one delta announces it, another ends it. */
function readCall(answer, call) {
  const id = `call-${call.index ?? answer.steps.length}`;
  let step = answer.steps.find((one) => one.id === id);
  if (!step) {
    step = { id, kind: "mcp", server: "", name: "", arguments: "", status: "running", output: null, error: null, approvalId: null };
    answer.steps.push(step);
  }
  if (call.server_label) step.server = call.server_label;
  if (call.name) step.name = call.name;
  if (call.arguments) step.arguments = call.arguments;
  if (call.output !== undefined) step.output = call.output;
  if (call.error) step.error = typeof call.error === "string" ? call.error : JSON.stringify(call.error);
  if (call.status) step.status = call.status === "completed" ? "done" : "failed";
  else if (step.error) step.status = "failed";
}
