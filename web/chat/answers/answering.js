/** What one does with answers: ask, ask again, edit, go on, stop. Keeps the runs that read from the server. */

import { signal } from "../../app/view.js";
import { conversationHash, goTo } from "../conversations/address.js";
import { addMessages, addressIdOf, changeAnswer, conversationGone, conversations, growing, messageOf, messagesById, messagesDeleted, newId, newMessage, showMessage } from "../conversations/conversations.js";
import { AnswerWriter } from "./answer_writer.js";
import { AnswerRun, isRunning, newAnswer } from "./run_answer.js";
import { chatRequestOf, keptOf, responseRequestOf, shownRequestOf, usesResponses } from "./request.js";
import { Speaker } from "./said.js";
import { decided, waitingForApproval } from "./steps.js";
import { storedAttachments } from "../conversations/stored_attachments.js";
import { lineTo } from "../conversations/tree.js";

/** A browser has six connections to a server, and a stop needs one. */
const MAX_RUNS = 4;
/** A question that never reached the server is not asked again by itself a day later. */
const LONGEST_REQUEST = 3_600_000;
const MAX_NAMING_MILLISECONDS = 20_000;
/** An answer that began so shortly ago is read as it is written, in whichever tab. */
const LIVE_MILLISECONDS = 3000;

/** Runs by the id of their message. */
const runs = new Map();
/** Called with a conversation and its answered message. */
const afterAnswer = new Set();
/** The ids of conversations in which an answer is being written. */
export const answeringIn = signal(new Set());

export const onAnswered = (listener) => afterAnswer.add(listener);

/** Sends a message below the last one that is shown. `settings` hold for this question alone. */
export async function send(conversation, parentId, { text, attachments = [], settings }) {
  const question = newMessage(conversation, "user", parentId, { text, attachments: await storedAttachments(attachments), ...(settings ? { settings } : {}) });
  const answered = newMessage(conversation, "assistant", question.id, { answer: freshAnswer(conversation) });
  const stored = await addMessages(conversation, [question, answered]);
  beginOnce(stored, answered);
  goTo(conversationHash(addressIdOf(stored), answered.answer.sessionId), { replace: true });
}

/** Asks the same question again: a branch beside the answer. */
export function regenerate(conversation, message) {
  return answerQuestion(conversation, messageOf(message.parentId));
}

export async function answerQuestion(conversation, question) {
  const again = newMessage(conversation, "assistant", question.id, { answer: freshAnswer(conversation) });
  await addMessages(conversation, [again]);
  beginOnce(conversation, again);
  goTo(conversationHash(addressIdOf(conversation), again.answer.sessionId), { replace: true });
}

/** Another wording of a question: a branch beside it. */
export function edit(conversation, message, text) {
  return send(conversation, message.parentId, { text, attachments: message.attachments, settings: message.settings });
}

/** Goes on with an answer that was cut: the model continues its last message. */
export function continueAnswer(conversation, message) {
  const { text, reasoning, reasoningEndedAt, usage } = message.answer;
  const base = { text, reasoning, tokens: usage?.completion_tokens ?? null, thoughtMilliseconds: thoughtMilliseconds(message.answer) };
  const next = { ...newAnswer("chat", newId("s"), base), reasoningEndedAt, isContinued: true };
  return replace(conversation, message, (stored) => (stored.sessionId === message.answer.sessionId && !isRunning(stored) ? next : null));
}

/** The user approves or refuses a call. When all that wait are decided, the same answer goes on. */
export function decide(conversation, message, step, isApproved) {
  return replace(conversation, message, (stored) => {
    const said = decided(stored, step.id, isApproved);
    if (said === stored || waitingForApproval(said).length) return said === stored ? null : said;
    const { text, reasoning, steps, items, cited = [] } = said;
    const base = { text, reasoning, steps, items, cited, thoughtMilliseconds: thoughtMilliseconds(said) };
    return { ...newAnswer("responses", newId("s"), base), steps: [...steps], items: [...items], cited: [...cited], isContinued: true };
  });
}

/** In two tabs the first one wins: it alone makes the request. */
async function replace(conversation, message, make) {
  let made = null;
  const after = await changeAnswer(message, (stored) => (made = make(stored)));
  if (!after || !made || !isRunning(made)) return;
  begin(conversation, after);
  goTo(conversationHash(addressIdOf(conversation), made.sessionId), { replace: true });
}

/** Reads on an answer whose connection was given up. */
export function resume(conversation, message) {
  return replace(conversation, message, (stored) => (isRunning(stored) ? null : { ...stored, status: "reconnecting", error: null, endedAt: null }));
}

