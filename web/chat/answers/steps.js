/** The steps of an answer (calls of MCP servers, functions, searches), as items of a response become and change them. */

const MAX_STEPS = 200;
const MAX_OUTPUT = 200_000;
const KINDS = {
  mcp_list_tools: "list",
  mcp_call: "mcp",
  mcp_approval_request: "mcp",
  function_call: "function",
  custom_tool_call: "function",
  web_search_call: "search",
  file_search_call: "search",
  compaction: "compaction",
};

export function newStep(id, more = {}) {
  return { id, kind: "function", server: "", name: "", arguments: "", status: "running", output: null, error: null, approvalId: null, ...more };
}

export const isStep = (item) => item.type in KINDS;

/** What an item says about its step; an item that comes again (added, then done) changes the same one. */
export function takeItem(steps, item, isDone) {
  let step = steps.find((one) => one.id === item.id) ?? approvedStep(steps, item);
  if (!step) {
    if (steps.length >= MAX_STEPS) return null;
    step = newStep(item.id, { kind: KINDS[item.type] });
    steps.push(step);
  }
  step.id = item.id;
  if (item.server_label) step.server = item.server_label;
  if (item.name) step.name = item.name;
  if (item.arguments || item.input) step.arguments = item.arguments || item.input;
  if (item.type === "mcp_approval_request") Object.assign(step, { status: "waiting_for_approval", approvalId: item.id });
  else if (isDone) end(step, item);
  return step;
}

/** In one answer a call that was approved takes the place of its request. */
function approvedStep(steps, item) {
  return item.approval_request_id ? steps.find((one) => one.approvalId === item.approval_request_id) : undefined;
}

function end(step, item) {
  if (item.type === "mcp_list_tools") step.output = (item.tools ?? []).map(({ name, description }) => (description ? `${name}: ${description.split("\n")[0]}` : name)).join("\n");
  if (typeof item.output === "string") step.output = item.output.slice(0, MAX_OUTPUT);
  if (item.error) step.error = typeof item.error === "string" ? item.error : item.error.message ?? JSON.stringify(item.error);
  step.status = step.error || item.status === "failed" || item.status === "incomplete" ? "failed" : "done";
}

export function waitingForApproval(answer) {
  return (answer.steps ?? []).filter((step) => step.status === "waiting_for_approval");
}

/** The answer with what the user said about a step. Its items tell the server with the next request. */
export function decided(answer, stepId, isApproved) {
  const step = answer.steps.find((one) => one.id === stepId);
  if (step?.status !== "waiting_for_approval") return answer;
  const said = { type: "mcp_approval_response", approval_request_id: step.approvalId, approve: isApproved };
  const steps = answer.steps.map((one) => (one === step ? { ...one, status: isApproved ? "approved" : "refused" } : one));
  return { ...answer, steps, items: [...(answer.items ?? []), said] };
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * JSON with line breaks, or the text itself. Nothing else changes: read and written anew, large numbers would be rounded
 * and doubled names be lost, and what one approves is what is sent.
 */
export function readable(text) {
  try {
    const value = JSON.parse(text);
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null) return text;
  } catch {
    return text;
  }
  let depth = 0;
  let before = "";
  let written = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(TOKENS)) {
    const isClosing = token === "}" || token === "]";
    const wasOpening = before === "{" || before === "[";
    if (isClosing) depth -= 1;
    if (isClosing ? !wasOpening : wasOpening || before === ",") written += line();
    if (token === "{" || token === "[") depth += 1;
    written += token === ":" ? ": " : token;
    before = token;
  }
  return written;
}
