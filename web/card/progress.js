/** A card while it is read: its picture, and how far it is. Or why it was not read. */

import { Badge, Button, Icon, Note } from "../design/components.js";
import { html, useEffect, useRef } from "../app/view.js";
import { t } from "../app/words.js";
import { removeCard } from "./cards.js";
import { bitmapOf } from "./picture.js";
import { reader } from "./reader_state.js";
import { readAgain } from "./reading.js";

const STAGES = ["found", "rectified", "read", "checked"];
const MAX_SIDE = 1000;

export function ReadingView({ card }) {
  return html`<div class="card-reading">
    <${Preview} card=${card} />
    <div class="stack">${card.state === "failed" ? html`<${Failure} card=${card} />` : html`<${Steps} card=${card} />`}</div>
  </div>`;
}

function Preview({ card }) {
  const canvas = useRef(null);
  useEffect(() => {
    let isOver = false;
    bitmapOf(card.file).then((bitmap) => {
      if (!bitmap) return;
      if (!isOver) {
        const scale = Math.min(1, MAX_SIDE / Math.max(bitmap.width, bitmap.height));
        Object.assign(canvas.current, { width: Math.round(bitmap.width * scale), height: Math.round(bitmap.height * scale) });
        canvas.current.getContext("2d").drawImage(bitmap, 0, 0, canvas.current.width, canvas.current.height);
      }
      bitmap.close();
    });
    return () => { isOver = true; };
  }, []);
  const isRunning = card.state !== "failed";
  return html`<div class="card-picture card-preview" data-running=${isRunning} data-hidden=${isRunning || card.fault.code !== "ktp_not_found"}><canvas ref=${canvas} width="856" height="540" role="img" aria-label=${t("card.picture.sent")}></canvas></div>`;
}

function Steps({ card }) {
  const numDone = STAGES.indexOf(card.stage) + 1;
  return html`<div class="stack" role="status">
    <ol class="card-steps" aria-label=${t("card.steps")}>${STAGES.map((stage, number) => {
      const state = number < numDone ? "done" : number === numDone ? "current" : "ahead";
      return html`<li data-state=${state} aria-current=${state === "current" ? "step" : undefined}>
        <${Icon} name=${state === "done" ? "circle-check" : state === "current" ? "loader-circle" : "minus"} spin=${state === "current"} label=${state === "done" ? t("card.step.done") : undefined} />${t(`card.step.${stage}`)}</li>`;
    })}</ol>
    ${reader.value?.state === "waiting" && html`<p class="soft card-small">${t("card.first")}</p>`}
  </div>`;
}

function Failure({ card }) {
  const { message, seen } = card.fault;
  return html`<${Note} kind="bad" role="alert">${message}<//>
    ${seen.length > 0 && html`<div class="row-wrap">${seen.map((name) => html`<${Badge} kind="warn" icon="triangle-alert">${t(`card.quality.${name}`)}<//>`)}</div>`}
    <div class="row-wrap"><${Button} kind="primary" icon="refresh-cw" onClick=${() => readAgain(card.id)}>${t("card.again")}<//><${Button} icon="trash-2" onClick=${() => removeCard(card.id)}>${t("card.remove")}<//></div>`;
}