export function stop(message) {
  const held = runs.get(message.id);
  if (held) return held.run.stop();
  // Nobody reads it here any more: it is over for the reader.
  return changeAnswer(message, (stored) => (isRunning(stored) ? { ...stored, status: "stopped", wait: null } : null));
}

/** The request of an answer, to show. */
export function requestToShow(message) {
  const { answer } = message;
  const path = lineTo(messagesById(), answer.isContinued ? message.id : message.parentId);
  // The answer has grown since: it was continued from its base.
  return shownRequestOf(answer, path.map((one) => (one.id === message.id ? { ...one, answer: answer.base } : one)));
}

const thoughtMilliseconds = ({ base, reasoningEndedAt, firstTokenAt }) => base?.thoughtMilliseconds ?? (reasoningEndedAt && firstTokenAt ? reasoningEndedAt - firstTokenAt : null);

/** Answers that ran when the page was left, or that run in another tab: reads them on. */
export function resumeRunning(conversation, messages) {
  for (const message of messages) {
    const held = runOf(message);
    if (held) showMessage(held.writer.message());
    else if (isRunning(message.answer) && !isBegunElsewhere(message.answer)) begin(conversation, message, { isOwn: false });
  }
}

/** The tab that asked says what the response is called as soon as the server does. */
const isBegunElsewhere = (answer) => answer.api === "responses" && !answer.responseId && Date.now() - answer.startedAt < MAX_NAMING_MILLISECONDS;

function freshAnswer(conversation) {
  return newAnswer(usesResponses(conversation) ? "responses" : "chat", newId("s"));
}

/** The message may have been begun when it was shown, and may even have ended. */
function beginOnce(conversation, message) {
  const shown = messageOf(message.id) ?? message;
  if (isRunning(shown.answer)) begin(conversation, shown);
}

/**
 * A response has no id of ours, so a second request would be a second response, with calls of tools of its own: the tab
 * where the user asked alone may send it (`isOwn`). Chats attach to the answer that their session has.
 */
function begin(conversation, message, { isOwn = true } = {}) {
  if (runOf(message)) return;
  if (runs.size >= MAX_RUNS) leaveOldest();
  const answer = { ...message.answer };
  const line = lineTo(messagesById(), answer.isContinued ? message.id : message.parentId);
  const age = Date.now() - answer.startedAt;
  const writer = new AnswerWriter(message, answer, () => drop(message.id));
  const speaker = new Speaker(message.conversationId);
  const run = new AnswerRun(answer, {
    requestOf: age > LONGEST_REQUEST || (answer.api === "responses" && !isOwn) ? null : () => requestOf(conversation, line, answer),
    isLive: answer.status === "waiting" && (isOwn || age < LIVE_MILLISECONDS),
    onChange: () => {
      speaker.heed(answer.wait);
      writer.change();
    },
    onEnd: () => {
      unlist(message.id);
      writer.finish();
      speaker.say(answer.status);
      const stored = conversations.peek().find((one) => one.id === conversation.id);
      if (stored) for (const listener of afterAnswer) listener(stored, writer.message());
    },
  });
  runs.set(message.id, { run, writer });
  growing.add(message.id);
  showRuns();
  speaker.say("running");
  writer.change();
  run.run();
}

/** The run of this answer. One of another answer in its place is left: another tab has begun the next. */
function runOf(message) {
  const held = runs.get(message.id);
  if (!held || held.writer.answer.sessionId === message.answer?.sessionId) return held;
  forget(message.id).leave();
  return undefined;
}

/** An answer that is left goes on at the server; it is read on when its conversation is opened again. */
function leaveOldest() {
  const [id, { run, writer }] = runs.entries().next().value;
  run.leave();
  writer.save();
  unlist(id);
}

/** Returns the run, which shows and stores nothing any more. */
function forget(id) {
  const { run, writer } = runs.get(id);
  writer.forget();
  unlist(id);
  return run;
}

/** The message is deleted. */
function drop(id) {
  if (runs.has(id)) forget(id).drop();
}

function unlist(id) {
  runs.delete(id);
  growing.delete(id);
  showRuns();
}

function showRuns() {
  answeringIn.value = new Set([...runs.values()].map(({ writer }) => writer.base.conversationId));
}

messagesDeleted.add((ids) => ids.forEach(drop));
conversationGone.add((conversationId) => {
  for (const [id, { writer }] of [...runs]) if (writer.base.conversationId === conversationId) drop(id);
});

async function requestOf(conversation, line, answer) {
  const make = answer.api === "responses" ? responseRequestOf : chatRequestOf;
  const body = await make(conversation, line, { sessionId: answer.sessionId });
  answer.request = keptOf(body);
  return body;
}

addEventListener("pagehide", () => { for (const { writer } of runs.values()) writer.save(); });
