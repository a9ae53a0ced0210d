/** The answer token by token, tinted by how sure the model was, with what it might have written instead. */

import { html, useMemo, useRef, useState } from "../../app/view.js";
import { formatNumber, t } from "../../app/words.js";

/** From sure to unsure. An underline of its own says the same as the tint. */
const LEVELS = [0.9, 0.6, 0.3, 0.1, 0];
const MAX_TOKENS = 4000;

export const probabilityOf = (logprob) => Math.exp(Math.min(0, logprob));
export const levelOf = (logprob) => LEVELS.findIndex((least) => probabilityOf(logprob) >= least);

/** Tokens of the reasoning, and those that end it, are no part of the text. */
export function tokensOfText(logprobs, text) {
  const whole = logprobs.map(({ token }) => token).join("");
  const start = text ? whole.lastIndexOf(text.trim()) : -1;
  if (start < 0) return logprobs;
  const end = start + text.trim().length;
  const found = [];
  let at = 0;
  for (const one of logprobs) {
    if (at + one.token.length > start && at < end) found.push(one);
    at += one.token.length;
  }
  return found;
}

export function LogprobText({ answer }) {
  const [selected, setSelected] = useState(null);
  const list = useRef(null);
  const tokens = useMemo(() => tokensOfText(answer.logprobs ?? [], answer.text).slice(0, MAX_TOKENS), [answer.logprobs?.length, answer.text]);
  if (!tokens.length) return html`<p class="soft">${t("logprobs.none")}</p>`;
  const numberOf = (event) => event.target.closest?.("[data-token]")?.dataset.token;
  const choose = (event) => {
    const number = numberOf(event);
    if (number !== undefined) setSelected(Number(number));
  };
  const onKey = (event) => {
    const target = { ArrowRight: (selected ?? -1) + 1, ArrowLeft: (selected ?? 1) - 1, Home: 0, End: tokens.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    setSelected(Math.max(0, Math.min(tokens.length - 1, target)));
  };
  return html`<div class="logprobs">
    <div class="logprob-text" ref=${list} tabindex="0" role="group" aria-label=${t("logprobs.name")} onClick=${choose} onMouseOver=${choose} onKeyDown=${onKey}>${tokens.map((one, number) => html`<span
      data-token=${number} class="token level-${levelOf(one.logprob)} ${number === selected ? "selected" : ""}">${one.token}</span>`)}</div>
    <${Details} token=${tokens[selected]} />
    <div class="logprob-legend" aria-hidden="true">${t("logprobs.legend")} ${LEVELS.map((least, level) => html`<span class="token level-${level}">${least === 0 ? `< ${percent(LEVELS[level - 1])}` : `≥ ${percent(least)}`}</span>`)}</div>
  </div>`;
}

function Details({ token }) {
  if (!token) return html`<div class="logprob-details soft" aria-live="polite">${t("logprobs.how")}</div>`;
  const others = (token.top ?? []).filter((other) => other.token !== token.token);
  return html`<div class="logprob-details" aria-live="polite">
    <span class="logprob-choice"><code>${visible(token.token)}</code> <strong class="numbers">${percent(probabilityOf(token.logprob))}</strong></span>
    ${others.length > 0 && html`<span class="soft">${t("logprobs.instead")}</span>`}
    ${others.map((other) => html`<span class="logprob-choice soft"><code>${visible(other.token)}</code> <span class="numbers">${percent(probabilityOf(other.logprob))}</span></span>`)}
  </div>`;
}

function visible(token) {
  return token.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/^ | $/g, "·") || "∅";
}

function percent(part) {
  const value = part * 100;
  if (value > 99.9 && value < 99.999) return `> ${formatNumber(99.9, 1)} %`;
  if (value > 0 && value < 0.1) return `< ${formatNumber(0.1, 1)} %`;
  return `${formatNumber(value, value < 10 || (value > 99 && value < 99.999) ? 1 : 0)} %`;
}
