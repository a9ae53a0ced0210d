/** The card, straight, with a box over each field; below it the field that one points at, enlarged. */

import { Badge, Note } from "../design/components.js";
import { html, useEffect, useRef, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { activeField, isNikShown, pointedField, pointing, unpoint } from "./cards.js";
import { FIELDS, levelOf, masked } from "./fields.js";
import { flatCardOf, pointsOf } from "./flat_card.js";
import { sizeOf, widened } from "./homography.js";
import { bitmapOf } from "./picture.js";
import { straighten } from "./straighten.js";

const WIDTH = 1200;
const MAX_HEIGHT = 1600;
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function CardFigure({ card }) {
  const canvas = useRef(null);
  const [shown, setShown] = useState(null);
  useEffect(() => {
    let isOver = false;
    let bitmap = null;
    bitmapOf(card.sent).then((opened) => {
      bitmap = opened;
      if (isOver) return opened?.close();
      if (!opened) return setShown({ isUnknown: true });
      const flat = flatCardOf(card.answer.card.quad, opened.width, opened.height);
      const width = Math.round(Math.min(WIDTH, MAX_HEIGHT * flat.ratio));
      straighten(opened, flat.quad, canvas.current, width, Math.round(width / flat.ratio));
      setShown({ flat, bitmap: opened });
    });
    return () => {
      isOver = true;
      bitmap?.close();
    };
  }, []);
  const flags = Object.entries(card.answer.quality ?? {}).filter(([, is]) => is === true).map(([name]) => name);
  return html`<figure class="card-figure stack">
    ${shown?.isUnknown
      ? html`<${Note}>${t("card.picture.unknown")}<//>`
      : html`<div class="card-picture"><canvas ref=${canvas} role="img" aria-label=${t("card.picture")}></canvas>
        ${shown?.flat && html`<${Boxes} card=${card} flat=${shown.flat} />`}</div>
        ${shown?.flat && html`<${Loupe} card=${card} bitmap=${shown.bitmap} />`}`}
    ${flags.length > 0 && html`<div class="row-wrap">${flags.map((name) => html`<${Badge} kind="warn" icon="triangle-alert">${t(`card.quality.${name}`)}<//>`)}</div>`}
  </figure>`;
}

/** One stop of the Tab key; arrows go from field to field. */
function Boxes({ card, flat }) {
  const active = activeField.value;
  const boxed = FIELDS.filter((name) => card.answer.boxes[name]);
  const stop = boxed.includes(active) ? active : boxed[0];
  const onKey = (event) => {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); focusField(stop); }
    if (!step) return;
    event.preventDefault();
    const next = boxed[(boxed.indexOf(stop) + step + boxed.length) % boxed.length];
    event.currentTarget.querySelector(`[data-box="${next}"]`).focus();
  };
  const coverNik = card.answer.boxes.nik && !isNikShown.value;
  return html`<svg class="card-boxes" viewBox="0 0 ${WIDTH} ${WIDTH / flat.ratio}" role="group" aria-label=${t("card.boxes")} onKeyDown=${onKey}>
    ${coverNik && html`<polygon class="card-cover" points=${pointsOf(widened(card.answer.boxes.nik, 0.01, 0.18), flat, WIDTH)} />`}
    ${boxed.map((name) => html`<polygon key=${name} class="card-box" data-box=${name} data-level=${levelOf(card, name)} data-active=${active === name}
      points=${pointsOf(boxAround(card.answer.boxes[name]), flat, WIDTH)} role="button" tabindex=${name === stop ? 0 : -1} aria-label=${nameOf(card, name)}
      onClick=${() => focusField(name)} onFocus=${() => { pointedField.value = name; }} onBlur=${() => unpoint(name)} ...${pointing(name)} />`)}
  </svg>`;
}

function Loupe({ card, bitmap }) {
  const canvas = useRef(null);
  const name = activeField.value;
  const box = name && card.answer.boxes[name];
  const isHidden = name === "nik" && !isNikShown.value;
  useEffect(() => {
    if (!box || isHidden) return;
    const part = widened(box, (0.6 * sizeOf(box).height) / sizeOf(box).width, 0.18);
    const { width, height } = sizeOf(part);
    straighten(bitmap, part, canvas.current, Math.round(Math.min(1400, (120 * width) / height)), 120);
  }, [name, isHidden]);
  const hint = !name ? t("card.loupe.hint") : isHidden ? t("card.loupe.hidden") : t("card.loupe.none");
  return html`<div class="card-loupe">${box && !isHidden
    ? html`<canvas ref=${canvas} key=${name} role="img" aria-label=${t("card.loupe.of", { field: t(`card.field.${name}`) })}></canvas>`
    : html`<span class="soft">${hint}</span>`}</div>`;
}

/** A little wider: where a value stands behind its colon, the reader guesses where it begins. */
function boxAround(box) {
  const { width, height } = sizeOf(box);
  return widened(box, (0.3 * height) / Math.max(1, width), 0.06);
}

function nameOf(card, name) {
  const value = name === "nik" && !isNikShown.value ? masked(card.values.nik) : card.values[name];
  return `${t(`card.field.${name}`)}: ${value || t("card.level.unread")}`;
}

export function focusField(name) {
  document.getElementById(`field-${name}`)?.focus();
}
