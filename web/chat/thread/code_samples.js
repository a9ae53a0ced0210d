/** A request as a command or program that sends it again: curl, Python and JavaScript, each with its own quoting. */

/** What this page alone needs: the name of its recording, and words for a stream that others ask for in their own way. */
const OF_THE_PAGE = ["session_id", "stream", "stream_options"];
/** Parameters of OpenAI's clients; Python's refuses others unless they are in `extra_body`. */
const OPENAI_CHAT = "model messages temperature top_p max_tokens seed presence_penalty frequency_penalty reasoning_effort response_format logprobs top_logprobs tools".split(" ");
const OPENAI_RESPONSES = "model input instructions temperature top_p max_output_tokens reasoning text include top_logprobs tools".split(" ");

export const SAMPLES = ["curl", "python", "javascript"];

/** `base` ends in "/v1". Keys are placeholders. OpenAI's clients demand a model: `model` is that of a request without one. */
export function sampleOf(name, request, base, { needsKey = false, model = "default" } = {}) {
  const body = Object.fromEntries(Object.entries({ model, ...request }).filter(([key]) => !OF_THE_PAGE.includes(key)));
  const isResponse = "input" in body;
  return { curl: curlOf, python: pythonOf, javascript: javascriptOf }[name](body, base, isResponse, needsKey);
}

export function hasMedia(request) {
  return /"data:[^"]*,…"|"data":"…"/.test(JSON.stringify(request));
}

function curlOf(body, base, isResponse, needsKey) {
  const path = isResponse ? "responses" : "chat/completions";
  const key = needsKey ? ' \\\n  -H "Authorization: Bearer $API_KEY"' : "";
  return `curl -N ${base}/${path}${key} \\\n  -H "Content-Type: application/json" \\\n  -d ${shellQuoted(JSON.stringify({ ...body, stream: true }, null, 2))}`;
}

/** In single quotes nothing has a meaning but the quote itself. */
export function shellQuoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function pythonOf(body, base, isResponse, needsKey) {
  const known = isResponse ? OPENAI_RESPONSES : OPENAI_CHAT;
  const own = Object.entries(body).filter(([key]) => known.includes(key));
  const extra = Object.fromEntries(Object.entries(body).filter(([key]) => !known.includes(key)));
  const lines = own.map(([key, value]) => `    ${key}=${pythonValue(value, 1)},`);
  if (Object.keys(extra).length) lines.push(`    extra_body=${pythonValue(extra, 1)},`);
  const key = needsKey ? 'os.environ["API_KEY"]' : '"unused"';
  const start = `${needsKey ? "import os\n\n" : ""}from openai import OpenAI\n\nclient = OpenAI(base_url=${pythonValue(base, 0)}, api_key=${key})\n\n`;
  if (isResponse) return `${start}events = client.responses.create(\n${lines.join("\n")}\n    stream=True,\n)\nfor event in events:\n    if event.type == "response.output_text.delta":\n        print(event.delta, end="", flush=True)\n`;
  return `${start}chunks = client.chat.completions.create(\n${lines.join("\n")}\n    stream=True,\n)\nfor chunk in chunks:\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "", end="", flush=True)\n`;
}

const SHORT = 70;

/** A JSON value as Python writes it. Strings of JSON are strings of Python, as surrogates come in pairs. */
export function pythonValue(value, depth) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return pythonString(value);
  if (typeof value === "number") return String(value);
  const isList = Array.isArray(value);
  const parts = isList ? value.map((one) => pythonValue(one, depth + 1)) : Object.entries(value).map(([key, one]) => `${pythonString(key)}: ${pythonValue(one, depth + 1)}`);
  const [open, close] = isList ? "[]" : "{}";
  const flat = `${open}${parts.join(", ")}${close}`;
  if (flat.length <= SHORT && !flat.includes("\n")) return flat;
  const indent = "    ".repeat(depth + 1);
  return `${open}\n${parts.map((part) => `${indent}${part},`).join("\n")}\n${"    ".repeat(depth)}${close}`;
}

/** Everything that JSON escapes, Python reads the same way; a lone half of a pair stays an escape in both. */
function pythonString(text) {
  return JSON.stringify(text);
}

function javascriptOf(body, base, isResponse, needsKey) {
  const key = needsKey ? "process.env.API_KEY" : '"unused"';
  const start = `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${JSON.stringify(base)}, apiKey: ${key} });\n\n`;
  const parameters = javascriptValue({ ...body, stream: true });
  if (isResponse) return `${start}const events = await client.responses.create(${parameters});\nfor await (const event of events) {\n  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);\n}\n`;
  return `${start}const chunks = await client.chat.completions.create(${parameters});\nfor await (const chunk of chunks) {\n  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");\n}\n`;
}

/** JSON is JavaScript; names need no quotes where they are identifiers. */
function javascriptValue(value) {
  return JSON.stringify(value, null, 2).replace(/^(\s*)"([A-Za-z_$][\w$]*)":/gm, "$1$2:");
}
