/** The body of a request, made of the messages of a path. */

const SAMPLING = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "reasoning_effort"];

export async function chatRequestOf(conversation, path, { sessionId }) {
  const { settings } = conversation;
  const messages = path.map((message) => ({ role: message.role, content: message.answer?.text ?? message.text }));
  if (settings.system) messages.unshift({ role: "system", content: settings.system });
  const body = { messages, stream: true, stream_options: { include_usage: true }, session_id: sessionId };
  if (settings.model) body.model = settings.model;
  for (const name of SAMPLING) if (settings[name] !== null && settings[name] !== undefined) body[name] = settings[name];
  return body;
}

export const responseRequestOf = chatRequestOf;
