/** Thoughts, steps and text of an answer, and what is the matter with it. */

import { Button, Icon, Note } from "../../design/components.js";
import { now } from "../../design/shell.js";
import { html } from "../../app/view.js";
import { formatSeconds, formatTimeSpan, t } from "../../app/words.js";
import { isRunning } from "../answers/run_answer.js";
import { sourcesOf } from "../answers/sources.js";
import { LoadingNote } from "./loading_note.js";
import { LogprobText } from "./logprobs.js";
import { RichText } from "../markdown/rich_text.js";
import { SchemaAnswer, schemaOfAnswer } from "./schema_answer.js";
import { Sources } from "./sources_view.js";
import { Steps } from "./steps_view.js";
import { Thoughts } from "./thoughts.js";

/** `isOwn`: not one of somebody else, which is watched with a token that opens nothing else. */
export function AnswerBody({ answer, isOwn = true, showsLogprobs = false, onRetry, onResume, onDecide = null }) {
  const running = isRunning(answer);
  const sources = sourcesOf(answer);
  return html`<div class="answer">
    ${answer.reasoning && html`<${Thoughts} answer=${answer} />`}
    ${answer.steps.length > 0 && html`<${Steps} answer=${answer} canDecide=${!running} onDecide=${onDecide} />`}
    ${showsLogprobs ? html`<${LogprobText} answer=${answer} />` : answer.text && schemaOfAnswer(answer) ? html`<${SchemaAnswer} answer=${answer} />` : answer.text && html`<${RichText} text=${answer.text} isFinal=${!running} sources=${sources} />`}
    <${Sources} sources=${sources} />
    ${running && !answer.wait && !answer.text && !answer.reasoning && html`<div class="pulse" role="img" aria-label=${t("chat.waiting")}><span></span><span></span><span></span></div>`}
    ${isOwn && running && ((!answer.text && !answer.reasoning) || answer.wasLost) && html`<${LoadingNote} answer=${answer} />`}
    ${answer.wait && html`<${Waiting} wait=${answer.wait} />`}
    ${answer.status === "stopped" && html`<p class="answer-note faint"><${Icon} name="square" /> ${t("chat.stopped")}</p>`}
    ${answer.status === "done" && answer.finishReason === "length" && html`<p class="answer-note faint">${t("chat.cut")}</p>`}
    ${answer.status === "failed" && html`<${Failure} answer=${answer} onRetry=${onRetry} onResume=${onResume} />`}
  </div>`;
}

function Waiting({ wait }) {
  const seconds = Math.max(0, Math.ceil((wait.until - Math.max(now.value, Date.now())) / 1000));
  const lost = Math.max(1, Math.round((Math.max(now.value, Date.now()) - wait.since) / 1000));
  const values = { seconds, tries: wait.tries, lost: lost < 60 ? formatTimeSpan(lost, "s") : formatSeconds(lost) };
  return html`<div class="reconnecting"><${Icon} name=${wait.reason === "busy" ? "timer" : "loader-circle"} spin=${wait.reason !== "busy"} />
    <span>${t(`chat.wait.${wait.reason}`, values)}</span><span class="faint numbers">${t(wait.tries > 1 ? "chat.wait.tries" : "chat.wait.first", values)}</span></div>`;
}

const KNOWN = new Set(["session_lost", "replay_gap", "unreachable", "server_shutting_down", "context_length_exceeded"]);

function Failure({ answer, onRetry, onResume }) {
  const { code, message, status } = answer.error ?? {};
  const text = KNOWN.has(code) ? t(`chat.failed.${code}`) : message || t("chat.failed");
  const canResume = onResume && !["session_lost", "replay_gap"].includes(code) && (code === "unreachable" || status >= 500 || status === 429);
  return html`<${Note} kind="bad"><div class="stack">
    <span>${text}</span>
    ${(onRetry || canResume) && html`<div class="row-wrap">${canResume && html`<${Button} small icon="plug" onClick=${onResume}>${t("chat.resume")}<//>`}
      ${onRetry && html`<${Button} small icon="refresh-cw" onClick=${onRetry}>${t("chat.retry")}<//>`}</div>`}
  </div><//>`;
}
