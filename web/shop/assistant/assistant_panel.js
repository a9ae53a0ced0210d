/** The assistant beside the goods: questions, answers with cards and proofs, and what one may ask next. */

import { Button, Dialog, Icon, Note } from "../../design/components.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { formatDay, formatTime, t } from "../../app/words.js";
import { account, isOpen, requireAccount } from "../../market/account.js";
import { ProductCard } from "../goods/product_card.js";
import { HoldOffer } from "../product/hold_box.js";
import { ask, forget, isAnswering, isReconnecting, messages, recall, stop } from "./conversation.js";
import { provenPieces } from "./proofs.js";

const EXAMPLES = ["shop.assistant.example.1", "shop.assistant.example.2", "shop.assistant.example.3"];
const MAX_CHARS = 500;
const MAX_CARDS = 5;

export function AssistantDrawer({ onClose }) {
  return html`<${Dialog} title=${t("shop.assistant")} edge="right" onClose=${onClose}><${AssistantPanel} inDialog /><//>`;
}

export function AssistantPanel({ inDialog = false }) {
  const list = useRef(null);
  const all = messages.value;
  const who = account.value;
  useEffect(() => { if (who !== undefined) recall(); }, [who]);
  useLayoutEffect(() => { list.current.scrollTop = list.current.scrollHeight; }, [all]);
  const send = (text) => { if (!isAnswering.value && requireAccount()) ask(text); };
  return html`<div class="assistant">
    <header class="row">${!inDialog && html`<h2 class="grow">${t("shop.assistant")}</h2>`}${inDialog && html`<div class="grow"></div>`}
      ${all.length > 0 && html`<${Button} small kind="quiet" icon="square-pen" onClick=${forget}>${t("shop.assistant.new")}<//>`}</header>
    <div class="assistant-list scroll" ref=${list} tabindex="0" role="log" aria-label=${t("shop.assistant.talk")}>
      ${!all.length && html`<p class="soft">${t("shop.assistant.about")}</p><div class="stack">${EXAMPLES.map((name) => html`<${Button} class="example" onClick=${() => send(t(name))} key=${name}>${t(name)}<//>`)}</div>`}
      ${all.map((one, number) => html`<${Message} key=${number} message=${one} isLast=${number === all.length - 1} onAsk=${send} />`)}
    </div>
    ${isReconnecting.value && html`<p class="soft row" role="status"><${Icon} name="loader-circle" spin /> ${t("shop.assistant.reconnecting")}</p>`}
    <${Question} onSend=${send} />
  </div>`;
}

function Message({ message, isLast, onAsk }) {
  if (message.role === "user") return html`<p class="asked">${message.text}</p>`;
  const { text, products, status, suggestions } = message;
  return html`<article class="answered" aria-busy=${status === "running"}>
    ${status === "running" && !text && html`<p class="soft row"><${Icon} name="loader-circle" spin /> ${t("shop.assistant.reads")}</p>`}
    <p class="answered-text">${provenPieces(text, products).map((piece) => (piece.proof ? html`<span class="proven" data-proof=${piece.proof} tabindex="0">${piece.text}<span class="visually-hidden"> (${piece.proof})</span></span>` : piece.text))}</p>
    ${status === "failed" && html`<${Note} kind="bad" role="alert">${message.error}<//>`}
    ${products?.length > 0 && status !== "running" && html`<div class="answered-goods">${products.slice(0, MAX_CARDS).map((one) => html`<div class="offered" key=${one.id}><${ProductCard} compact product=${one} /><${HoldOffer} product=${one} /></div>`)}</div>`}
    ${message.at && products.length > 0 && html`<p class="faint"><small>${t("shop.assistant.then", { time: `${formatDay(new Date(message.at))}, ${formatTime(new Date(message.at))}` })}</small></p>`}
    ${isLast && status === "done" && suggestions?.length > 0 && html`<div class="row-wrap">${suggestions.map((one) => html`<${Button} small key=${one} onClick=${() => onAsk(one)}>${one}<//>`)}</div>`}
  </article>`;
}

function Question({ onSend }) {
  const [text, setText] = useState("");
  const isNobody = account.value === null && !isOpen;
  const submit = (event) => {
    event.preventDefault();
    if (!text.trim() || isAnswering.value) return;
    if (isNobody) return requireAccount();
    onSend(text.trim());
    setText("");
  };
  return html`<form class="row question" onSubmit=${submit}>
    <input class="input" aria-label=${t("shop.assistant.question")} placeholder=${t("shop.assistant.question")} maxlength=${MAX_CHARS} autocomplete="off" value=${text} onInput=${(event) => setText(event.target.value)} />
    ${isAnswering.value ? html`<${Button} icon="square" label=${t("shop.assistant.stop")} onClick=${stop} />` : html`<${Button} kind="primary" icon="arrow-up" type="submit" label=${t("shop.assistant.send")} disabled=${!text.trim()} />`}
  </form>`;
}
