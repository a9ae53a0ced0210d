/**
 * One answer from its request to its end: begins it, reads it, and after a lost connection goes on behind the last event
 * it has. The server numbers all events and records them, so nothing is lost and nothing comes twice.
 */

import { ApiError, call } from "../../app/api.js";
import { ConnectionLost, eventsOf } from "../../app/event_stream.js";
import { cancel, cancelLater } from "./cancel.js";
import { chatReader } from "./chat_reader.js";
import { MissingFile } from "./request.js";
import { responseReader } from "./response_reader.js";
import { wait, waitOf, watched } from "./waits.js";

const READERS = { chat: chatReader, responses: responseReader };
const SILENCE_MILLISECONDS = 36_000;
/** A resume is answered at once; a connection that is dead since before a sleep answers never. */
const CONNECT_MILLISECONDS = 15_000;
const MOST_BUSY_TRIES = 30;
const LONGEST_OUTAGE = 30 * 60_000;
const ASLEEP_MILLISECONDS = 60_000;
/** A connection that held so long was a good one, even if the answer has not begun. */
const STEADY_MILLISECONDS = 20_000;
/** Statuses after which the same request may succeed: too many requests, a server that loads, ends or starts. */
const PASSING = new Set([408, 429, 502, 503, 504]);

export function newAnswer(api, sessionId, base = { text: "", reasoning: "" }) {
  return {
    api, sessionId, cursor: -1, status: "waiting", base, text: base.text, reasoning: base.reasoning, steps: [], finishReason: null,
    usage: null, error: null, model: null, request: null, startedAt: Date.now(), firstTokenAt: null, endedAt: null,
    reasoningEndedAt: null, logprobs: null, wait: null,
  };
}

/** An answer of somebody else, by the name that the server has for it: that of a session, or of a response. */
export function watchedAnswer(name) {
  if (!name.startsWith("resp_")) return newAnswer("chat", name);
  return { ...newAnswer("responses", name), responseId: name, isWatched: true };
}

export const isRunning = (answer) => ["waiting", "running", "reconnecting"].includes(answer?.status);

export class AnswerRun {
  /**
   * `requestOf()` makes the body of the first request; without it the run only reads what is recorded. `onChange()` comes
   * after each change of `answer`, `onEnd()` once. `token` is a read token, for those who have no key. `isLive`: what
   * comes is written now. The times of what is replayed are not known.
   */
  constructor(answer, { requestOf = null, onChange, onEnd, token = "", isLive = true }) {
    Object.assign(this, { answer, requestOf, onChange, onEnd, token });
    this.isLive = isLive && answer.cursor < 0;
    if (!this.isLive) answer.wasLost = true;
    this.reader = READERS[answer.api] ?? chatReader;
    this.controller = null;
    this.leaving = new AbortController();
    this.tries = 0;
    this.lostAt = null;
    this.connectedAt = null;
    this.isOrdered = false;
  }

  /** Runs until the answer ends, or until `leave()`. */
  async run() {
    while (!this.leaving.signal.aborted) {
      try {
        if (await this.readOnce()) return this.end();
        if (!this.lose("unreachable")) return this.end();
      } catch (fault) {
        if (this.leaving.signal.aborted) return;
        if (!this.takeFault(fault)) return this.end();
      }
      const { until } = this.answer.wait;
      this.onChange();
      await wait(until - Date.now(), { signal: this.leaving.signal, isHasty: !this.isOrdered });
      if (Date.now() - until > ASLEEP_MILLISECONDS) this.lostAt = Date.now(); // the sleep of a laptop is no outage
    }
  }

  /** The page goes away, or another place is shown: the answer goes on at the server. */
  leave() {
    this.leaving.abort();
    this.controller?.abort("leave");
  }

  /** Nobody wants the answer any more: reads no further, and ends it at the server. */
  async drop() {
    this.hasEnded = true;
    this.leave();
    const path = this.reader.stopPath(this.answer);
    if (path && !(await cancel(path))) await cancelLater(path);
  }

  /** Ends the answer at the server. Its end comes through the stream, to all who read it. */
  async stop() {
    const { answer } = this;
    const path = this.reader.stopPath(answer);
    if (!path) {
      // The server has not named the response yet: there is nothing to cancel by name.
      answer.status = "stopped";
      this.leave();
      return this.end();
    }
    if (!(await cancel(path))) {
      // It is not there any more, cannot be reached, or has not begun: a request that waits may begin it after this.
      answer.status = "stopped";
      cancelLater(path);
    }
    if (answer.status === "stopped" || answer.status === "reconnecting" || (answer.status === "waiting" && answer.wait)) {
      answer.status = "stopped";
      this.leave();
      this.end();
    }
  }

