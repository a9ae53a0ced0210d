/** Under an answer: tokens, tokens a second, time of the first token. */

import { html } from "../../app/view.js";
import { counted, formatNumber, formatSeconds, t } from "../../app/words.js";

/** `{ tokens, perSecond, first }`; what is not known is null. An answer that was interrupted has no speed. */
export function statsOf(answer) {
  const added = answer.usage?.completion_tokens ?? null;
  const first = answer.firstTokenAt && answer.startedAt ? (answer.firstTokenAt - answer.startedAt) / 1000 : null;
  const seconds = answer.firstTokenAt && answer.endedAt ? (answer.endedAt - answer.firstTokenAt) / 1000 : null;
  const perSecond = added > 1 && seconds > 0.02 && !answer.wasLost ? (added - 1) / seconds : null;
  // The request of an answer that was continued counts its own tokens alone.
  const before = answer.base?.text ? answer.base.tokens ?? null : 0;
  const tokens = added === null || before === null ? null : before + added;
  return { tokens, perSecond, first };
}

export function AnswerStats({ answer }) {
  const { tokens, perSecond, first } = statsOf(answer);
  const parts = [
    tokens !== null && counted("chat.stats.tokens", tokens),
    perSecond !== null && t("chat.stats.speed", { speed: formatNumber(perSecond, perSecond < 10 ? 1 : 0) }),
    first !== null && t("chat.stats.first", { time: formatSeconds(first) }),
  ].filter(Boolean);
  if (!parts.length) return null;
  return html`<span class="answer-stats faint numbers" title=${answer.model ?? undefined}>${parts.join(" · ")}</span>`;
}
