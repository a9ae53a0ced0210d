/** Shows an answer at most once a frame, and stores it about once a second. */

import { batch } from "../../app/view.js";
import { messageOf, saveMessage, showMessage } from "../conversations/conversations.js";
import { announce } from "../conversations/tabs.js";

const SAVE_MILLISECONDS = 800;
const HIDDEN_FRAME_MILLISECONDS = 400;

export class AnswerWriter {
  /** `onGone()` comes when the message turns out to be deleted. */
  constructor(message, answer, onGone) {
    Object.assign(this, { base: message, answer, onGone });
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

  /** The message is deleted, or another answer has taken its place: nothing shows or stores this one again. */
  forget() {
    this.isForgotten = true;
    this.stopTimers();
  }

  async save() {
    clearTimeout(this.saveTimer);
    this.saveTimer = 0;
    if (this.isForgotten) return;
    this.hasSaved = true;
    const { responseId } = this.answer;
    const isNews = responseId && responseId !== this.announcedId;
    this.announcedId = responseId;
    if (!(await saveMessage(snapshotOf(this.message())))) this.onGone();
    else if (isNews) announce({ conversationId: this.base.conversationId });
  }

  async finish() {
    this.stopTimers();
    batch(() => showMessage(this.message()));
    await this.save();
    announce({ conversationId: this.base.conversationId });
  }

  stopTimers() {
    clearTimeout(this.saveTimer);
    if (this.isFrame) cancelAnimationFrame(this.frame);
    else clearTimeout(this.frame);
    this.frame = this.saveTimer = 0;
  }
}

/** Its lists grow while the database is waited for: beside an older cursor their ends would be read twice. */
function snapshotOf(message) {
  const copied = (value) => (Array.isArray(value) ? value.map((one) => (one && typeof one === "object" ? { ...one } : one)) : value);
  return { ...message, answer: Object.fromEntries(Object.entries(message.answer).map(([name, value]) => [name, copied(value)])) };
}