  /** Reads one connection to its end. True: the answer has ended. */
  async readOnce() {
    const { answer } = this;
    this.controller = new AbortController();
    const { controller } = this;
    const timer = this.isBeginning ? 0 : setTimeout(() => controller.abort("silence"), CONNECT_MILLISECONDS);
    const response = await this.connect(controller.signal).finally(() => clearTimeout(timer));
    if (response.status === 204) {
      answer.status = answer.isCancelled ? "stopped" : "done";
      return true;
    }
    const { response: counted, release } = watched(response, controller, SILENCE_MILLISECONDS);
    this.settle();
    try {
      for await (const event of eventsOf(counted)) {
        const index = this.reader.indexOf(event);
        if (index === null) return this.readNotice(event);
        this.forgetLosses();
        if (index <= answer.cursor) continue;
        const isLast = this.reader.read(answer, event, this.isLive ? Date.now() : null);
        answer.cursor = index;
        if (isLast) return true;
        this.onChange();
      }
    } finally {
      release();
    }
    return false;
  }

  /** Whether the next connection makes the request, or reads what is recorded. */
  get isBeginning() {
    return this.answer.cursor < 0 && this.requestOf !== null;
  }

  async connect(signal) {
    const { answer } = this;
    if (this.isBeginning) {
      const body = await this.requestOf();
      const response = await call(this.reader.path, { method: "POST", json: body, signal });
      // The server names a response: sent again, the request would be another one, whose tools are called again.
      if (this.reader.isNamedByServer) this.requestOf = null;
      return response;
    }
    const path = this.reader.resumePath(answer);
    if (!path) throw new ApiError(404, "");
    const query = this.token ? `${path.includes("?") ? "&" : "?"}read_token=${encodeURIComponent(this.token)}` : "";
    return call(path + query, { signal, headers: this.reader.resumeHeaders(answer), ask: !this.token });
  }

  /** An event without a number is about this reader, not about the answer. */
  readNotice(event) {
    const error = JSON.parse(event.data).error ?? {};
    throw new ApiError(503, error.message ?? "", { code: error.code ?? null });
  }

  settle() {
    this.connectedAt = Date.now();
    Object.assign(this.answer, { status: this.answer.cursor < 0 && !this.answer.firstTokenAt ? "waiting" : "running", wait: null });
    this.onChange();
  }

  /** A server that takes connections and gives nothing is still lost. */
  forgetLosses() {
    this.tries = 0;
    this.lostAt = null;
  }

  /** True: wait and try again. */
  takeFault(fault) {
    const { answer } = this;
    if (!(fault instanceof ApiError)) {
      if (fault === "silence" || fault?.name === "AbortError" || fault instanceof ConnectionLost) return this.lose("unreachable");
      if (fault instanceof MissingFile) return this.fail(fault.message, "file_missing");
      reportError(fault);
      return this.fail(fault?.message ?? String(fault), "page_error");
    }
    if (fault.isUnreachable) return this.lose("unreachable");
    if (PASSING.has(fault.status) && this.tries < MOST_BUSY_TRIES) {
      return this.lose(fault.status === 429 ? "busy" : "starting", fault.retryAfter);
    }
    if (fault.code === "invalid_last_event_id" && answer.cursor >= 0 && !this.hasBegunAnew) {
      // The server has less than was shown, as after a restart without a disk: its recording is what counts.
      this.hasBegunAnew = true;
      Object.assign(answer, { cursor: -1, text: answer.base.text, reasoning: answer.base.reasoning, steps: answer.base.steps ?? [], items: answer.base.items ?? null, cited: answer.base.cited ?? [], logprobs: null });
      this.requestOf = null;
      return this.lose("unreachable");
    }
    if (fault.status === 409 && answer.cursor < 0 && this.requestOf) {
      // The request differs from the one that began this answer (a setting changed meanwhile): read what is recorded.
      this.requestOf = null;
      return this.lose("unreachable");
    }
    const isBeginning = answer.cursor < 0 && this.requestOf;
    const lost = isBeginning ? null : { 404: "session_lost", 410: "replay_gap" }[fault.status];
    return this.fail(fault.message, lost ?? fault.code ?? `http_${fault.status}`, fault.status);
  }

  lose(reason, retryAfter = null) {
    const { answer } = this;
    if (this.connectedAt && Date.now() - this.connectedAt > STEADY_MILLISECONDS) this.forgetLosses();
    this.connectedAt = null;
    this.tries += 1;
    this.lostAt ??= Date.now();
    this.isOrdered = Boolean(retryAfter);
    if (Date.now() - this.lostAt > LONGEST_OUTAGE) return this.fail("", "unreachable");
    // The server may write on while nobody reads: only a request that it refused begins later.
    if (answer.cursor >= 0 || reason === "unreachable") {
      this.isLive = false;
      answer.wasLost = true;
    }
    answer.status = reason === "busy" || (answer.cursor < 0 && reason === "starting") ? "waiting" : "reconnecting";
    answer.wait = { reason, tries: this.tries, since: this.lostAt, until: Date.now() + waitOf(this.tries, retryAfter) };
    return true;
  }

  fail(message, code, status = 0) {
    Object.assign(this.answer, { status: "failed", error: { message, code, status } });
    return false;
  }

  end() {
    if (this.hasEnded) return;
    this.hasEnded = true;
    Object.assign(this.answer, { wait: null, endedAt: this.answer.endedAt ?? (this.isLive ? Date.now() : null) });
    this.onEnd();
  }
}
