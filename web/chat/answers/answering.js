/** What one does with answers: ask, ask again, edit, go on, stop. Keeps the runs that read from the server. */

import { batch, signal } from "../../app/view.js";
import { conversationHash, goTo } from "../conversations/address.js";
import { addMessages, addressIdOf, conversations, messageOf, messagesById, messagesDeleted, newId, newMessage, saveMessage, showMessage } from "../conversations/conversations.js";
import { AnswerRun, isRunning, newAnswer } from "./run_answer.js";
import { decided, waitingForApproval } from "./steps.js";
import { chatRequestOf, responseRequestOf, usesResponses, withoutMedia } from "./request.js";
import { storedAttachments } from "../conversations/stored_attachments.js";
import { announce } from "../conversations/tabs.js";
import { lineTo } from "../conversations/tree.js";

const SAVE_MILLISECONDS = 800;
const HIDDEN_FRAME_MILLISECONDS = 400;
/** A browser has six connections to a server, and a stop needs one. */
const MAX_RUNS = 4;
/** A question that never reached the server is not asked again by itself a day later. */
const LONGEST_REQUEST = 3_600_000;
const MAX_NAMING_MILLISECONDS = 20_000;

/** Runs by the id of their message. */
const runs = new Map();
/** Called with a conversation and its answered message. */
const afterAnswer = new Set();
/** What a screen reader hears: the beginning and the end of an answer. */
export const said = signal("");
/** The ids of conversations in which an answer is being written. */
export const answeringIn = signal(new Set());

export const onAnswered = (listener) => afterAnswer.add(listener);

/** Sends a message below the last one that is shown. */
export async function send(conversation, parentId, { text, attachments = [] }) {
  const question = newMessage(conversation, "user", parentId, { text, attachments: await storedAttachments(attachments) });
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
  return send(conversation, message.parentId, { text, attachments: message.attachments });
}

/** Goes on with an answer that was cut: the model continues its last message. */
export function continueAnswer(conversation, message) {
  const { text, reasoning, reasoningEndedAt } = message.answer;
  const answer = { ...newAnswer("chat", newId("s"), { text, reasoning }), reasoningEndedAt, isContinued: true };
  const next = { ...message, answer };
  showMessage(next);
  begin(conversation, next);
  goTo(conversationHash(addressIdOf(conversation), answer.sessionId), { replace: true });
}

/** The user approves or refuses a call. When all that wait are decided, the same answer goes on. */
export function decide(conversation, message, step, isApproved) {
  const before = decided(message.answer, step.id, isApproved);
  if (waitingForApproval(before).length) {
    showMessage({ ...message, answer: before });
    return saveMessage({ ...message, answer: before });
  }
  const { text, reasoning, steps, items, cited = [], firstTokenAt } = before;
  const answer = { ...newAnswer("responses", newId("s"), { text, reasoning, steps, items, cited }), steps: [...steps], items: [...items], cited: [...cited], firstTokenAt, isContinued: true };
  const next = { ...message, answer };
  showMessage(next);
  begin(conversation, next);
  return goTo(conversationHash(conversation.id, answer.sessionId), { replace: true });
}

/** Reads on an answer whose connection was given up. */
export function resume(conversation, message) {
  const next = { ...message, answer: { ...message.answer, status: "reconnecting", error: null, endedAt: null } };
  begin(conversation, next);
}

export function stop(message) {
  const held = runs.get(message.id);
  if (held) return held.run.stop();
  // Nobody reads it here any more: it is over for the reader.
  const next = { ...message, answer: { ...message.answer, status: "stopped", wait: null, endedAt: message.answer.endedAt ?? Date.now() } };
  showMessage(next);
  return saveMessage(next);
}

/** Answers that ran when the page was left, or that run in another tab: reads them on. */
export function resumeRunning(conversation, messages) {
  for (const message of messages) {
    if (runs.has(message.id)) showMessage(runs.get(message.id).writer.message());
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
  if (runs.has(message.id)) return;
  if (runs.size >= MAX_RUNS) leaveOldest();
  const answer = { ...message.answer };
  const line = lineTo(messagesById(), answer.isContinued ? message.id : message.parentId);
  const isOld = Date.now() - answer.startedAt > LONGEST_REQUEST;
  const writer = new AnswerWriter(message, answer);
  const run = new AnswerRun(answer, {
    requestOf: isOld || (answer.api === "responses" && !isOwn) ? null : () => requestOf(conversation, line, answer),
    onChange: () => writer.change(),
    onEnd: () => {
      runs.delete(message.id);
      showRuns();
      writer.finish();
      said.value = answer.status;
      const stored = conversations.peek().find((one) => one.id === conversation.id);
      if (stored) for (const listener of afterAnswer) listener(stored, writer.message());
    },
  });
  runs.set(message.id, { run, writer });
  showRuns();
  said.value = "running";
  writer.change();
  run.run();
}

/** An answer that is left goes on at the server; it is read on when its conversation is opened again. */
function leaveOldest() {
  const [id, { run, writer }] = runs.entries().next().value;
  run.leave();
  writer.save();
  runs.delete(id);
}

function showRuns() {
  answeringIn.value = new Set([...runs.values()].map(({ writer }) => writer.base.conversationId));
}

messagesDeleted.add((ids) => {
  for (const id of ids) {
    runs.get(id)?.writer.forget();
    runs.get(id)?.run.stop();
  }
});

async function requestOf(conversation, line, answer) {
  const make = answer.api === "responses" ? responseRequestOf : chatRequestOf;
  const body = await make(conversation, line, { sessionId: answer.sessionId });
  answer.request = withoutMedia(body);
  return body;
}

/** Shows an answer at most once a frame, and stores it about once a second. */
class AnswerWriter {
  constructor(message, answer) {
    this.base = message;
    this.answer = answer;
    this.frame = 0;
    this.saveTimer = 0;
  }

  message() {
    const shown = messageOf(this.base.id) ?? this.base;
    return { ...shown, text: this.answer.text, answer: { ...this.answer } };
  }

  change() {
    if (!this.frame) {
      const draw = () => { this.frame = 0; showMessage(this.message()); };
      this.frame = document.hidden ? setTimeout(draw, HIDDEN_FRAME_MILLISECONDS) : requestAnimationFrame(draw);
      this.isFrame = !document.hidden;
    }
    const isFirst = !this.hasSaved && Boolean(this.answer.text || this.answer.reasoning); // a reload at the first word goes on behind it
    if (isFirst || (this.answer.responseId && this.answer.responseId !== this.announcedId)) this.save();
    else this.saveTimer ||= setTimeout(() => this.save(), SAVE_MILLISECONDS);
  }

  /** The message is deleted: nothing stores it again. */
  forget() {
    this.isForgotten = true;
  }

  async save() {
    clearTimeout(this.saveTimer);
    this.saveTimer = 0;
    if (this.isForgotten) return;
    this.hasSaved = true;
    const { responseId } = this.answer;
    const isNews = responseId && responseId !== this.announcedId;
    this.announcedId = responseId;
    await saveMessage(this.message()).catch(() => {});
    if (isNews) announce({ conversationId: this.base.conversationId });
  }

  async finish() {
    if (this.isFrame) cancelAnimationFrame(this.frame);
    else clearTimeout(this.frame);
    batch(() => showMessage(this.message()));
    await this.save();
    announce({ conversationId: this.base.conversationId });
  }
}

addEventListener("pagehide", () => { for (const { writer } of runs.values()) writer.save(); });
