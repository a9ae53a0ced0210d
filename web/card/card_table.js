/** Several cards: how far all of them are, and each in its row. */

import { Badge, Button, Icon } from "../design/components.js";
import { html, useEffect, useRef } from "../app/view.js";
import { counted, formatNumber, t } from "../app/words.js";
import { cards, doubtfulFields, isNikShown, openId, removeCard } from "./cards.js";
import { masked } from "./fields.js";
import { readAgain, stopWaiting } from "./reading.js";

export function CardTable() {
  const all = cards.value;
  return html`<section class="stack" aria-label=${t("card.all")}>
    <${BatchProgress} all=${all} />
    <div class="card"><table class="table card-table">
      <thead><tr><th scope="col"><span class="visually-hidden">${t("card.picture")}</span></th><th scope="col">${t("card.field.nama")}</th><th scope="col">${t("card.field.nik")}</th><th scope="col">${t("card.state")}</th><th scope="col"><span class="visually-hidden">${t("card.actions")}</span></th></tr></thead>
      <tbody>${all.map((card) => html`<${CardRow} key=${card.id} card=${card} />`)}</tbody>
    </table></div>
  </section>`;
}

function BatchProgress({ all }) {
  const numDone = all.filter((card) => card.state === "read" || card.state === "failed").length;
  const numFailed = all.filter((card) => card.state === "failed").length;
  const numDoubtful = all.filter((card) => card.state === "read" && doubtfulFields(card).length).length;
  const isWaiting = all.some((card) => card.state === "waiting");
  return html`<div class="card-batch stack">
    <div class="row-wrap"><span class="card-batch-number" id="batch-progress">${t("card.batch", { done: formatNumber(numDone), number: formatNumber(all.length) })}</span>
      ${numDoubtful > 0 && html`<${Badge} kind="warn" icon="eye">${counted("card.batch.look", numDoubtful)}<//>`}
      ${numFailed > 0 && html`<${Badge} kind="bad" icon="circle-x">${counted("card.batch.failed", numFailed)}<//>`}
      <div class="grow"></div>${isWaiting && html`<${Button} small icon="square" onClick=${stopWaiting}>${t("card.stop")}<//>`}</div>
    <progress class="card-bar" max=${all.length} value=${numDone} aria-labelledby="batch-progress"></progress>
    <div class="visually-hidden" role="status">${numDone === all.length ? t("card.batch.done", { done: formatNumber(numDone - numFailed), failed: formatNumber(numFailed) }) : ""}</div>
  </div>`;
}

function CardRow({ card }) {
  const isRead = card.state === "read";
  const open = () => { openId.value = card.id; };
  const remove = ({ currentTarget }) => {
    const row = currentTarget.closest("tr");
    (row.nextElementSibling ?? row.previousElementSibling)?.querySelector(".card-remove").focus();
    removeCard(card.id);
  };
  const nik = isRead ? (isNikShown.value ? card.values.nik : masked(card.values.nik)) : "";
  const name = (isRead && card.values.nama) || card.name || t("card.unnamed");
  return html`<tr data-state=${card.state} data-card=${card.id}>
    <td class="card-cell-thumb">${card.thumb ? html`<${Thumb} canvas=${card.thumb} />` : html`<div class="card-thumb empty"><${Icon} name="image" /></div>`}</td>
    <th scope="row" class="card-cell-name">${isRead ? html`<button type="button" class="card-open" onClick=${open}>${name}</button>` : html`<span>${name}</span>`}
      <div class="faint one-line card-small">${isRead && card.values.nama ? card.name : ""}</div></th>
    <td class="mono card-cell-nik">${nik}</td>
    <td class="card-cell-state"><${State} card=${card} /></td>
    <td class="card-cell-actions"><div class="row">
      ${card.state === "failed" && html`<${Button} small icon="refresh-cw" kind="quiet" label=${t("card.again.of", { name })} onClick=${() => readAgain(card.id)} />`}
      ${isRead && html`<${Button} small icon="chevron-right" kind="quiet" label=${t("card.open", { name })} onClick=${open} />`}
      <${Button} small icon="x" kind="quiet" class="card-remove" label=${t("card.remove.of", { name })} onClick=${remove} />
    </div></td>
  </tr>`;
}

function State({ card }) {
  if (card.state === "waiting") return html`<${Badge} icon="clock">${t("card.state.waiting")}<//>`;
  if (card.state === "reading") return html`<${Badge} kind="info" icon="loader-circle" spin>${t(`card.stage.${card.stage}`)}<//>`;
  if (card.state === "failed") return html`<div class="card-fault"><${Icon} name="circle-x" /><span>${card.fault.message}</span></div>`;
  const numDoubtful = doubtfulFields(card).length;
  const isCorrected = Object.keys(card.corrected).length > 0;
  return html`<div class="row-wrap">${numDoubtful ? html`<${Badge} kind="warn" icon="eye">${counted("card.state.look", numDoubtful)}<//>` : html`<${Badge} kind="good" icon="check">${t("card.state.good")}<//>`}
    ${isCorrected && html`<${Badge} kind="info" icon="pencil">${t("card.level.corrected")}<//>`}</div>`;
}

function Thumb({ canvas }) {
  const place = useRef(null);
  useEffect(() => { place.current.replaceChildren(canvas); }, [canvas]);
  return html`<div class="card-thumb" ref=${place} aria-hidden="true"></div>`;
}
