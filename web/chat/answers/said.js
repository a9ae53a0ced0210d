/** What a screen reader hears of the answer that is shown: its beginning and end, and that it is interrupted, once. */

import { signal } from "../../app/view.js";
import { current } from "../conversations/conversations.js";

/** A short gap is no news. */
const MIN_TRIES = 2;

/** A status, "busy" or "resumed"; the page has words for each. */
export const said = signal("");

export class Speaker {
  constructor(conversationId) {
    this.conversationId = conversationId;
    this.isInterrupted = false;
  }

  say(what) {
    if (current.peek()?.id === this.conversationId) said.value = what;
  }

  /** `wait` is that of the answer, null while it is read. */
  heed(wait) {
    if (!wait === !this.isInterrupted || (wait && wait.tries < MIN_TRIES)) return;
    this.isInterrupted = Boolean(wait);
    this.say(!wait ? "resumed" : wait.reason === "busy" ? "busy" : "reconnecting");
  }
}
